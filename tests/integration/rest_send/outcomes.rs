//! What a message comes to: its answer, its log row, and what arrived.

use std::time::Duration;

use chrono::{DateTime, Utc};
use mailgate_types::clock::Clock;
use mailgate_types::ids::LogId;
use reqwest::Method;
use reqwest::header::RETRY_AFTER;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Answer, fields, request_to, send, set_subscription};
use crate::support::gateway::{Gateway, MAILBOX};

async fn newest_log_id(gateway: &Gateway) -> String {
    let id: uuid::Uuid = sqlx::query_scalar("SELECT id FROM email_logs ORDER BY id DESC LIMIT 1")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    LogId(id).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_goes_out_and_is_logged() {
    let gateway = Gateway::start().await;
    let answer = send(
        &gateway,
        json!({ "subject": "Grüße", "body": "Hallo\nWelt" }),
    )
    .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["status"], "sent");
    assert_eq!(answer.body["from"], MAILBOX);
    assert_eq!(answer.body["to"], "bob@example.com");
    assert_eq!(answer.body["plugin"], "plugin_a");
    assert_eq!(answer.body["log_id"], newest_log_id(&gateway).await);
    for absent in ["error", "retry_count", "next_retry_at"] {
        assert!(answer.body.get(absent).is_none(), "{}", answer.body);
    }
    let arrived = gateway.sandbox.inbox.list(2);
    assert_eq!(arrived.len(), 1);
    assert_eq!(arrived[0].envelope_from, MAILBOX);
    assert_eq!(arrived[0].envelope_to, ["bob@example.com"]);
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    assert_eq!(gateway.spooled().await, 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_subscription_says_whether_mail_leaves() {
    let gateway = Gateway::start().await;
    let blocked = (402, "subscription_blocked");
    for (status, expected) in [
        (Some("past_due"), blocked),
        (Some("trialing"), (200, "")),
        (Some("unpaid"), blocked),
        (Some("canceled"), blocked),
        (None, blocked),
        (Some("active"), (200, "")),
    ] {
        set_subscription(&gateway, status).await;
        let answer = send(&gateway, json!({})).await;
        assert_eq!(answer.problem(), expected, "{status:?}");
    }
    assert_eq!(gateway.sandbox.inbox.count(), 2);
    assert_eq!(gateway.logged().await.len(), 2);
    assert_eq!(gateway.spooled().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_failure_is_accepted_and_stored() {
    let gateway = Gateway::start().await;
    let before = gateway.clock.now();
    let answer = send(&gateway, json!({ "to": "tempfail@example.com" })).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let body = &answer.body;
    assert_eq!(body["status"], "failed_temp");
    assert_eq!(body["from"], MAILBOX);
    assert_eq!(body["to"], "tempfail@example.com");
    assert_eq!(body["plugin"], "plugin_a");
    assert_eq!(body["retry_count"], 1);
    let error = body["error"].as_str().unwrap();
    assert!(error.contains("Try again later (tempfail)"), "{error}");
    assert!(
        body["message_id"]
            .as_str()
            .unwrap()
            .ends_with("@sandbox.example>")
    );
    let next = body["next_retry_at"].as_str().unwrap();
    assert!(next.ends_with('Z'), "{next}");
    let wait = (next.parse::<DateTime<Utc>>().unwrap() - before).num_seconds();
    assert!((59..=90).contains(&wait), "in {wait} seconds");
    let spooled: uuid::Uuid = sqlx::query_scalar("SELECT id FROM spool WHERE state = 'deferred'")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(body["log_id"], LogId(spooled).to_string());
    assert_eq!(gateway.sandbox.inbox.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permanent_failure_is_the_providers() {
    let gateway = Gateway::start().await;
    for (recipient, words) in [
        ("permfail@example.com", "No such user here (permfail)"),
        ("limit@example.com", "Sending limit exceeded (limit)"),
    ] {
        let answer = send(&gateway, json!({ "to": recipient })).await;
        assert_eq!(answer.problem(), (502, "provider_rejected"), "{recipient}");
        let detail = answer.body["detail"].as_str().unwrap();
        assert!(detail.contains(words), "{detail}");
        assert_eq!(answer.body["log_id"], newest_log_id(&gateway).await);
    }
    for (status, error) in gateway.logged().await {
        assert_eq!(status, "failed_perm");
        assert!(error.is_some());
    }
    assert_eq!(gateway.logged().await.len(), 2);
    assert_eq!(gateway.spooled().await, 0);
    assert_eq!(gateway.sandbox.inbox.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_end_is_told_as_such() {
    let gateway = Gateway::start().await;
    let answer = send(&gateway, json!({ "to": "drop@example.com" })).await;
    assert_eq!(answer.problem(), (502, "outcome_unknown"));
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(detail.contains("may have arrived"), "{detail}");
    assert_eq!(answer.body["log_id"], newest_log_id(&gateway).await);
    assert_eq!(gateway.sandbox.inbox.count(), 1);
    assert_eq!(gateway.logged().await[0].0, "failed_perm");
    assert_eq!(gateway.spooled().await, 0);
}

/// The whole request as bytes, so that a test can stop anywhere within it.
fn raw_request(gateway: &Gateway, to: &str) -> Vec<u8> {
    let body = fields(gateway, &json!({ "to": to })).to_string();
    format!(
        "POST /send HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         X-Send-Key: {}\r\nContent-Length: {}\r\n\r\n{body}",
        gateway.app.send_key.expose(),
        body.len()
    )
    .into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_leaves_leaves_one_message_and_a_whole_log_row() {
    let gateway = Gateway::start().await;
    let mut caller = TcpStream::connect(gateway.daemon.http_address)
        .await
        .unwrap();
    let request = raw_request(&gateway, "slow@example.com");
    let hold = gateway.sandbox.slow.hold();
    caller.write_all(&request).await.unwrap();
    gateway
        .eventually("the message is in hand", async |gateway| {
            gateway.spooled().await == 1
        })
        .await;
    drop(caller);
    drop(hold);
    gateway
        .eventually("the log row is written", async |gateway| {
            gateway.logged().await == [("sent".to_owned(), None)]
        })
        .await;
    assert_eq!(gateway.sandbox.inbox.count(), 1);
    assert_eq!(gateway.spooled().await, 0);
}

/// The caller is told like of any other failure, and the message goes out all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_beyond_its_time_is_answered() {
    let gateway = Gateway::builder()
        .set("HTTP__REQUEST_SECONDS", 1)
        .start()
        .await;
    let hold = gateway.sandbox.slow.hold();
    let answer = send(&gateway, json!({ "to": "slow@example.com" })).await;
    assert_eq!(answer.problem(), (504, "timeout"));
    assert_eq!(answer.headers["cache-control"], "no-store");
    drop(hold);
    gateway
        .eventually("the log row is written", async |gateway| {
            gateway.logged().await == [("sent".to_owned(), None)]
        })
        .await;
    assert_eq!(gateway.sandbox.inbox.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_request_sends_nothing() {
    let gateway = Gateway::start().await;
    let mut caller = TcpStream::connect(gateway.daemon.http_address)
        .await
        .unwrap();
    let request = raw_request(&gateway, "bob@example.com");
    caller
        .write_all(&request[..request.len() - 1])
        .await
        .unwrap();
    drop(caller);
    let inbox = gateway.sandbox.inbox.clone();
    // Everything that was begun has ended after this.
    gateway.stop().await;
    assert_eq!(inbox.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_database_the_gateway_asks_to_come_again() {
    let gateway = Gateway::start().await;
    gateway.daemon.pool.close().await;
    let answer = send(&gateway, json!({})).await;
    assert_eq!(answer.problem(), (503, "unavailable"));
    let seconds: u64 = answer.headers[RETRY_AFTER]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(Duration::from_secs(seconds) <= Duration::from_mins(1));
    let readyz = || request_to(&gateway, Method::GET, "/readyz");
    gateway
        .eventually("a look that finds the database gone", async |_| {
            readyz().send().await.unwrap().status() == 503
        })
        .await;
    let answer = Answer::to(readyz()).await;
    assert_eq!(answer.problem(), (503, "unavailable"));
    let alive = request_to(&gateway, Method::GET, "/healthz")
        .send()
        .await
        .unwrap();
    assert_eq!(alive.status(), 200);
    assert_eq!(gateway.sandbox.inbox.count(), 0);
}
