//! Whose mailbox it becomes, and which other ones it replaces.

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use serde_json::json;

use super::{
    access_token, active, another_app, complete, connect, connect_by_session, connected,
    disconnected, events, execute, grants, left_with, rows, session, until_callback, walk,
};
use crate::support::gateway::{Gateway, MAILBOX, OPERATOR};

const GRACE: &str = "grace@sandbox.example";

async fn connected_at(
    gateway: &Gateway,
    email: &str,
) -> (mailgate_types::ids::CredentialId, uuid::Uuid, DateTime<Utc>) {
    let (id, user_key, at): (uuid::Uuid, uuid::Uuid, DateTime<Utc>) =
        sqlx::query_as("SELECT id, user_key, connected_at FROM mailboxes WHERE email = $1")
            .bind(email)
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
    (mailgate_types::ids::CredentialId(id), user_key, at)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_multilink_a_mailbox_replaces_the_other_of_its_plugin() {
    let gateway = Gateway::start().await;
    execute(
        &gateway,
        "UPDATE apps SET webhook_url = 'https://127.0.0.1:9/hook'",
    )
    .await;
    let ada = gateway.mailbox.credential;
    let token = access_token(&gateway, ada).await;
    let other_plugin = [("plugin", "plugin_b"), ("login_hint", "b@sandbox.example")];
    assert_eq!(
        walk(&gateway, &gateway.app, &other_plugin).await.status,
        200
    );
    assert_eq!(connect_by_session(&gateway, GRACE).await.status, 200);
    let rows = rows(&gateway, &gateway.app).await;
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.email.as_str(),
                row.status.as_str(),
                row.disconnect_reason.as_deref(),
                row.has_tokens,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (MAILBOX, "disconnected", Some("replaced"), false),
            ("b@sandbox.example", "active", None, true),
            (GRACE, "active", None, true),
        ]
    );
    let (b, ..) = connected_at(&gateway, "b@sandbox.example").await;
    let (grace, ..) = connected_at(&gateway, GRACE).await;
    let mut told = events(&gateway).await;
    told.sort_by_key(|(event, data)| (event.clone(), data["plugin"].to_string()));
    assert_eq!(
        told,
        [
            connected(&grace.to_string(), GRACE, "plugin_a"),
            connected(&b.to_string(), "b@sandbox.example", "plugin_b"),
            disconnected(&ada.to_string(), MAILBOX, "plugin_a", "replaced"),
        ]
    );
    gateway
        .eventually("the end of the grant", async |gateway| {
            !gateway.sandbox.authorization.authenticate(MAILBOX, &token)
        })
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_multilink_mailboxes_stand_side_by_side() {
    let gateway = Gateway::start().await;
    execute(
        &gateway,
        "UPDATE apps SET multilink = true, webhook_url = 'https://127.0.0.1:9/hook'",
    )
    .await;
    assert_eq!(connect(&gateway, &gateway.app, GRACE).await.status, 200);
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX, GRACE]);
    assert_eq!(events(&gateway).await.len(), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_of_a_multiuser_app_have_their_own() {
    let gateway = Gateway::start().await;
    execute(&gateway, "UPDATE apps SET multiuser = true").await;
    for (user, email) in [("u1", GRACE), ("u2", GRACE), ("u2", "eve@sandbox.example")] {
        let asked = json!({ "user_id": user, "login_hint": email });
        let token = session(&gateway, &gateway.app, asked).await;
        let parameters = [("plugin", "plugin_a"), ("session", token.as_str())];
        assert_eq!(walk(&gateway, &gateway.app, &parameters).await.status, 200);
    }
    let rows = rows(&gateway, &gateway.app).await;
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.email.as_str(),
                row.user_id.as_deref(),
                row.status.as_str(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (MAILBOX, None, "active"),
            ("eve@sandbox.example", Some("u2"), "active"),
            (GRACE, Some("u1"), "active"),
            (GRACE, Some("u2"), "disconnected"),
        ]
    );
    // The grant of the second one was the account's of the first, too.
    let before = grants(&gateway);
    assert_eq!(before, 4);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_address_again_keeps_its_id() {
    let gateway = Gateway::start().await;
    execute(
        &gateway,
        "UPDATE apps SET webhook_url = 'https://127.0.0.1:9/hook'",
    )
    .await;
    let before = connected_at(&gateway, MAILBOX).await;
    gateway.clock.advance(TimeDelta::minutes(5));
    assert_eq!(connect(&gateway, &gateway.app, MAILBOX).await.status, 200);
    assert_eq!(
        connected_at(&gateway, MAILBOX).await,
        before,
        "it was there all along"
    );
    assert_eq!(events(&gateway).await.len(), 1);

    // Revoking the forgotten grant of the same account might end the new one with it.
    assert_eq!(grants(&gateway), 2);
    assert_eq!(connect_by_session(&gateway, GRACE).await.status, 200);
    left_with(&gateway, 2).await;
    gateway.clock.advance(TimeDelta::minutes(5));
    assert_eq!(connect_by_session(&gateway, MAILBOX).await.status, 200);
    let (id, user_key, at) = connected_at(&gateway, MAILBOX).await;
    assert_eq!((id, user_key), (before.0, before.1));
    assert!(
        at > before.2 + TimeDelta::minutes(9),
        "it is connected anew"
    );
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX]);
    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    let names: Vec<String> = events(&gateway)
        .await
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let connected = names.iter().filter(|name| *name == "user.connected");
    assert_eq!((names.len(), connected.count()), (5, 3));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_callbacks_at_once_one_mailbox_stays() {
    let gateway = Gateway::start().await;
    execute(
        &gateway,
        "UPDATE apps SET multiuser = true, webhook_url = 'https://127.0.0.1:9/hook'",
    )
    .await;
    let mut callbacks = Vec::new();
    for number in 0..6 {
        let email = format!("racer-{number}@sandbox.example");
        let asked = json!({ "user_id": "new", "login_hint": email });
        let token = session(&gateway, &gateway.app, asked).await;
        let parameters = [("plugin", "plugin_a"), ("session", token.as_str())];
        callbacks.push(until_callback(&gateway, &gateway.app, &parameters).await);
    }
    let pages = join_all(callbacks.into_iter().map(complete)).await;
    for page in pages {
        assert_eq!(page.status, 200, "{}", page.body);
    }
    assert_eq!(
        active(&gateway, &gateway.app).await.len(),
        2,
        "and the first user's"
    );
    let users: i64 = sqlx::query_scalar("SELECT count(*) FROM end_users WHERE user_id = 'new'")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(users, 1);
    let events = events(&gateway).await;
    let told = |name: &str| events.iter().filter(|(event, _)| event == name).count();
    assert_eq!((told("user.connected"), told("user.disconnected")), (6, 5));
    left_with(&gateway, 2).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_account_may_be_connected_in_several_apps() {
    let gateway = Gateway::start().await;
    let other = another_app(&gateway, "Other").await;
    assert_eq!(connect(&gateway, &other, MAILBOX).await.status, 200);
    let token = access_token(&gateway, gateway.mailbox.credential).await;
    // Replaced here, but connected there: the account's grant is left alone.
    for email in [GRACE, "eve@sandbox.example"] {
        assert_eq!(connect_by_session(&gateway, email).await.status, 200);
    }
    left_with(&gateway, 3).await;
    assert!(gateway.sandbox.authorization.authenticate(MAILBOX, &token));
    // And with the last app it ends, which is asked for by that app's own token.
    assert!(
        gateway
            .daemon
            .mailboxes
            .delete_app(other.id, OPERATOR)
            .await
            .unwrap()
    );
    left_with(&gateway, 2).await;
    gateway.stop().await;
}
