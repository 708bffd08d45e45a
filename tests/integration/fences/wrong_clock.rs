//! A gateway whose machine's clock is wrong: nothing is gone before its time, early or sent twice because of it, and what
//! it sends is logged at the right time.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_types::clock::{MovedClock, SharedClock};
use mailgate_types::database_clock::DatabaseClock;
use mailgate_types::ids::uuid_at;
use reqwest::header::HeaderMap;

use super::*;
use crate::support::stand_in::StandIn;

/// `POST /send` under an idempotency key; answers whether it is the answer to an earlier one.
async fn sent_by_key(sender: &Gateway, app: &Gateway) -> bool {
    let response = (sender.http)
        .post(format!("{}/send", sender.daemon.base_url))
        .header("x-send-key", app.app.send_key.expose())
        .header("idempotency-key", "order-1")
        .json(&message(app, None))
        .send()
        .await
        .unwrap();
    let headers: HeaderMap = response.headers().clone();
    assert_eq!(
        response.status().as_u16(),
        200,
        "{}",
        response.text().await.unwrap()
    );
    headers.contains_key("idempotent-replayed")
}

fn message(app: &Gateway, send_at: Option<DateTime<Utc>>) -> Value {
    let mut message = json!({
        "pk": app.app.pushable_key.expose(), "plugin": "plugin_b",
        "to": "bob@example.com", "subject": "Hello", "body": "It works.",
    });
    if let Some(time) = send_at {
        message["send_at"] = json!(time.to_rfc3339());
    }
    message
}

/// Leaves something that every round of removal takes away, whatever clock it goes by; returns the audit entry of it.
async fn leave_old_things(gateway: &Gateway) -> uuid::Uuid {
    let mut connection = gateway.database().await;
    sqlx::query(
        "INSERT INTO idempotency_keys (app_id, key, request_digest, log_id, created_at)
         VALUES (gen_random_uuid(), 'old', '', gen_random_uuid(), now() - interval '10 days')",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    let old = uuid_at(Utc::now() - TimeDelta::days(400));
    sqlx::query(
        "INSERT INTO audit_entries (id, action, actor, details) VALUES ($1, 'x', 'operator', '{}')",
    )
    .bind(old)
    .execute(&mut connection)
    .await
    .unwrap();
    old
}

async fn count(gateway: &Gateway, what: &str) -> i64 {
    sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {what}")))
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_wrong_clock_neither_removes_nor_hurries_nor_repeats_anything() {
    let stand_in = StandIn::start().await;
    let gateway = Gateway::builder().plugins(stand_in.plugins()).start().await;
    stand_in.connect(&gateway).await;
    assert!(!sent_by_key(&gateway, &gateway).await);
    let later = Utc::now() + TimeDelta::hours(2);
    let (status, answer) = gateway.send(message(&gateway, Some(later))).await;
    assert_eq!(status, 202, "{answer}");
    gateway.stop_daemon().await;
    for (logged, hours) in (2..).zip([3, 26, 100 * 24, -26]) {
        let old = leave_old_things(&gateway).await;
        let machine = Arc::new(MovedClock::default());
        machine.advance(TimeDelta::hours(hours));
        let clock: SharedClock = Arc::new(DatabaseClock::new(machine));
        let wrong = gateway
            .replica()
            .plugins(stand_in.plugins())
            .clock(clock)
            .start()
            .await;
        wrong
            .eventually("the rounds of removal", async |wrong| {
                count(wrong, "idempotency_keys WHERE key = 'old'").await == 0
                    && count(wrong, &format!("audit_entries WHERE id = '{old}'")).await == 0
            })
            .await;
        assert!(
            sent_by_key(&wrong, &gateway).await,
            "{hours} h: the same key sends again"
        );
        let waiting = "spool WHERE state = 'deferred' AND attempts = 0 AND send_at > now()";
        assert_eq!(
            count(&wrong, waiting).await,
            1,
            "{hours} h: the scheduled message"
        );
        let response = (wrong.http)
            .post(format!("{}/send", wrong.daemon.base_url))
            .header("x-send-key", gateway.app.send_key.expose())
            .json(&message(&gateway, None))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status().as_u16(), 200);
        wrong
            .eventually("everything in the log, at the right time", async |wrong| {
                count(
                    wrong,
                    "email_logs WHERE sent_at BETWEEN now() - interval '1 hour' AND now()",
                )
                .await
                    == logged
            })
            .await;
        wrong.stop().await;
    }
    gateway.stop().await;
}
