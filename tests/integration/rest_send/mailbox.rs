//! Which mailbox a message goes out from.

use chrono::TimeDelta;
use mailgate_types::plugin::Plugin;
use serde_json::json;

use super::send;
use crate::support::gateway::{self, Gateway, MAILBOX, create_app};

const NO_MAILBOX: (u16, &str) = (422, "no_mailbox");

async fn execute(gateway: &Gateway, statement: &'static str) {
    sqlx::query(statement)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}

/// Connects a mailbox a second after whatever came before.
async fn connect(gateway: &Gateway, user_id: Option<&str>, plugin: Plugin, name: &str) -> String {
    gateway.clock.advance(TimeDelta::seconds(1));
    let email = format!("{name}@sandbox.example");
    let connected = gateway.connect(user_id, plugin, &email).await;
    connected.user_key.0.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn user_id_picks_the_user_of_a_multiuser_app() {
    let gateway = Gateway::start().await;
    execute(&gateway, "UPDATE apps SET multiuser = true").await;
    let grace = connect(&gateway, Some("user-1"), Plugin::A, "grace").await;
    let alan = connect(&gateway, Some("user-2"), Plugin::A, "alan").await;
    for (user_id, sender) in [
        ("user-1", "grace@sandbox.example"),
        ("user-2", "alan@sandbox.example"),
        (grace.as_str(), "grace@sandbox.example"),
        (alan.as_str(), "alan@sandbox.example"),
        (alan.to_uppercase().as_str(), "alan@sandbox.example"),
    ] {
        let answer = send(&gateway, json!({ "user_id": user_id })).await;
        assert_eq!(answer.status, 200, "{user_id}: {}", answer.body);
        assert_eq!(answer.body["from"], sender, "{user_id}");
        assert_eq!(
            gateway.sandbox.inbox.list(1)[0].mailbox,
            sender,
            "{user_id}"
        );
    }
    for changes in [json!({}), json!({ "user_id": "" })] {
        let answer = send(&gateway, changes).await;
        assert_eq!(answer.wrong_fields(), ["user_id"]);
    }
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    execute(&gateway, "UPDATE apps SET multiuser = true").await;
    let (daemon, sandbox) = (&gateway.daemon, &gateway.sandbox);
    let elsewhere = gateway::connect(
        daemon,
        sandbox,
        other.id,
        Some("user-3"),
        Plugin::A,
        "eve@sandbox.example",
    )
    .await;
    for unknown in [
        "user-3",
        &elsewhere.user_key.0.to_string(),
        "USER-1",
        "user-1 ",
        "%",
        "grace@sandbox.example",
        "00000000-0000-7000-8000-000000000000",
    ] {
        let answer = send(&gateway, json!({ "user_id": unknown })).await;
        assert_eq!(answer.problem(), NO_MAILBOX, "{unknown}");
    }
    let answer = send(&gateway, json!({ "user_id": "x".repeat(256) })).await;
    assert_eq!(answer.wrong_fields(), ["user_id"]);
    assert_eq!(gateway.sandbox.inbox.count(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_forces_the_kind_of_mailbox() {
    let gateway = Gateway::start().await;
    let answer = send(&gateway, json!({ "plugin": "plugin_b" })).await;
    assert_eq!(answer.problem(), NO_MAILBOX);
    connect(&gateway, None, Plugin::B, "grace").await;
    for (changes, plugin, sender) in [
        (
            json!({ "plugin": "plugin_b" }),
            "plugin_b",
            "grace@sandbox.example",
        ),
        (json!({ "plugin": "plugin_a" }), "plugin_a", MAILBOX),
        (json!({}), "plugin_a", MAILBOX),
    ] {
        let answer = send(&gateway, changes.clone()).await;
        assert_eq!(answer.status, 200, "{changes}: {}", answer.body);
        assert_eq!(answer.body["plugin"], plugin, "{changes}");
        assert_eq!(answer.body["from"], sender, "{changes}");
    }
    let answer = send(&gateway, json!({ "plugin": "plugin_b_alt" })).await;
    assert_eq!(answer.wrong_fields(), ["plugin"]);
    execute(
        &gateway,
        "UPDATE mailboxes SET status = 'disconnected' WHERE plugin = 'plugin_a'",
    )
    .await;
    let answer = send(&gateway, json!({ "plugin": "plugin_a" })).await;
    assert_eq!(answer.problem(), NO_MAILBOX);
    let answer = send(&gateway, json!({})).await;
    assert_eq!(answer.body["plugin"], "plugin_b", "{}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mailbox_connected_first_wins_while_it_is_active() {
    let gateway = Gateway::start().await;
    execute(&gateway, "UPDATE apps SET multilink = true").await;
    connect(&gateway, None, Plugin::A, "grace").await;
    connect(&gateway, None, Plugin::B, "alan").await;
    let answer = send(&gateway, json!({})).await;
    assert_eq!(answer.body["from"], MAILBOX, "{}", answer.body);
    execute(
        &gateway,
        "UPDATE mailboxes SET status = 'disconnected' WHERE email LIKE 'ada@%'",
    )
    .await;
    let answer = send(&gateway, json!({})).await;
    assert_eq!(
        answer.body["from"], "grace@sandbox.example",
        "{}",
        answer.body
    );
    execute(&gateway, "UPDATE mailboxes SET status = 'disconnected'").await;
    let answer = send(&gateway, json!({})).await;
    assert_eq!(answer.problem(), NO_MAILBOX);
    assert_eq!(gateway.logged().await.len(), 2);
}

/// An app without multiuser has one user, whatever a caller names.
#[tokio::test(flavor = "multi_thread")]
async fn user_id_changes_nothing_without_multiuser() {
    let gateway = Gateway::start().await;
    let answer = send(&gateway, json!({ "user_id": "whoever" })).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["from"], MAILBOX);
}
