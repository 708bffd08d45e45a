//! Idempotency-Key at both doors: a caller that lost its answer asks again, and no second message goes
//! out.

use chrono::TimeDelta;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;

struct Told {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl Told {
    fn is_replayed(&self) -> bool {
        (self.headers.get("idempotent-replayed")).is_some_and(|value| value == "true")
    }
}

async fn send(gateway: &Gateway, key: &str, to: &str) -> Told {
    let request = gateway
        .http
        .post(format!("{}/send", gateway.daemon.base_url))
        .header("x-send-key", gateway.app.send_key.expose())
        .header("idempotency-key", key)
        .json(&json!({
            "pk": gateway.app.pushable_key.expose(),
            "to": to,
            "subject": "Hello",
            "body": "It works.",
        }));
    let response = request.send().await.unwrap();
    Told {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        body: response.json().await.unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_answer_comes_again_whatever_it_was() {
    let gateway = Gateway::start().await;
    for (to, status) in [
        ("bob@example.com", 200),
        ("tempfail@example.com", 202),
        ("permfail@example.com", 502),
        ("drop@example.com", 502),
    ] {
        let first = send(&gateway, to, to).await;
        assert_eq!(first.status, status, "{}", first.body);
        assert!(!first.is_replayed());
        let before = gateway.arrived().await.len();
        let again = send(&gateway, to, to).await;
        assert!(again.is_replayed(), "{}", again.body);
        assert_eq!(again.status, status);
        let without_request = |mut body: Value| {
            body.as_object_mut().unwrap().remove("request_id");
            body
        };
        assert_eq!(without_request(again.body), without_request(first.body));
        assert_eq!(gateway.arrived().await.len(), before);
    }
    assert_eq!(gateway.logged().await.len(), 4);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_twins_at_once_are_one_message() {
    let gateway = Gateway::builder()
        .set("LIMITS__REQUESTS_PER_SECOND", 100_000)
        .set("LIMITS__REQUESTS_BURST", 100_000)
        .start()
        .await;
    let gateway = std::sync::Arc::new(gateway);
    let mut twins = JoinSet::new();
    for _ in 0..1_000 {
        let gateway = gateway.clone();
        twins.spawn(async move { send(&gateway, "order 17", "bob@example.com").await });
    }
    let told = twins.join_all().await;
    let first = told
        .iter()
        .filter(|told| told.status == 200 && !told.is_replayed());
    assert_eq!(first.count(), 1);
    for told in &told {
        match told.status {
            200 => {}
            409 => {
                assert_eq!(told.body["code"], "idempotency_key_in_flight");
                assert!(told.headers.contains_key("retry-after"));
            }
            // A machine that is busy with others; whoever is told so has not sent.
            503 => assert!(told.headers.contains_key("retry-after")),
            _ => panic!("{} {}", told.status, told.body),
        }
    }
    assert_eq!(gateway.arrived().await.len(), 1);
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    assert_eq!(gateway.spooled().await, 0);
    // Whoever was told to wait gets the answer now.
    let later = send(&gateway, "order 17", "bob@example.com").await;
    assert!(later.status == 200 && later.is_replayed(), "{}", later.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_stands_for_one_request_of_one_app_for_a_day() {
    let gateway = Gateway::start().await;
    assert_eq!(send(&gateway, "k", "bob@example.com").await.status, 200);
    let other = send(&gateway, "k", "eve@example.com").await;
    assert_eq!(other.status, 422);
    assert_eq!(other.body["code"], "idempotency_key_reused");
    // A request that was never taken leaves its key free.
    let wrong = send(&gateway, "free", "nobody").await;
    assert_eq!(wrong.status, 422, "{}", wrong.body);
    assert_eq!(send(&gateway, "free", "bob@example.com").await.status, 200);
    for bad in ["", "é", &"x".repeat(256)] {
        let told = send(&gateway, bad, "bob@example.com").await;
        assert_eq!(told.status, 422, "{bad:?}: {}", told.body);
        assert_eq!(told.body["errors"][0]["field"], "Idempotency-Key");
    }
    assert_eq!(gateway.arrived().await.len(), 2);
    gateway.clock.advance(TimeDelta::hours(25));
    gateway
        .eventually("the key's end", async |gateway| {
            let left: i64 = sqlx::query_scalar("SELECT count(*) FROM idempotency_keys")
                .fetch_one(&mut gateway.database().await)
                .await
                .unwrap();
            left == 0
        })
        .await;
    let anew = send(&gateway, "k", "eve@example.com").await;
    assert!(anew.status == 200 && !anew.is_replayed(), "{}", anew.body);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submitted_message_has_its_key_in_a_header_that_does_not_leave() {
    let gateway = Gateway::start().await;
    let content = |key: &str, text: &str| {
        format!("From: {MAILBOX}\r\nTo: bob@example.com\r\n{key}Subject: Hello\r\n\r\n{text}")
    };
    let mut client = SmtpClient::authenticated(&gateway).await;
    let keyed = content("Idempotency-Key:\r\n order 17\r\n", "Hi");
    let first = client.submit("bob@example.com", keyed.as_bytes()).await;
    assert!(first.starts_with("250 2.0.0 log_"), "{first}");
    let again = client.submit("bob@example.com", keyed.as_bytes()).await;
    assert_eq!(again, first);
    let other = content("Idempotency-Key: order 17\r\n", "Another");
    let refused = client.submit("bob@example.com", other.as_bytes()).await;
    assert!(refused.starts_with("550 5.6.0 "), "{refused}");
    let twice = content("Idempotency-Key: a\r\nIdempotency-Key: b\r\n", "Hi");
    let refused = client.submit("bob@example.com", twice.as_bytes()).await;
    assert!(refused.starts_with("550 5.6.0 "), "{refused}");
    let arrived = gateway.arrived().await;
    assert_eq!(arrived.len(), 1);
    let arrived = String::from_utf8_lossy(&arrived[0]).to_lowercase();
    assert!(!arrived.contains("idempotency"), "{arrived}");
    assert!(!arrived.contains("order 17"), "{arrived}");
    gateway.stop().await;
}

/// Whoever stored the message may be about to take it back, and may be not: nothing is known.
#[tokio::test(flavor = "multi_thread")]
async fn a_queued_answer_that_cannot_be_bound_says_that_it_is_being_worked_on() {
    let gateway = Gateway::start().await;
    let first = send(&gateway, "order 17", "tempfail@example.com").await;
    assert_eq!(first.status, 202, "{}", first.body);
    let mut holder = gateway.database().await;
    for statement in ["BEGIN", "SELECT FROM idempotency_keys FOR UPDATE"] {
        sqlx::query(statement).execute(&mut holder).await.unwrap();
    }
    let again = send(&gateway, "order 17", "tempfail@example.com").await;
    assert_eq!(again.status, 409, "{}", again.body);
    assert_eq!(again.body["code"], "idempotency_key_in_flight");
    drop(holder);
    let known = send(&gateway, "order 17", "tempfail@example.com").await;
    assert!(known.status == 202 && known.is_replayed(), "{}", known.body);
    gateway.stop().await;
}
