//! What is kept, and when it goes.

use std::time::Duration;

use chrono::TimeDelta;
use mailgate::workers::Retention;
use mailgate_storage::webhook_messages;
use mailgate_types::clock::Clock;
use mailgate_types::event::Emission;
use mailgate_types::ids::LogId;

use super::{SECRET, attempted, configure, connected, gateway, happen, listener, queued, replied};
use crate::support::gateway::Gateway;
use crate::support::receiver::{Receiver, Reply};
use crate::support::retention::look_after;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_back_is_not_told() {
    let gateway = gateway().start().await;
    let receiver = Receiver::start().await;
    let events = &["user.connected", "email.reply"];
    configure(&gateway, gateway.app.id, &receiver.url("/"), events, SECRET).await;
    let log = LogId::at(gateway.clock.now());
    let mut transaction = gateway.daemon.pool.begin().await.unwrap();
    let emissions: [Emission; 2] = [replied(gateway.app.id, log), connected(gateway.app.id)];
    webhook_messages::emit(&mut transaction, &emissions, gateway.clock.now())
        .await
        .unwrap();
    webhook_messages::withdraw(&mut transaction, gateway.app.id, log)
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    attempted(&gateway, 1).await;
    assert_eq!(receiver.received()[0].json()["event"], "user.connected");
    assert!(queued(&gateway).await.is_empty());
    gateway.stop().await;
}

/// The partitions of a day.
async fn of_day(gateway: &Gateway, day: &str) -> usize {
    let names: Vec<String> = sqlx::query_scalar(
        "SELECT inhrelid::regclass::text FROM pg_inherits
         WHERE inhparent IN ('webhook_messages'::regclass, 'webhook_deliveries'::regclass)",
    )
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap();
    names.iter().filter(|name| name.ends_with(day)).count()
}

/// Where webhooks are tried for so many days.
fn tried_for(days: u64) -> Retention {
    Retention {
        log_days: 5,
        webhooks: Duration::from_hours(days * 24),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_age_as_the_log_does_but_for_those_that_are_still_queued() {
    let gateway = gateway()
        .set("WEBHOOKS__RETRY_SECONDS", "864000")
        .start()
        .await;
    let receiver = listener(&gateway).await;
    receiver.then([Reply::Status(500, "")]);
    let day = gateway.clock.now().format("%Y%m%d").to_string();
    happen(&gateway, &[connected(gateway.app.id)]).await;
    attempted(&gateway, 1).await;
    assert_eq!(of_day(&gateway, &day).await, 2);
    let counted = async |gateway: &Gateway| -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM webhook_counters")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap()
    };

    // Its day is over, and it still waits for its next attempt.
    gateway.clock.advance(TimeDelta::days(9));
    gateway
        .eventually("the days ahead are made", async |gateway| {
            look_after(gateway, tried_for(10)).await;
            let today = gateway.clock.now().format("%Y%m%d").to_string();
            of_day(gateway, &today).await == 2
        })
        .await;
    look_after(&gateway, tried_for(10)).await;
    assert_eq!(of_day(&gateway, &day).await, 2);
    assert!(!has_log(&gateway, &day).await, "the log waits for nobody");
    assert_eq!(counted(&gateway).await, 1);
    gateway.clock.advance(TimeDelta::days(2));
    let both = attempted(&gateway, 2).await;
    assert!(both[1].success);
    gateway
        .eventually("the day goes", async |gateway| {
            look_after(gateway, tried_for(10)).await;
            of_day(gateway, &day).await == 0 && counted(gateway).await == 0
        })
        .await;
    gateway.stop().await;
}

/// Whether the log has this day.
async fn has_log(gateway: &Gateway, day: &str) -> bool {
    sqlx::query_scalar("SELECT to_regclass('email_logs_' || $1) IS NOT NULL")
        .bind(day)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}

/// Whoever queues old webhooks again, for an endpoint that never takes them, keeps nothing of anybody's.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_queued_again_and_again_keeps_no_day() {
    let gateway = gateway().start().await;
    let receiver = listener(&gateway).await;
    let day = gateway.clock.now().format("%Y%m%d").to_string();
    happen(&gateway, &[connected(gateway.app.id)]).await;
    attempted(&gateway, 1).await;
    assert_eq!(receiver.received().len(), 1);
    sqlx::query(
        "INSERT INTO webhook_queue
             (message_id, endpoint_id, app_id, event, url, secret_sealed, attempts, state, due_at)
         SELECT id, app_id, app_id, event, 'https://127.0.0.1:9/', '', 1, 'waiting', now() + interval '1 year'
         FROM webhook_messages",
    )
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
    gateway.clock.advance(TimeDelta::days(4));
    look_after(&gateway, tried_for(1)).await;
    assert_eq!(of_day(&gateway, &day).await, 2);
    gateway.clock.advance(TimeDelta::days(3));
    gateway
        .eventually("the day goes", async |gateway| {
            look_after(gateway, tried_for(1)).await;
            of_day(gateway, &day).await == 0 && !has_log(gateway, &day).await
        })
        .await;
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM webhook_queue")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(left, 0, "nothing is left that could bring the day back");
    gateway.stop().await;
}
