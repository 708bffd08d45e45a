//! How long entries are kept: as long as the log, and longer than their app.

use std::sync::Arc;

use chrono::TimeDelta;
use mailgate::workers;
use mailgate_types::clock::{MovedClock, SharedClock};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::support::caller::path;
use crate::support::retention::kept_for;

/// One round of the worker that drops what is too old.
async fn drop_old(gateway: &Gateway, days: u32) {
    let clock: SharedClock = Arc::<MovedClock>::clone(&gateway.clock);
    let ended = CancellationToken::new();
    ended.cancel();
    workers::keep_partitions(gateway.daemon.pool.clone(), clock, kept_for(days), ended).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_dropped_with_the_log() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    gateway.clock.advance(TimeDelta::days(5));
    owner.create("Later").await;
    let both = ["app.created", "user.connected"];
    assert_eq!(actions(&owner, "").await, both);
    drop_old(&gateway, 7).await;
    assert_eq!(actions(&owner, "").await, both);
    // More of them than go together.
    let insert = "INSERT INTO audit_entries (id, subscriber_id, action, actor, details)
                  SELECT lpad(to_hex(number), 32, '0')::uuid, $1, 'app.changed', 'subscriber', '{}'
                  FROM generate_series(1, 2500) AS number";
    sqlx::query(insert)
        .bind(gateway.subscriber.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    // The gateway's own worker may have the right to drop at the moment.
    let dropped = async |gateway: &Gateway| {
        drop_old(gateway, 3).await;
        rows(gateway).await.len() == 1
    };
    gateway.eventually("the end of what is old", dropped).await;
    assert_eq!(actions(&owner, "").await, ["app.created"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trail_of_a_deleted_app_stays() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    owner.delete(&path(&gateway.app)).await.success(200);
    let all = ["app.deleted", "user.connected"];
    let is_gone = async |gateway: &Gateway| {
        let left: i64 = sqlx::query_scalar("SELECT count(*) FROM deleted_apps")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
        left == 0
    };
    for query in [
        String::new(),
        format!("?app_id={}", gateway.app.id),
        format!("?app_id={}", gateway.app.slug),
    ] {
        assert_eq!(actions(&owner, &query).await, all, "{query}");
    }
    gateway.clock.advance(TimeDelta::hours(3));
    gateway.eventually("its removal", is_gone).await;
    for query in [
        String::new(),
        format!("?app_id={}", gateway.app.id),
        format!("?app_id={}", gateway.app.slug),
    ] {
        assert_eq!(actions(&owner, &query).await, all, "{query}");
    }
    // A further app of the same name is the one that the name stands for.
    let again = owner.create("Demo").await;
    assert_eq!(again["app_id"], json!(gateway.app.slug));
    let query = format!("?app_id={}", gateway.app.slug);
    assert_eq!(actions(&owner, &query).await, ["app.created"]);
    gateway.stop().await;
}
