//! `from`: which of several mailboxes sends, and the name that recipients see.

use mailgate_types::plugin::Plugin;
use serde_json::json;

use super::{parsed, send, start, take};
use crate::support::gateway::{self, Gateway, MAILBOX, create_app};

const NO_MAILBOX: (u16, &str) = (422, "no_mailbox");

const GRACE: &str = "grace@sandbox.example";

const ALAN: &str = "alan@sandbox.example";

async fn execute(gateway: &Gateway, statement: &'static str) {
    sqlx::query(statement)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}

/// An app with three mailboxes.
async fn start_with_three() -> Gateway {
    let gateway = start().await;
    execute(&gateway, "UPDATE apps SET multilink = true").await;
    gateway.connect(None, Plugin::A, GRACE).await;
    gateway.connect(None, Plugin::B, ALAN).await;
    gateway
}

#[tokio::test(flavor = "multi_thread")]
async fn from_chooses_among_three_mailboxes() {
    let gateway = start_with_three().await;
    for (from, plugin, sender) in [
        (MAILBOX, "plugin_a", MAILBOX),
        (GRACE, "plugin_a", GRACE),
        (ALAN, "plugin_b", ALAN),
        ("GRACE@Sandbox.Example", "plugin_a", GRACE),
        ("<alan@sandbox.example>", "plugin_b", ALAN),
    ] {
        for more in [json!({}), json!({ "plugin": plugin })] {
            let mut changes = more;
            changes["from"] = json!(from);
            let answer = send(&gateway, changes.clone()).await;
            assert_eq!(answer.status, 200, "{changes}: {}", answer.body);
            assert_eq!(answer.body["from"], sender, "{changes}");
            assert_eq!(answer.body["plugin"], plugin, "{changes}");
            assert_eq!(gateway.sandbox.inbox.list(1)[0].mailbox, sender);
            let message = parsed(&take(&gateway).await);
            let shown = message.from().unwrap().first().unwrap();
            assert_eq!(shown.address(), Some(sender), "{changes}");
            assert_eq!(shown.name(), None, "{changes}");
        }
    }
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    let (daemon, sandbox) = (&gateway.daemon, &gateway.sandbox);
    let elsewhere = "eve@sandbox.example";
    gateway::connect(daemon, sandbox, other.id, None, Plugin::A, elsewhere).await;
    for changes in [
        json!({ "from": elsewhere }),
        json!({ "from": "nobody@sandbox.example" }),
        json!({ "from": "ada@sandbox.example.org" }),
        json!({ "from": ALAN, "plugin": "plugin_a" }),
        json!({ "from": "ada@sandbox.example <eve@sandbox.example>" }),
    ] {
        let answer = send(&gateway, changes.clone()).await;
        if changes["from"].as_str().unwrap().contains('<') {
            assert_eq!(answer.wrong_fields(), ["from"], "{changes}");
        } else {
            assert_eq!(answer.problem(), NO_MAILBOX, "{changes}");
            let detail = answer.body["detail"].as_str().unwrap();
            assert!(detail.contains("from"), "{detail}");
        }
    }
    execute(
        &gateway,
        "UPDATE mailboxes SET status = 'disconnected' WHERE email LIKE 'grace@%'",
    )
    .await;
    let answer = send(&gateway, json!({ "from": GRACE })).await;
    assert_eq!(answer.problem(), NO_MAILBOX);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_is_the_given_users_own() {
    let gateway = start().await;
    execute(&gateway, "UPDATE apps SET multiuser = true").await;
    let grace = gateway.connect(Some("user-1"), Plugin::A, GRACE).await;
    gateway.connect(Some("user-2"), Plugin::A, ALAN).await;
    let grace = grace.user_key.0.to_string();
    for (user_id, from, expected) in [
        ("user-1", GRACE, (200, "")),
        (grace.as_str(), GRACE, (200, "")),
        ("user-2", ALAN, (200, "")),
        ("user-2", GRACE, NO_MAILBOX),
        ("user-1", ALAN, NO_MAILBOX),
        (grace.as_str(), ALAN, NO_MAILBOX),
        ("nobody", GRACE, NO_MAILBOX),
    ] {
        let answer = send(&gateway, json!({ "user_id": user_id, "from": from })).await;
        assert_eq!(answer.problem(), expected, "{user_id} {from}");
    }
    let answer = send(&gateway, json!({ "from": GRACE })).await;
    assert_eq!(answer.wrong_fields(), ["user_id"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_stands_before_the_address() {
    let gateway = start().await;
    for (from, name) in [
        ("Ada <ada@sandbox.example>", "Ada"),
        ("Ada K. Lovelace <ADA@sandbox.example>", "Ada K. Lovelace"),
        (
            "\"Lovelace, \\\"Ada\\\" <x>\" <ada@sandbox.example>",
            "Lovelace, \"Ada\" <x>",
        ),
        (
            "\"ada@sandbox.example\" <ada@sandbox.example>",
            "ada@sandbox.example",
        ),
        ("\"Ada @ Work\" <ada@sandbox.example>", "Ada @ Work"),
        ("Jörg Grüße 🎉 <ada@sandbox.example>", "Jörg Grüße 🎉"),
        ("=?utf-8?q?x?= <ada@sandbox.example>", "=?utf-8?q?x?="),
        (
            &format!("{} <ada@sandbox.example>", "名".repeat(255)),
            &"名".repeat(255),
        ),
    ] {
        let answer = send(&gateway, json!({ "from": from })).await;
        assert_eq!(answer.status, 200, "{from}: {}", answer.body);
        assert_eq!(answer.body["from"], MAILBOX, "{from}");
        let raw = take(&gateway).await;
        assert!(raw.is_ascii());
        let message = parsed(&raw);
        let shown = message.from().unwrap().first().unwrap();
        assert_eq!(shown.address(), Some(MAILBOX), "{from}");
        assert_eq!(shown.name(), Some(name), "{from}");
    }
    for wrong in [
        "",
        "Ada",
        "Ada ada@sandbox.example",
        "Lovelace, Ada <ada@sandbox.example>",
        "ada@sandbox.example, eve@sandbox.example",
        "Ada\r\nBcc: eve@example.com <ada@sandbox.example>",
        "Ada <ada@sandbox.example>\r\nBcc: eve@example.com",
        "\"Ada\0\" <ada@sandbox.example>",
        "Ada <ada@sandbox.example",
        "\"eve@example.org\" <ada@sandbox.example>",
        "\"Eve <eve@example.org>\" <ada@sandbox.example>",
        "\"eve\\@example.org\" <ada@sandbox.example>",
        "eve\u{ff20}example.org <ada@sandbox.example>",
        "\"ada@sandbox.example, eve@example.org\" <ada@sandbox.example>",
    ] {
        let answer = send(&gateway, json!({ "from": wrong })).await;
        assert_eq!(answer.wrong_fields(), ["from"], "{wrong:?}");
    }
    assert_eq!(gateway.sandbox.inbox.count(), 0);
    gateway.stop().await;
}
