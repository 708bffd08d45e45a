//! What is checked when a scheduled message is taken is checked again when it leaves.

use chrono::TimeDelta;
use mailgate_types::clock::Clock;
use serde_json::json;

use super::*;
use crate::command_line::process::Invocation;
use crate::support::caller::path;
use crate::support::gateway::{OPERATOR, SEAL_KEY};

const HOUR: TimeDelta = TimeDelta::hours(1);

/// The message's end after its time has come: status and error.
async fn end(gateway: &Gateway) -> (String, String) {
    gateway.clock.advance(HOUR);
    emptied(gateway).await;
    let (status, error) = gateway.logged().await.remove(0);
    (status, error.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_send_key_ends_it() {
    let gateway = Gateway::start().await;
    listen(&gateway).await;
    let owner = Caller::owner(&gateway).await;
    let id = scheduled(&gateway, "bob@example.com", HOUR).await;
    let path = path(&gateway.app);
    owner
        .reset(&format!("{path}/reset-send-key"))
        .await
        .success(200);
    // Whoever has the old one hears nothing of what is wrong with a message.
    let (status, answer) = schedule(&gateway, "bob@example.com", -HOUR).await;
    assert_eq!((status, &answer["code"]), (401, &json!("invalid_send_key")));
    let (status, error) = end(&gateway).await;
    assert_eq!(status, "failed_perm");
    assert_eq!(
        error,
        "The send key that the message was scheduled with has been renewed, deleted or restricted, or has expired"
    );
    assert!(gateway.arrived().await.is_empty());
    let told: Vec<_> = events(&gateway).await;
    let of_it: Vec<_> = told
        .iter()
        .filter(|(name, ..)| name == "email.failed_perm")
        .collect();
    assert_eq!(of_it.len(), 1, "{told:?}");
    assert_eq!(
        (&of_it[0].1, of_it[0].2.as_deref()),
        (&id, Some(error.as_str()))
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_pushable_key_or_another_seal_changes_nothing() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    scheduled(&gateway, "bob@example.com", HOUR).await;
    let path = path(&gateway.app);
    owner
        .reset(&format!("{path}/reset-pushable-key"))
        .await
        .success(200);
    gateway.stop_daemon().await;
    // Sealed anew, and the first key is no longer known.
    let new = "new:ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
    Invocation::new(["reseal"])
        .set("DATABASE__URL", &gateway.database_url)
        .set("SEAL__KEYS", format!("{new},{SEAL_KEY}"))
        .finish()
        .await
        .succeeds();
    run(
        &gateway,
        "UPDATE spool SET send_at = now(), opened_at = now(), next_attempt_at = now()",
    )
    .await;
    let mut child = crate::command_line::serve::replica(&gateway)
        .set("SEAL__KEYS", new)
        .start();
    child.ready().await;
    emptied(&gateway).await;
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    child.terminate().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_is_gone_or_may_no_longer_send_so_ends_it() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let path = path(&gateway.app);
    scheduled(&gateway, "bob@example.com", HOUR).await;
    let credential = format!("{path}/credentials/{}", gateway.mailbox.credential);
    owner.delete(&credential).await.success(200);
    let (status, error) = end(&gateway).await;
    assert_eq!(
        (status.as_str(), error.as_str()),
        ("failed_perm", "The mailbox is no longer connected")
    );
    let (status, answer) = schedule(&gateway, "bob@example.com", HOUR).await;
    assert_eq!((status, &answer["code"]), (422, &json!("no_mailbox")));
    gateway.stop().await;

    let gateway = Gateway::start().await;
    scheduled(&gateway, "bob@example.com", HOUR).await;
    run(
        &gateway,
        "UPDATE spool SET from_address = 'other@sandbox.example'",
    )
    .await;
    let (status, error) = end(&gateway).await;
    assert_eq!(status, "failed_perm");
    assert!(error.contains("may no longer send as"), "{error}");
    assert!(gateway.arrived().await.is_empty());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_subscription_holds_it_and_an_ended_one_ends_it() {
    let gateway = Gateway::start().await;
    let id = scheduled(&gateway, "bob@example.com", HOUR).await;
    run(
        &gateway,
        "UPDATE subscribers SET subscription_status = 'past_due'",
    )
    .await;
    let (status, answer) = schedule(&gateway, "bob@example.com", HOUR).await;
    assert_eq!(
        (status, &answer["code"]),
        (402, &json!("subscription_blocked"))
    );
    gateway.clock.advance(HOUR);
    gateway
        .eventually("it waits for the subscription", async |gateway| {
            number(
                gateway,
                "SELECT count(*) FROM spool WHERE awaits_subscription",
            )
            .await
                == 1
        })
        .await;
    let owner = Caller::owner(&gateway).await;
    let shown = owner.get(&format!("/logs/{id}")).await.success(200);
    assert_eq!(
        (&shown["status"], &shown["send_at"]),
        (&json!("failed_temp"), &json!(null))
    );
    // Trying it now would change nothing, and it leaves by itself.
    assert_eq!(
        retry(&owner, &id).await.problem(),
        (402, "subscription_blocked")
    );
    run(
        &gateway,
        "UPDATE subscribers SET subscription_status = 'active'",
    )
    .await;
    emptied(&gateway).await;
    assert_eq!(gateway.logged().await, [("sent".to_owned(), None)]);
    gateway.stop().await;

    let gateway = Gateway::start().await;
    scheduled(&gateway, "bob@example.com", HOUR).await;
    run(
        &gateway,
        "UPDATE subscribers SET subscription_status = 'canceled'",
    )
    .await;
    let (status, error) = end(&gateway).await;
    assert_eq!(status, "failed_perm");
    assert!(error.contains("subscription has ended"), "{error}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_or_a_subscriber_that_goes_takes_it_along() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let id = scheduled(&gateway, "bob@example.com", HOUR).await;
    owner.delete(&path(&gateway.app)).await.success(200);
    assert_eq!(gateway.spooled().await, 0);
    assert_eq!(usage(&gateway).await, 0);
    let gone = cancel(&owner, &id).await;
    assert_eq!(gone.problem(), (404, "log_not_found"));
    gateway.stop().await;

    let gateway = Gateway::start().await;
    scheduled(&gateway, "bob@example.com", HOUR).await;
    let deleted = (gateway.daemon.mailboxes).delete_subscriber(gateway.subscriber, OPERATOR);
    assert!(deleted.await.unwrap());
    assert_eq!(gateway.spooled().await, 0);
    let chunks = number(&gateway, "SELECT count(*) FROM spool_chunks").await;
    assert_eq!(chunks, 0);
    gateway.stop().await;
}

/// The tables of this release, and the statements with which the last one takes up what is due, and ends it.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_release_takes_it_up_at_its_time_too() {
    const CLAIM: &str = "WITH fence AS MATERIALIZED (
             SELECT id FROM gateways WHERE ended_at IS NULL LIMIT 1 FOR KEY SHARE
         )
         UPDATE spool SET state = 'open', gateway_id = fence.id, lease_until = NULL
         FROM fence
         WHERE spool.id = ANY (ARRAY(
             SELECT id FROM spool
             WHERE state = 'deferred' AND next_attempt_at <= $1
             ORDER BY next_attempt_at LIMIT 10 FOR UPDATE SKIP LOCKED
         ))";
    const DEFER: &str = "UPDATE spool
         SET state = 'deferred', attempts = 1, next_attempt_at = $1, lease_until = NULL,
             gateway_id = NULL, outcome_unknown = false, is_logged = true,
             awaits_subscription = false";
    const END: &str = "DELETE FROM spool WHERE $1::timestamptz IS NOT NULL AND is_logged";
    let gateway = Gateway::start().await;
    scheduled(&gateway, "bob@example.com", HOUR).await;
    let due = gateway.clock.now() + HOUR;
    let later = due + HOUR;
    for (statement, at, rows) in [
        (CLAIM, due - TimeDelta::minutes(1), 0),
        (CLAIM, due + TimeDelta::seconds(1), 1),
        (DEFER, later, 1),
        (END, later, 1),
    ] {
        let done = sqlx::query(statement)
            .bind(at)
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
        assert_eq!(done.rows_affected(), rows, "{statement}");
        // It counts from the moment it was taken, once.
        assert_eq!(usage(&gateway).await, i64::from(statement != END));
    }
    gateway.stop().await;
}
