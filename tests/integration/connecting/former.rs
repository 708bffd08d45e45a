//! Mailboxes that were disconnected long ago: they go, and so do users who have no other.

use chrono::{DateTime, TimeDelta, Utc};
use mailgate_types::clock::Clock as _;
use mailgate_types::plugin::Plugin;
use tokio_util::sync::CancellationToken;

use crate::support::gateway::{Gateway, MAILBOX, OPERATOR};

const RETENTION_DAYS: u32 = 90;

async fn remove(gateway: &Gateway, retention_days: u32) {
    let stop = CancellationToken::new();
    let removed = (gateway.daemon.mailboxes).remove_former(retention_days, &stop);
    removed.await.unwrap();
}

async fn texts(gateway: &Gateway, query: &'static str) -> Vec<String> {
    sqlx::query_scalar(query)
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap()
}

/// The addresses of all mailboxes.
async fn mailboxes(gateway: &Gateway) -> Vec<String> {
    texts(gateway, "SELECT email FROM mailboxes ORDER BY email").await
}

/// The users, but for the one of a single-user app.
async fn users(gateway: &Gateway) -> Vec<String> {
    let users = "SELECT user_id FROM end_users WHERE user_id IS NOT NULL ORDER BY user_id";
    texts(gateway, users).await
}

#[tokio::test(flavor = "multi_thread")]
async fn they_go_after_a_year_and_users_without_any_go_with_them() {
    let gateway = Gateway::start().await;
    sqlx::query("UPDATE apps SET multiuser = true, multilink = true")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let app = gateway.app.id;
    let mut connected = Vec::new();
    for (user, name) in [("one", "bea"), ("two", "cyd"), ("two", "dan")] {
        let email = format!("{name}@sandbox.example");
        connected.push(gateway.connect(Some(user), Plugin::A, &email).await);
    }
    for mailbox in &connected[..2] {
        let ended = (gateway.daemon.mailboxes).disconnect(app, mailbox.credential, OPERATOR);
        assert!(ended.await.unwrap());
    }
    let all = [MAILBOX, "bea", "cyd", "dan"].map(|name| match name {
        MAILBOX => MAILBOX.to_owned(),
        name => format!("{name}@sandbox.example"),
    });
    gateway.clock.advance(TimeDelta::days(364));
    remove(&gateway, RETENTION_DAYS).await;
    assert_eq!(mailboxes(&gateway).await, all);
    gateway.clock.advance(TimeDelta::days(2));
    // While the log may still name them, they stay.
    remove(&gateway, 400).await;
    assert_eq!(mailboxes(&gateway).await, all);
    remove(&gateway, RETENTION_DAYS).await;
    assert_eq!(mailboxes(&gateway).await, [&*all[0], &*all[3]]);
    assert_eq!(users(&gateway).await, ["two"]);
    // Whoever comes back after all is somebody new.
    let again = gateway.connect(Some("one"), Plugin::A, &all[1]).await;
    assert_ne!(again.credential, connected[0].credential);
    assert_ne!(again.user_key, connected[0].user_key);
    assert_eq!(users(&gateway).await, ["one", "two"]);
    gateway.stop().await;
}

/// More than one round, of two apps.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_go_in_rounds() {
    let gateway = Gateway::start().await;
    let (_, other) = crate::support::gateway::create_app(&gateway.daemon, "Other").await;
    let long_ago = gateway.clock.now() - TimeDelta::days(366);
    for (app, number) in [(gateway.app.id, 2_500), (other.id, 7)] {
        insert(&gateway, app, long_ago, number).await;
    }
    insert(&gateway, other.id, long_ago + TimeDelta::days(2), 3).await;
    remove(&gateway, RETENTION_DAYS).await;
    assert_eq!(mailboxes(&gateway).await.len(), 1 + 3);
    let users: i64 = sqlx::query_scalar("SELECT count(*) FROM end_users")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(users, 1 + 3);
    gateway.stop().await;
}

/// Former mailboxes of an app, each of a user of its own.
async fn insert(
    gateway: &Gateway,
    app: mailgate_types::ids::AppId,
    disconnected_at: DateTime<Utc>,
    number: i64,
) {
    sqlx::query(
        "WITH users AS (
             INSERT INTO end_users (user_key, app_id, user_id, created_at)
             SELECT gen_random_uuid(), $1, gen_random_uuid()::text, $2 FROM generate_series(1, $3)
             RETURNING user_key
         )
         INSERT INTO mailboxes
             (id, app_id, user_key, plugin, email, email_lookup, status, disconnect_reason, scopes,
              connected_at, disconnected_at)
         SELECT gen_random_uuid(), $1, user_key, 'plugin_b', 'x@example.com', 'x@example.com',
                'disconnected', 'removed', '{}', $2, $2
         FROM users",
    )
    .bind(app.0)
    .bind(disconnected_at)
    .bind(number)
    .execute(&mut gateway.database().await)
    .await
    .unwrap();
}
