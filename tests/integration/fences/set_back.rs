//! A database's clock that was ahead and is set right: what it had put off comes at its time.

use chrono::{DateTime, TimeDelta, Utc};
use mailgate::workers;
use mailgate_types::clock::SharedClock;

use super::*;
use crate::support::patience;
use crate::support::receiver::{Receiver, Reply};

/// All that waits for its time, as a clock three hours ahead leaves it.
const AHEAD: &str = "
    BEGIN;
    UPDATE spool SET next_attempt_at = now() + interval '3 hours' WHERE send_at IS NULL;
    UPDATE webhook_queue SET state = 'waiting', due_at = now() + interval '3 hours';
    UPDATE mailboxes SET replies_due_at = now() + interval '3 hours';
    UPDATE sign_of_life SET observed_at = now() + interval '3 hours', trusted_at = now() + interval '3 hours';
    COMMIT";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_clock_had_put_off_that_was_set_back_is_brought_forward() {
    let receiver = Receiver::start().await;
    receiver.always(Reply::Status(503, ""));
    let builder = Gateway::builder().set("WEBHOOKS__ALLOW_PRIVATE", true);
    let gateway = builder.start().await;
    let mut database = gateway.database().await;
    sqlx::query("UPDATE apps SET webhook_url = $1")
        .bind(receiver.url("/mail"))
        .execute(&mut database)
        .await
        .unwrap();
    let (status, answer) = gateway.send_to("tempfail@example.com").await;
    assert_eq!(status, 202, "{answer}");
    let later = Utc::now() + TimeDelta::hours(1);
    let scheduled = json!({"to": "bob@example.com", "subject": "Later", "body": "It works.", "send_at": later.to_rfc3339()});
    let (status, answer) = gateway.send(scheduled).await;
    assert_eq!(status, 202, "{answer}");
    patience::until("a failed webhook", async || receiver.count() == 1).await;

    sqlx::raw_sql(AHEAD).execute(&mut database).await.unwrap();
    let clock: SharedClock = gateway.clock.clone();
    let left = workers::leave_sign_of_life(&gateway.daemon.pool, &clock).await;
    left.unwrap();
    patience::until("a second attempt", async || {
        let attempts = sqlx::query_scalar("SELECT attempts FROM spool WHERE send_at IS NULL");
        let attempts: i32 = attempts
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
        attempts == 2
    })
    .await;
    patience::until("the webhook", async || receiver.count() > 1).await;
    // `None` once they were looked for.
    let replies: Option<DateTime<Utc>> = sqlx::query_scalar("SELECT replies_due_at FROM mailboxes")
        .fetch_one(&mut database)
        .await
        .unwrap();
    let soon = Utc::now() + TimeDelta::minutes(1);
    assert!(replies.is_none_or(|due| due < soon), "{replies:?}");
    let (is_due_then, waits): (bool, i32) = sqlx::query_as(
        "SELECT next_attempt_at = send_at, attempts FROM spool WHERE send_at IS NOT NULL",
    )
    .fetch_one(&mut database)
    .await
    .unwrap();
    assert_eq!((is_due_then, waits), (true, 0));
    gateway.stop().await;
}
