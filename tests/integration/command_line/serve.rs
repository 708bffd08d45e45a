//! `migrate` and `serve`: a start on a fresh database, and ends with something in hand.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};

use super::process::{END, Invocation, Running, certificates, http_client};
use crate::support::database;
use crate::support::gateway::Gateway;
use crate::support::patience;
use crate::support::smtp_client::SmtpClient;

/// A `serve` on the database of `gateway`, with its mailboxes, through its sandbox.
pub fn replica(gateway: &Gateway) -> Invocation {
    let folder = gateway.ca_file.parent().unwrap();
    let files = mailgate_sandbox::certificates::ensure(folder, &[], chrono::Utc::now()).unwrap();
    let serve = Invocation::serve(&gateway.database_url, &files);
    with_plugins(serve, gateway.sandbox.plugins(&gateway.ca_file))
}

/// The same with these settings of its plugins.
pub fn with_plugins(mut serve: Invocation, plugins: toml::Table) -> Invocation {
    for (plugin, settings) in plugins {
        for (name, value) in settings.as_table().unwrap() {
            let value = match value {
                toml::Value::String(text) => text.clone(),
                toml::Value::Array(texts) => {
                    let texts: Vec<&str> = texts.iter().filter_map(toml::Value::as_str).collect();
                    texts.join(",")
                }
                other => other.to_string(),
            };
            let name = format!("PLUGINS__{plugin}__{name}").to_uppercase();
            serve = serve.set(&name, value);
        }
    }
    serve
}

/// `POST /send` at a child, as the app of `gateway`.
async fn send(gateway: &Gateway, http: std::net::SocketAddr, to: &str) -> (u16, Value) {
    let body = json!({
        "pk": gateway.app.pushable_key.expose(),
        "to": to,
        "subject": "Hello",
        "body": "It works.",
    });
    let response = http_client()
        .post(format!("http://{http}/send"))
        .header("x-send-key", gateway.app.send_key.expose())
        .json(&body)
        .send()
        .await
        .expect("an answer comes");
    let status = response.status().as_u16();
    (status, response.json().await.expect("a JSON answer"))
}

/// STARTTLS and AUTH at a child, as the app of `gateway`.
pub async fn authenticated(gateway: &Gateway, starttls: std::net::SocketAddr) -> SmtpClient {
    use base64::Engine as _;

    let mut client = SmtpClient::connect(starttls).await;
    client.reply().await;
    client.command("EHLO client.example").await;
    let reply = client.command("STARTTLS").await;
    assert!(reply.starts_with("220 "), "{reply}");
    let mut client = client.encrypt(&gateway.ca_file).await;
    client.command("EHLO client.example").await;
    let plain = format!("\0{}\0{}", gateway.app.slug, gateway.app.send_key.expose());
    let plain = base64::engine::general_purpose::STANDARD.encode(plain);
    let reply = client.command(&format!("AUTH PLAIN {plain}")).await;
    assert!(reply.starts_with("235 "), "{reply}");
    client
}

#[tokio::test]
async fn migrate_makes_the_tables_once() {
    let url = database::create_empty().await;
    for _ in 0..2 {
        let finished = Invocation::new(["migrate"])
            .set("DATABASE__URL", &url)
            .finish()
            .await;
        finished.succeeds();
        assert_eq!(finished.stdout, "The database's tables are up to date.\n");
        assert_eq!(finished.stderr, "");
    }
    let logged: i64 = sqlx::query_scalar("SELECT count(*) FROM email_logs")
        .fetch_one(&mut database::connect(&url).await)
        .await
        .expect("the table is there");
    assert_eq!(logged, 0);
}

#[tokio::test]
async fn serve_comes_up_on_an_empty_database_and_ends_in_order() {
    let url = database::create_empty().await;
    let (_folder, files) = certificates();
    let mut serve = Invocation::serve(&url, &files).start();
    let addresses = serve.ready().await;
    let mut client = SmtpClient::connect(addresses.starttls).await;
    assert!(client.reply().await.starts_with("220 localhost"));
    let client = SmtpClient::connect(addresses.tls).await;
    let mut client = client.encrypt(&files.ca).await;
    assert!(client.reply().await.starts_with("220 localhost"));
    serve.terminate().await;
    assert_eq!(serve.stdout(), "");
    assert!(!serve.stderr().contains("panicked"), "{}", serve.stderr());
}

