//! The end of a real process, sentence by sentence.

use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use crate::command_line::process::{END, http_client};
use crate::command_line::serve::{authenticated, replica};
use crate::support::gateway::Gateway;
use crate::support::patience;

#[tokio::test]
async fn readyz_says_so_before_the_doors_close() {
    let gateway = Gateway::start().await;
    let mut serve = replica(&gateway)
        .set("SHUTDOWN__ANNOUNCE_SECONDS", "2")
        .start();
    let addresses = serve.ready().await;
    let began = Instant::now();
    serve.signal("TERM").await;
    serve.logged("finishing the work in progress").await;
    let response = http_client()
        .get(format!("http://{}/readyz", addresses.http))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status().as_u16(), 503);
    let problem: serde_json::Value = response.json().await.unwrap();
    assert_eq!(problem["code"], "stopping");
    // All else goes on meanwhile, new connections too.
    let mut client = authenticated(&gateway, addresses.starttls).await;
    let reply = client
        .submit(
            "bob@example.com",
            b"From: ada@sandbox.example\r\nSubject: x\r\n\r\nx",
        )
        .await;
    assert!(reply.starts_with("250 2.0.0 "), "{reply}");
    assert_eq!(serve.end(END).await.code(), Some(0), "{}", serve.stderr());
    assert!(began.elapsed() >= Duration::from_secs(2));
    assert!(TcpStream::connect(addresses.http).await.is_err());
    assert!(TcpStream::connect(addresses.starttls).await.is_err());
    assert!(TcpStream::connect(addresses.tls).await.is_err());
    gateway.stop().await;
}

#[tokio::test]
async fn a_message_in_the_midst_of_data_comes_to_its_end() {
    let gateway = Gateway::start().await;
    let mut serve = replica(&gateway).start();
    let addresses = serve.ready().await;
    let mut client = authenticated(&gateway, addresses.starttls).await;
    client.begin_data("bob@example.com").await;
    client
        .write(b"From: ada@sandbox.example\r\nSubject: half")
        .await;
    serve.signal("TERM").await;
    serve.logged("finishing the work in progress").await;
    gateway
        .eventually("a closed door", async |_| {
            TcpStream::connect(addresses.starttls).await.is_err()
        })
        .await;
    client.write(b" and whole\r\n\r\nIt works.\r\n.\r\n").await;
    let reply = client.reply().await;
    assert!(reply.starts_with("250 2.0.0 "), "{reply}");
    assert!(client.reply().await.starts_with("421 4.3.2"));
    assert_eq!(serve.end(END).await.code(), Some(0), "{}", serve.stderr());
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    assert_eq!(gateway.spooled().await, 0);
    gateway.stop().await;
}

#[tokio::test]
async fn the_deadline_is_kept_and_what_was_under_way_is_still_known() {
    let gateway = Gateway::start().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let mut serve = replica(&gateway)
        .set("PLUGINS__PLUGIN_A__SMTP_PORT", port)
        .set("SHUTDOWN__SECONDS", "2")
        .start();
    let addresses = serve.ready().await;
    let mut client = authenticated(&gateway, addresses.starttls).await;
    client.begin_data("bob@example.com").await;
    client
        .write(b"From: ada@sandbox.example\r\nSubject: x\r\n\r\nx\r\n.\r\n")
        .await;
    let _held = tokio::time::timeout(END, silent.accept())
        .await
        .unwrap()
        .unwrap();
    let began = Instant::now();
    serve.signal("TERM").await;
    assert_eq!(serve.end(END).await.code(), Some(0), "{}", serve.stderr());
    // The provider would be waited for much longer than its end was.
    assert!(began.elapsed() >= Duration::from_secs(2));
    assert!(serve.stderr().contains("the deadline has passed"));
    assert_eq!(
        gateway.spooled().await,
        1,
        "whoever ends its process's row takes it over"
    );
    gateway.stop().await;
}

/// A stored message as it lies in the spool: state, who has it in hand, whether it may be at the provider.
async fn stored(gateway: &Gateway) -> (String, Option<Uuid>, bool) {
    sqlx::query_as("SELECT state, gateway_id, outcome_unknown FROM spool")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_stored_message_that_waits_for_its_turn_is_given_back_at_once() {
    let gateway = Gateway::start().await;
    assert_eq!(gateway.send_to("tempfail@example.com").await.0, 202);
    gateway.stop_daemon().await;
    // 12 messages a minute: its turn comes in some seconds, which are waited out.
    let mut serve = replica(&gateway)
        .set("PLUGINS__PLUGIN_A__LIMITS__PER_MINUTE", "12")
        .start();
    serve.ready().await;
    for statement in [
        "INSERT INTO mailbox_pace (credential_id, next_turn, day_began, day_messages)
         SELECT id, now() + interval '5 seconds', now(), 1 FROM mailboxes
         ON CONFLICT (credential_id) DO UPDATE SET next_turn = excluded.next_turn",
        "UPDATE spool SET next_attempt_at = now()",
    ] {
        sqlx::query(statement)
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
    }
    gateway
        .eventually("a claimed message", async |gateway| {
            stored(gateway).await.0 == "open"
        })
        .await;
    serve.terminate().await;
    let (state, holder, outcome_unknown) = stored(&gateway).await;
    assert_eq!(
        (state.as_str(), holder, outcome_unknown),
        ("deferred", None, false)
    );
    let is_due: bool = sqlx::query_scalar("SELECT next_attempt_at <= now() FROM spool")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert!(is_due);
    gateway.stop().await;
}

#[tokio::test]
async fn what_is_under_way_stays_held_to_the_end() {
    let gateway = Gateway::start().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let mut serve = replica(&gateway)
        .set("PLUGINS__PLUGIN_A__SMTP_PORT", port)
        .set("SHUTDOWN__SECONDS", "60")
        .start();
    let addresses = serve.ready().await;
    let mut client = authenticated(&gateway, addresses.starttls).await;
    client.begin_data("bob@example.com").await;
    client
        .write(b"From: ada@sandbox.example\r\nSubject: x\r\n\r\nx\r\n.\r\n")
        .await;
    let _held = tokio::time::timeout(END, silent.accept())
        .await
        .unwrap()
        .unwrap();
    serve.signal("TERM").await;
    serve.logged("finishing the work in progress").await;
    // As if the end had taken most of the lease already: nobody else may take the message over.
    let holder = stored(&gateway).await.1.expect("it is in hand");
    sqlx::query("UPDATE gateways SET lease_until = now() WHERE id = $1")
        .bind(holder)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    patience::until("longer lease", async || {
        let confirmed: bool = sqlx::query_scalar(
            "SELECT lease_until > now() AND ended_at IS NULL FROM gateways WHERE id = $1",
        )
        .bind(holder)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
        confirmed
    })
    .await;
    serve.signal("TERM").await;
    assert_eq!(serve.end(END).await.code(), Some(1), "{}", serve.stderr());
    gateway.stop().await;
}
