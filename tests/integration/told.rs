//! What each outcome leaves behind: the log row, the attempts, the counters, and what the app's
//! endpoints are told; they agree to the last message.

use chrono::{DateTime, Utc};
use mailgate_types::clock::Clock;
use serde_json::{Value, json};
use sqlx::Row;

use crate::support::database;
use crate::support::gateway::Gateway;
use crate::support::stand_in::submission::{Answer, Stage};

/// A gateway whose app has an endpoint, and whose messages are tried twice again.
async fn start() -> Gateway {
    let gateway = Gateway::builder()
        .set("SENDING__RETRY_SECONDS", "60,300")
        .start()
        .await;
    sqlx::query("UPDATE apps SET webhook_url = 'https://127.0.0.1:9/mail'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    gateway
}

/// The events as they will be told, oldest first.
async fn events(gateway: &Gateway) -> Vec<Value> {
    let bodies: Vec<String> =
        sqlx::query_scalar("SELECT body FROM webhook_messages ORDER BY created_at, id")
            .fetch_all(&mut gateway.database().await)
            .await
            .unwrap();
    bodies
        .iter()
        .map(|body| serde_json::from_str(body).unwrap())
        .collect()
}

async fn attempts(gateway: &Gateway) -> Vec<(i32, String)> {
    sqlx::query_as("SELECT number, status FROM email_attempts ORDER BY log_id, number")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap()
}

/// The counters that aren't zero.
async fn counters(gateway: &Gateway) -> Vec<(String, i64)> {
    let counted = database::COUNTED;
    sqlx::query_as(sqlx::AssertSqlSafe(format!(
        "SELECT status, messages FROM {counted} AS counted WHERE messages <> 0 ORDER BY status"
    )))
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap()
}

async fn next_attempt(gateway: &Gateway) {
    let row = sqlx::query("SELECT next_attempt_at FROM spool WHERE state = 'deferred'")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    let at: DateTime<Utc> = row.get(0);
    gateway.clock.advance(at - gateway.clock.now());
}

fn names(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_sent_at_once() {
    let gateway = start().await;
    let (_, answer) = gateway.send_to("bob@example.com").await;
    let events = events(&gateway).await;
    assert_eq!(names(&events), ["email.sent"]);
    assert_eq!(events[0]["app_id"], gateway.app.id.to_string());
    assert_eq!(
        events[0]["data"],
        json!({"log_id": answer["log_id"], "from_address": answer["from"],
               "to_address": "bob@example.com", "subject": "Hello", "plugin": "plugin_a",
               "message_id": answer["message_id"]})
    );
    assert!(attempts(&gateway).await.is_empty());
    assert_eq!(counters(&gateway).await, [("sent".to_owned(), 1)]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_never_leaves() {
    let gateway = start().await;
    let (_, answer) = gateway.send_to("tempfail@example.com").await;
    assert_eq!(answer["status"], "failed_temp");
    let first = events(&gateway).await;
    assert_eq!(names(&first), ["email.failed_temp"]);
    assert_eq!(first[0]["data"]["retry_count"], 1);
    assert_eq!(first[0]["data"]["next_retry_at"], answer["next_retry_at"]);
    assert_eq!(first[0]["data"]["error"], answer["error"]);
    assert_eq!(counters(&gateway).await, [("failed_temp".to_owned(), 1)]);
    for attempt in 2..=3 {
        next_attempt(&gateway).await;
        gateway
            .eventually("the attempt", async |gateway| {
                attempts(gateway).await.len() == attempt
            })
            .await;
    }
    let temporary = "failed_temp".to_owned();
    assert_eq!(
        attempts(&gateway).await,
        [
            (1, temporary.clone()),
            (2, temporary),
            (3, "failed_perm".to_owned())
        ]
    );
    let events = events(&gateway).await;
    assert_eq!(
        names(&events),
        [
            "email.failed_temp",
            "email.failed_temp",
            "email.failed_perm"
        ]
    );
    assert_eq!(events[2]["data"]["final"], true);
    assert_eq!(counters(&gateway).await, [("failed_perm".to_owned(), 1)]);
    assert_eq!(gateway.logged().await[0].0, "failed_perm");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_fails_and_then_leaves() {
    let (stand_in, gateway) = crate::support::stand_in::StandIn::with_gateway().await;
    sqlx::query("UPDATE apps SET webhook_url = 'https://127.0.0.1:9/mail'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    (stand_in.submission).once(Stage::Rcpt, Answer::reply("451 4.7.1 later"));
    let (status, _) = crate::support::stand_in::send(&gateway, "bob@example.com").await;
    assert_eq!(status, 202);
    next_attempt(&gateway).await;
    gateway
        .eventually("the message's end", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
    assert_eq!(
        attempts(&gateway).await,
        [(1, "failed_temp".to_owned()), (2, "sent".to_owned())]
    );
    let events = events(&gateway).await;
    assert_eq!(names(&events), ["email.failed_temp", "email.sent"]);
    assert_eq!(events[1]["data"]["plugin"], "plugin_b");
    assert_eq!(counters(&gateway).await, [("sent".to_owned(), 1)]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_refused_and_one_that_nobody_knows_of() {
    let gateway = start().await;
    gateway.send_to("permfail@example.com").await;
    gateway.send_to("drop@example.com").await;
    let events = events(&gateway).await;
    assert_eq!(names(&events), ["email.failed_perm", "email.failed_perm"]);
    let told = events[1]["data"]["error"].as_str().unwrap();
    assert!(told.contains("may have arrived"), "{told}");
    let failed = "failed_perm".to_owned();
    assert_eq!(
        attempts(&gateway).await,
        [(1, failed.clone()), (1, failed.clone())]
    );
    assert_eq!(counters(&gateway).await, [(failed, 2)]);
    gateway.stop().await;
}