#[tokio::test]
async fn ctrl_c_ends_it_as_well() {
    let url = database::create().await;
    let (_folder, files) = certificates();
    let mut serve = Invocation::serve(&url, &files).start();
    serve.ready().await;
    serve.signal("INT").await;
    assert_eq!(serve.end(END).await.code(), Some(0), "{}", serve.stderr());
}

#[tokio::test]
async fn clients_that_say_nothing_do_not_hold_up_the_end() {
    let gateway = Gateway::start().await;
    let mut serve = replica(&gateway).start();
    let addresses = serve.ready().await;
    let mut idle = authenticated(&gateway, addresses.starttls).await;
    let mut amid_a_transaction = authenticated(&gateway, addresses.starttls).await;
    let reply = amid_a_transaction
        .command("MAIL FROM:<x@example.com>")
        .await;
    assert!(reply.starts_with("250 "), "{reply}");
    let _before_tls = TcpStream::connect(addresses.tls).await.unwrap();
    let mut silent = TcpStream::connect(addresses.http).await.unwrap();
    let kept_alive = http_client();
    let url = format!("http://{}/healthz", addresses.http);
    assert_eq!(kept_alive.get(url).send().await.unwrap().status(), 200);
    serve.terminate().await;
    for client in [&mut idle, &mut amid_a_transaction] {
        let farewell = client.next_reply().await.unwrap_or_default();
        assert!(farewell.starts_with("421 4.3.2"), "{farewell:?}");
    }
    assert_eq!(silent.read(&mut [0]).await.unwrap_or(0), 0);
    gateway.stop().await;
}

#[tokio::test]
async fn what_is_in_hand_is_answered_before_the_end() {
    let gateway = Gateway::start().await;
    let mut serve = replica(&gateway).start();
    let addresses = serve.ready().await;
    let mut client = authenticated(&gateway, addresses.starttls).await;
    let message = b"From: ada@sandbox.example\r\nSubject: Hello\r\n\r\nIt works.";
    let hold = gateway.sandbox.slow.hold();
    let ((status, answer), reply, ()) = tokio::join!(
        send(&gateway, addresses.http, "slow@example.com"),
        client.submit("slow@example.com", message),
        async {
            gateway
                .eventually("two sends under way", async |gateway| {
                    gateway.spooled().await == 2
                })
                .await;
            serve.signal("TERM").await;
            // The doors close while the two are still under way.
            serve.logged("finishing the work in progress").await;
            gateway
                .eventually("closed doors", async |_| {
                    TcpStream::connect(addresses.http).await.is_err()
                        && TcpStream::connect(addresses.starttls).await.is_err()
                })
                .await;
            drop(hold);
        }
    );
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["status"], "sent");
    assert!(reply.starts_with("250 2.0.0 "), "{reply}");
    assert_eq!(serve.end(END).await.code(), Some(0), "{}", serve.stderr());
    assert_eq!(gateway.arrived().await.len(), 2);
    assert_eq!(gateway.logged().await, vec![("sent".to_owned(), None); 2]);
    assert_eq!(gateway.spooled().await, 0);
    gateway.stop().await;
}

#[tokio::test]
async fn a_second_signal_ends_at_once() {
    let gateway = Gateway::start().await;
    // A provider that takes the connection and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let mut serve = replica(&gateway)
        .set("PLUGINS__PLUGIN_A__SMTP_PORT", port)
        .start();
    let addresses = serve.ready().await;
    let mut client = authenticated(&gateway, addresses.starttls).await;
    client.begin_data("bob@example.com").await;
    client
        .write(b"From: ada@sandbox.example\r\nSubject: Hello\r\n\r\nIt works.\r\n.\r\n")
        .await;
    let _held = tokio::time::timeout(END, silent.accept())
        .await
        .unwrap()
        .unwrap();
    serve.signal("TERM").await;
    serve.logged("finishing the work in progress").await;
    still_running(&mut serve).await;
    serve.signal("TERM").await;
    let status = serve.end(END).await;
    assert_eq!(status.code(), Some(1), "{}", serve.stderr());
    let told = "a second signal cut off ";
    assert!(serve.stderr().contains(told), "{}", serve.stderr());
    assert_eq!(gateway.spooled().await, 1, "it is taken up again later");
    gateway.stop().await;
}

