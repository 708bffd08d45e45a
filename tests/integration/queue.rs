//! The queue as its subscriber sees it and changes it: messages that leave at a time of their own, are tried now, or are
//! cancelled, and what waits for what.

mod changes;
mod checked;
mod races;
mod scheduled;
mod summary;

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_storage::spool::usage::{self, Usage};
use mailgate_types::clock::Clock;
use serde_json::{Value, json};

use crate::support::caller::{Answer, Caller, text};
use crate::support::gateway::Gateway;

/// A time ahead, as a caller gives it and as answers show it.
fn ahead(gateway: &Gateway, wait: TimeDelta) -> String {
    let time: DateTime<Utc> = gateway.clock.now() + wait;
    time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// The usual message to `to`, in `wait`.
async fn schedule(gateway: &Gateway, to: &str, wait: TimeDelta) -> (u16, Value) {
    let message = json!({
        "to": to, "subject": "Hello", "body": "It works.", "send_at": ahead(gateway, wait),
    });
    gateway.send(message).await
}

/// As [`schedule`]; its log id.
async fn scheduled(gateway: &Gateway, to: &str, wait: TimeDelta) -> String {
    let (status, answer) = schedule(gateway, to, wait).await;
    assert_eq!(
        (status, &answer["status"]),
        (202, &json!("scheduled")),
        "{answer}"
    );
    text(&answer, "log_id").to_owned()
}

/// A message that waits for its second attempt; its log id.
async fn waiting(gateway: &Gateway) -> String {
    let (status, answer) = gateway.send_to("tempfail@example.com").await;
    assert_eq!(
        (status, &answer["status"]),
        (202, &json!("failed_temp")),
        "{answer}"
    );
    text(&answer, "log_id").to_owned()
}

async fn cancel(caller: &Caller<'_>, log: &str) -> Answer {
    caller.reset(&format!("/logs/{log}/cancel")).await
}

async fn retry(caller: &Caller<'_>, log: &str) -> Answer {
    caller.reset(&format!("/logs/{log}/retry")).await
}

async fn run(gateway: &Gateway, statement: &'static str) {
    sqlx::query(statement)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}

async fn number(gateway: &Gateway, query: &'static str) -> i64 {
    sqlx::query_scalar(query)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

/// Everybody is told of all that happens to the app's messages, though nobody takes it.
async fn listen(gateway: &Gateway) {
    run(
        gateway,
        "UPDATE apps SET webhook_url = 'https://127.0.0.1:9/mail'",
    )
    .await;
}

/// The events so far: name, log id and error.
async fn events(gateway: &Gateway) -> Vec<(String, String, Option<String>)> {
    let bodies: Vec<String> =
        sqlx::query_scalar("SELECT body FROM webhook_messages ORDER BY created_at, id")
            .fetch_all(&mut gateway.database().await)
            .await
            .unwrap();
    let read = bodies.iter().map(|body| {
        let body: Value = serde_json::from_str(body).unwrap();
        let data = &body["data"];
        (
            text(&body, "event").to_owned(),
            data["log_id"].as_str().unwrap_or_default().to_owned(),
            data["error"].as_str().map(str::to_owned),
        )
    });
    read.collect()
}

/// What the app's quota counts, which is what is there.
async fn usage(gateway: &Gateway) -> i64 {
    let mut database = gateway.database().await;
    let counted = usage::of(&mut database, gateway.app.id).await.unwrap();
    let (messages, bytes): (i64, i64) = sqlx::query_as(
        "SELECT count(*), coalesce(sum(size_bytes), 0)::bigint FROM spool
         WHERE app_id = $1 AND (is_logged OR send_at IS NOT NULL)",
    )
    .bind(gateway.app.id.0)
    .fetch_one(&mut database)
    .await
    .unwrap();
    assert_eq!(counted.usage, Usage { messages, bytes });
    messages
}

/// Waits until nothing is in the spool any more.
async fn emptied(gateway: &Gateway) {
    gateway
        .eventually("the end of all messages", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
}

/// Waits until the clock's worker has had a look at what is due.
async fn looked_at(gateway: &Gateway) {
    // What comes behind a message that is due is looked at with it or later.
    let (status, answer) = gateway.send_to("tempfail@example.com").await;
    assert_eq!(status, 202, "{answer}");
    run(
        gateway,
        "UPDATE spool SET recipients = '{look@example.com}', next_attempt_at = '2000-01-01'
         WHERE is_logged AND send_at IS NULL",
    )
    .await;
    gateway
        .eventually("a look at what is due", async |gateway| {
            number(gateway, "SELECT count(*) FROM spool WHERE send_at IS NULL").await == 0
        })
        .await;
}
