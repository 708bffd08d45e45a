//! How long entries are kept: as long as the log, and longer than their app.

use chrono::TimeDelta;
use serde_json::json;

use super::*;
use crate::support::caller::path;
use crate::support::retention::{kept_for, look_after};

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_dropped_with_the_log() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    gateway.clock.advance(TimeDelta::days(5));
    owner.create("Later").await;
    let both = ["app.created", "user.connected"];
    assert_eq!(actions(&owner, "").await, both);
    look_after(&gateway, kept_for(7)).await;
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
    look_after(&gateway, kept_for(3)).await;
    assert_eq!(rows(&gateway).await.len(), 1);
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