#[tokio::test]
async fn a_second_signal_that_cuts_nothing_off_is_no_failure() {
    let gateway = Gateway::start().await;
    let mut serve = replica(&gateway)
        .set("SHUTDOWN__ANNOUNCE_SECONDS", "3600")
        .start();
    let addresses = serve.ready().await;
    let _idle = authenticated(&gateway, addresses.starttls).await;
    let _silent = TcpStream::connect(addresses.http).await.unwrap();
    serve.signal("TERM").await;
    serve.logged("finishing the work in progress").await;
    serve.signal("TERM").await;
    let status = serve.end(END).await;
    assert_eq!(status.code(), Some(0), "{}", serve.stderr());
    gateway.stop().await;
}

/// Gives a process that would end the time to.
async fn still_running(serve: &mut Running) {
    let ended = tokio::time::timeout(Duration::from_millis(500), async {
        while !serve.has_ended() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(ended.await.is_err(), "it ended with a send under way");
}

#[tokio::test]
async fn processes_that_start_together_on_an_empty_database_all_come_up() {
    let url = database::create_empty().await;
    let (_folder, files) = certificates();
    let mut all: Vec<Running> = (0..3)
        .map(|_| Invocation::serve(&url, &files).start())
        .collect();
    for serve in &mut all {
        serve.ready().await;
    }
    for serve in &mut all {
        serve.terminate().await;
    }
}

#[tokio::test]
async fn a_database_that_goes_away_shows_in_readyz_and_does_not_hold_up_the_end() {
    let url = database::create().await;
    let (_folder, files) = certificates();
    let mut serve = Invocation::serve(&url, &files).start();
    let addresses = serve.ready().await;
    let (server, rest) = url.split_once("/test_").unwrap();
    let (name, parameters) = rest.split_once('?').unwrap();
    let mut other = database::connect(&format!("{server}/postgres?{parameters}")).await;
    sqlx::query(sqlx::AssertSqlSafe(format!(
        "DROP DATABASE test_{name} WITH (FORCE)"
    )))
    .execute(&mut other)
    .await
    .unwrap();
    let readyz = format!("http://{}/readyz", addresses.http);
    patience::until("a look that finds the database gone", async || {
        http_client().get(&readyz).send().await.unwrap().status() == 503
    })
    .await;
    serve.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_sends_at_once_over_two_processes_share_one_refresh() {
    let gateway = Gateway::start().await;
    let raised = |serve: Invocation| {
        serve
            .set("LIMITS__REQUESTS_PER_SECOND", "1000")
            .set("LIMITS__REQUESTS_BURST", "1000")
            .set("PLUGINS__PLUGIN_A__LIMITS__CONCURRENCY", "16")
    };
    let (mut first, mut second) = (
        raised(replica(&gateway)).start(),
        raised(replica(&gateway)).start(),
    );
    let doors = [first.ready().await.http, second.ready().await.http];
    // The provider has forgotten the token, and the database says that it has lapsed.
    let authorization = &gateway.sandbox.authorization;
    authorization.expire_access_tokens().await.unwrap();
    sqlx::query("UPDATE mailboxes SET access_token_expires_at = now() - interval '1 hour'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let sends = (0..50).map(|turn| send(&gateway, doors[turn % 2], "bob@example.com"));
    for (status, answer) in futures_util::future::join_all(sends).await {
        assert_eq!(status, 200, "{answer}");
    }
    assert_eq!(authorization.refreshes(), 1);
    assert_eq!(gateway.arrived().await.len(), 50);
    first.terminate().await;
    second.terminate().await;
    gateway.stop().await;
}
