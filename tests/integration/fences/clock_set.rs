//! A database's clock that was wrong and is set right: what it had put off comes at its time, and what may have arrived is
//! waited for.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use mailgate::workers;
use mailgate_types::clock::{MovedClock, SharedClock};
use mailgate_types::database_clock::DatabaseClock;
use mailgate_types::suspend_aware_instant::SuspendAwareInstant;
use sqlx::PgPool;

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
    // `None` while they are looked for, and a few minutes ahead afterwards; it was a day ahead.
    let replies: Option<DateTime<Utc>> = sqlx::query_scalar("SELECT replies_due_at FROM mailboxes")
        .fetch_one(&mut database)
        .await
        .unwrap();
    let soon = Utc::now() + TimeDelta::hours(1);
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

/// A gateway without a loop of its own, at whose database one message may have arrived.
async fn unconfirmed() -> Gateway {
    let gateway = Gateway::start().await;
    let (status, answer) = gateway.send_to("tempfail@example.com").await;
    assert_eq!(status, 202, "{answer}");
    gateway.stop_daemon().await;
    gateway
}

/// Leaves a sign of life; answers how many hours ahead are `left_by`, the next attempt and the end of a mailbox's pause.
async fn hours_ahead(gateway: &Gateway, before: &'static str, machine_hours: i64) -> [i64; 3] {
    let mut database = gateway.database().await;
    sqlx::raw_sql(before).execute(&mut database).await.unwrap();
    let machine = Arc::new(MovedClock::default());
    machine.advance(TimeDelta::hours(machine_hours));
    let clock: SharedClock = Arc::new(DatabaseClock::new(machine));
    clock.synchronize(Utc::now(), SuspendAwareInstant::now());
    let pool = PgPool::connect(&gateway.database_url).await.unwrap();
    let left = workers::leave_sign_of_life(&pool, &clock).await;
    left.unwrap();
    pool.close().await;
    let hours: (i64, i64, i64) = sqlx::query_as(
        "SELECT round(extract(epoch FROM left_by - now()) / 3600)::bigint,
                round(extract(epoch FROM next_attempt_at - now()) / 3600)::bigint,
                round(extract(epoch FROM parked_until - now()) / 3600)::bigint
         FROM spool JOIN mailboxes ON mailboxes.id = credential_id",
    )
    .fetch_one(&mut database)
    .await
    .unwrap();
    hours.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_arrived_is_waited_for_whichever_clock_was_wrong() {
    let gateway = unconfirmed().await;
    // It was ahead, and is right now.
    let ahead = "
        UPDATE spool SET outcome_unknown = true, left_by = now() + interval '3 hours',
                         next_attempt_at = now() + interval '8 hours';
        UPDATE mailboxes SET parked_until = now() + interval '7 hours',
                             refresh_lease_until = now() + interval '3 hours';
        UPDATE billing_jobs SET lease_until = now() + interval '20 minutes';
        UPDATE sign_of_life SET observed_at = now() + interval '3 hours'";
    assert_eq!(hours_ahead(&gateway, ahead, 0).await, [0, 5, 4]);
    // A lease that can be of before is kept, since somebody may be at work under it.
    let leases = "SELECT refresh_lease_until <= now() + interval '1 minute', lease_until > now() + interval '10 minutes'
                  FROM mailboxes, billing_jobs";
    let leases: (bool, bool) = sqlx::query_as(leases)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(leases, (true, true));
    // It was right, and is behind now: nothing was put off by it.
    let behind = "
        UPDATE spool SET left_by = now() + interval '3 hours', next_attempt_at = now() + interval '4 hours';
        UPDATE mailboxes SET parked_until = now() + interval '7 hours';
        UPDATE sign_of_life SET observed_at = now() + interval '3 hours'";
    assert_eq!(hours_ahead(&gateway, behind, 3).await, [3, 4, 7]);
    // It was behind, and is right now: what left by it may have left a moment ago.
    let was_behind = "
        UPDATE spool SET left_by = now() - interval '3 hours';
        UPDATE sign_of_life SET observed_at = now() - interval '3 hours'";
    assert_eq!(hours_ahead(&gateway, was_behind, 0).await, [0, 4, 7]);
    // Nothing was set.
    let nothing = "
        UPDATE spool SET left_by = now() - interval '3 hours';
        UPDATE sign_of_life SET observed_at = now() - interval '1 minute'";
    assert_eq!(hours_ahead(&gateway, nothing, 0).await, [-3, 4, 7]);
    gateway.stop().await;
}
