//! The connections that commands make: to Postgres, and by a proxy.

use std::net::SocketAddr;

use sqlx::PgConnection;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::check;
use crate::command_line::process::{Invocation, certificates};
use crate::support::gateway::{Gateway, SEAL_KEY};
use crate::support::{database, patience};

#[tokio::test(flavor = "multi_thread")]
async fn commands_end_their_connections_as_postgres_wants_it() {
    let gateway = Gateway::start().await;
    // No gateway's, which ends connections of its own.
    let url = database::create().await;
    let mut own = database::connect(&url).await;
    let before = sessions(&mut own).await;
    let run = async |arguments: &[&str]| {
        let command = Invocation::new(arguments).set("DATABASE__URL", &url);
        command.set("SEAL__KEYS", SEAL_KEY).finish().await
    };
    for command in [
        &["subscriber", "list"][..],
        &["apps", "list"],
        &["queue", "list"],
        &["mailboxes", "list"],
        &["certificates", "list"],
        &["trust-clock"],
        &["reseal"],
        &["migrate"],
    ] {
        run(command).await.succeeds();
    }
    // One that fails.
    let missing = "log_01m8ge5vtrfbhvmb9xpzganz65";
    run(&["queue", "show", missing]).await.fails(1, &[missing]);
    let (_folder, files) = certificates();
    let checked = check(&gateway, &[])
        .set("DATABASE__URL", &url)
        .set("TLS__CERTIFICATE", &files.certificate)
        .set("TLS__KEY", &files.key);
    checked.finish().await.succeeds();
    patience::until("their sessions in the statistics", async || {
        sessions(&mut own).await.0 >= before.0 + 10
    })
    .await;
    let after = sessions(&mut own).await;
    assert_eq!(after.1, before.1, "connections that just broke off");
    gateway.stop().await;
}

/// The sessions that this database has had, and those that broke off.
async fn sessions(connection: &mut PgConnection) -> (i64, i64) {
    sqlx::query_as(
        "SELECT sessions, sessions_abandoned FROM pg_stat_database WHERE datname = current_database()",
    )
    .fetch_one(connection)
    .await
    .unwrap()
}

/// A proxy that refuses all that it is asked for; tells what that was.
async fn refusing_proxy() -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let mut request = String::new();
            while !request.ends_with("\r\n\r\n")
                && stream
                    .read_line(&mut request)
                    .await
                    .is_ok_and(|read| read > 0)
            {}
            let line = request.lines().next().unwrap_or_default();
            asked.send(line.to_owned()).unwrap();
            drop(stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await);
        }
    });
    (address, requests)
}

#[tokio::test(flavor = "multi_thread")]
async fn http_to_the_servers_of_the_settings_leaves_by_the_proxy() {
    let gateway = Gateway::start().await;
    let (proxy, mut requests) = refusing_proxy().await;
    let (_folder, files) = certificates();
    let checked = check(&gateway, &["--json"])
        .set("TLS__CERTIFICATE", &files.certificate)
        .set("TLS__KEY", &files.key)
        .variable("HTTPS_PROXY", format!("http://{proxy}"))
        .variable("NO_PROXY", "near.example")
        .set(
            "PLUGINS__PLUGIN_A__TOKEN_URL",
            "https://oauth.example/token",
        )
        .set("PLUGINS__PLUGIN_B__TOKEN_URL", "https://near.example/token")
        .set("PAYPROV__BASE_URL", "https://payments.example")
        .set("PAYPROV__SECRET_KEY", "sk_test_1")
        .set("PAYPROV__WEBHOOK_SECRET", "whsec_1")
        .set("PAYPROV__PRICE", "price_1")
        .set("RELAY__HOST", "relay.example")
        .set("RELAY__FROM", "billing@gateway.example")
        .finish()
        .await;
    assert!(!checked.status.success());
    requests.close();
    let mut asked = Vec::new();
    while let Some(line) = requests.recv().await {
        asked.push(line);
    }
    asked.sort();
    // Nothing by SMTP, nothing to the hosts that need none, and nothing to this machine.
    let expected = [
        "CONNECT oauth.example:443 HTTP/1.1",
        "CONNECT payments.example:443 HTTP/1.1",
    ];
    assert_eq!(asked, expected, "{}{}", checked.stdout, checked.stderr);
    gateway.stop().await;
}
