//! A database that is restarted, full, locked or used up: callers are told at once to come again, and it mends
//! by itself.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _};

use crate::crash::database::DurablePostgres;
use crate::support::database;
use crate::support::gateway::Gateway;
use crate::support::smtp_client::SmtpClient;

/// A few seconds, and what a busy machine makes of them; without a limit nothing would answer at all, since what
/// is waited for doesn't come before.
const SOON: Duration = Duration::from_mins(1);

const MESSAGE: &[u8] = b"From: ada@sandbox.example\r\nSubject: Hello\r\n\r\nIt works.";

/// `POST /send`: status, code or status word, Retry-After, and how long it took.
async fn send(gateway: &Gateway) -> (u16, Value, Option<String>, Duration) {
    let began = Instant::now();
    let response = gateway
        .http
        .post(format!("{}/send", gateway.daemon.base_url))
        .header("x-send-key", gateway.app.send_key.expose())
        .json(&json!({
            "pk": gateway.app.pushable_key.expose(),
            "to": "bob@example.com", "subject": "Hello", "body": "It works.",
        }))
        .send()
        .await
        .unwrap();
    let status = response.status().as_u16();
    let after = response
        .headers()
        .get("retry-after")
        .map(|it| it.to_str().unwrap().to_owned());
    (
        status,
        response.json().await.unwrap(),
        after,
        began.elapsed(),
    )
}

/// Refused in a few seconds, with words that say to come again.
async fn refused_at_once(gateway: &Gateway, what: &str) {
    let (status, answer, after, took) = send(gateway).await;
    assert_eq!(status, 503, "{what}: {answer}");
    assert_eq!(answer["code"], "unavailable", "{what}");
    assert!(after.is_some(), "{what}: no Retry-After");
    assert!(took < SOON, "{what}: {took:?}");
}

async fn sends_again(gateway: &Gateway) {
    gateway
        .eventually("a send that works again", async |gateway| {
            send(gateway).await.0 == 200
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_in_mid_traffic_is_told_and_mended() {
    let mut server = DurablePostgres::start().await;
    let url = server.create_database().await;
    let gateway = Gateway::builder().database(&url).start().await;
    assert_eq!(send(&gateway).await.0, 200);
    let mut session = SmtpClient::authenticated(&gateway).await;
    server.kill().await;
    refused_at_once(&gateway, "the server is gone").await;
    let began = Instant::now();
    let reply = session.submit("bob@example.com", MESSAGE).await;
    assert!(reply.starts_with("451 4.3.0"), "{reply}");
    assert!(began.elapsed() < SOON);
    gateway
        .eventually("a look that finds the server gone", async |gateway| {
            let readyz = format!("{}/readyz", gateway.daemon.base_url);
            gateway.http.get(readyz).send().await.unwrap().status() == 503
        })
        .await;
    server.restart().await;
    sends_again(&gateway).await;
    let reply = session.submit("bob@example.com", MESSAGE).await;
    assert!(
        reply.starts_with("250 2.0.0"),
        "the same session goes on: {reply}"
    );
    // What was answered as sent was sent, and nothing else.
    let sent = gateway
        .logged()
        .await
        .iter()
        .filter(|(status, _)| status == "sent")
        .count();
    assert_eq!(gateway.arrived().await.len(), sent);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_and_a_used_up_pool_hold_nobody_for_long() {
    let gateway = Gateway::builder()
        .set("DATABASE__MAX_CONNECTIONS", 2)
        .start()
        .await;
    let mut other = gateway.database().await;
    let mut holder = other.begin().await.unwrap();
    holder
        .execute("LOCK TABLE subscribers, apps, mailboxes IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let me = async || {
        let began = Instant::now();
        let request = gateway.http.get(format!("{}/me", gateway.daemon.base_url));
        let request = request.header("x-api-secret", format!("sk_{}", "a".repeat(43)));
        let response = request.send().await.unwrap();
        let after = response.headers().contains_key("retry-after");
        (response.status().as_u16(), after, began.elapsed())
    };
    // More callers than there are connections.
    let told = futures_util::future::join_all((0..8).map(|_| me())).await;
    for (status, after, took) in told {
        assert_eq!((status, after), (503, true));
        assert!(took < SOON, "{took:?}");
    }
    refused_at_once(&gateway, "locked").await;
    holder.rollback().await.unwrap();
    sends_again(&gateway).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_takes_too_long_is_ended_and_maintenance_is_not() {
    let gateway = Gateway::builder()
        .set("DATABASE__STATEMENT_SECONDS", 1)
        .start()
        .await;
    let mut pooled = gateway.daemon.pool.acquire().await.unwrap();
    let ended = sqlx::query("SELECT pg_sleep(20)")
        .execute(&mut *pooled)
        .await
        .unwrap_err();
    let code = ended
        .as_database_error()
        .and_then(|error| error.code().map(std::borrow::Cow::into_owned));
    assert_eq!(code.as_deref(), Some("57014"), "{ended}");
    drop(pooled);
    let mut slow = mailgate_storage::database::pool::maintenance(&gateway.daemon.pool)
        .await
        .unwrap();
    slow.execute("SELECT pg_sleep(2)").await.unwrap();
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_not_waited_for_as_long_as_a_statement_may_take() {
    let gateway = Gateway::builder()
        .set("DATABASE__STATEMENT_SECONDS", 60)
        .start()
        .await;
    let mut other = gateway.database().await;
    let mut holder = other.begin().await.unwrap();
    holder
        .execute("LOCK TABLE mailboxes IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let mut pooled = gateway.daemon.pool.acquire().await.unwrap();
    let began = Instant::now();
    let ended = sqlx::query("SELECT id FROM mailboxes")
        .execute(&mut *pooled)
        .await
        .unwrap_err();
    assert!(began.elapsed() < SOON);
    let code = ended
        .as_database_error()
        .and_then(|error| error.code().map(std::borrow::Cow::into_owned));
    assert_eq!(code.as_deref(), Some("55P03"), "{ended}");
    drop(pooled);
    holder.rollback().await.unwrap();
    sends_again(&gateway).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_and_mends() {
    let gateway = Gateway::start().await;
    let mut other = database::connect(&gateway.database_url).await;
    other
        .execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
             CREATE TRIGGER full_disk BEFORE INSERT ON spool EXECUTE FUNCTION full_disk();",
        )
        .await
        .unwrap();
    refused_at_once(&gateway, "no space").await;
    let mut session = SmtpClient::authenticated(&gateway).await;
    let reply = session.submit("bob@example.com", MESSAGE).await;
    assert!(reply.starts_with("451 4.3.0"), "{reply}");
    assert_eq!(
        gateway.arrived().await.len(),
        0,
        "nothing leaves that can't be written down"
    );
    other
        .execute("DROP TRIGGER full_disk ON spool")
        .await
        .unwrap();
    sends_again(&gateway).await;
    let reply = session.submit("bob@example.com", MESSAGE).await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    gateway.stop().await;
}
