use serde_json::json;
use sqlx::types::Uuid;

use super::*;
use crate::page::sentence::Part;
use mailgate_domain::reports::{AuditObject, StoredEntry};
use mailgate_types::ids::{CredentialId, SendKeyId, WebhookConfigId};

const ID: Uuid = Uuid::from_u128(0x019a_0000_0000_7000_8000_0000_0000_0001);

fn entry(action: AuditAction, target: Option<String>, details: Value) -> StoredEntry {
    StoredEntry {
        id: ID,
        app_id: None,
        app_slug: Some("demo".to_owned()),
        action: action.as_str().to_owned(),
        actor: "subscriber".to_owned(),
        api_secret_id: None,
        address: None,
        target,
        details,
    }
}

fn sentence(entry: &StoredEntry, lives: bool) -> Sentence {
    let object = AuditObject {
        id: ID,
        name: "living".to_owned(),
        slug: "demo".to_owned(),
    };
    let objects = lives.then_some((ID, object)).into_iter().collect();
    let known = Known {
        entry,
        objects: &objects,
        secrets: &[],
    };
    known.sentence()
}

fn path_in(sentence: &Sentence) -> &str {
    let paths = sentence.0.iter().map(|part| match part {
        Part::Object { path, .. } => path.as_str(),
        Part::Text(_) | Part::Day(_) => "",
    });
    paths.max().unwrap_or_default()
}

#[test]
fn objects_are_links_while_they_exist() {
    let mailbox = CredentialId(ID).to_string();
    let webhook = WebhookConfigId(ID).to_string();
    let message = LogId(ID).to_string();
    let key = SendKeyId(ID).to_string();
    let cases = [
        (
            AuditAction::UserConnected,
            &mailbox,
            json!({ "email": "ada@example.com" }),
            "Mailbox ada@example.com connected",
            format!("/portal/mailboxes/{mailbox}"),
        ),
        (
            AuditAction::WebhookChanged,
            &webhook,
            json!({ "is_active": { "from": true, "to": false } }),
            "Webhook living paused",
            format!("/portal/webhooks/{webhook}"),
        ),
        (
            AuditAction::WebhookChanged,
            &webhook,
            json!({ "events": { "from": [], "to": [] } }),
            "Webhook living changed: events",
            format!("/portal/webhooks/{webhook}"),
        ),
        (
            AuditAction::WebhookReplayed,
            &webhook,
            json!({ "queued": 2 }),
            "2 events replayed to living",
            format!("/portal/webhooks/{webhook}"),
        ),
        (
            AuditAction::MessageCanceled,
            &message,
            json!({}),
            "Message to living cancelled",
            format!("/portal/messages/{message}"),
        ),
        (
            AuditAction::SendKeyCreated,
            &key,
            json!({ "name": "Backup" }),
            "Send key Backup created",
            "/portal/apps/demo#send-keys".to_owned(),
        ),
    ];
    for (action, target, details, text, path) in cases {
        let entry = entry(action, Some(target.clone()), details);
        let alive = sentence(&entry, true);
        assert_eq!(
            (alive.plain().as_str(), path_in(&alive)),
            (text, path.as_str())
        );
        assert_eq!(path_in(&sentence(&entry, false)), "", "{text}");
    }
}

#[test]
fn details_are_told() {
    for (action, details, text) in [
        (
            AuditAction::AppChanged,
            json!({ "name": { "from": "A", "to": "B" }, "webhook_url": { "from": null, "to": "x" } }),
            "App demo changed: name, webhook URL",
        ),
        (
            AuditAction::PortalSignedOut,
            json!({ "sessions": 3 }),
            "3 other sessions signed out",
        ),
        (
            AuditAction::PortalSignedIn,
            json!({ "by": "link" }),
            "Signed in with an emailed link",
        ),
        (
            AuditAction::SubscriberChanged,
            json!({ "label": { "from": "A", "to": "B" } }),
            "Account renamed to B",
        ),
        (
            AuditAction::SubscriberChanged,
            json!({ "email": { "from": "a@x.example", "to": "b@x.example" }, "restored": true }),
            "Address restored to b@x.example",
        ),
        (
            AuditAction::UserDisconnected,
            json!({ "email": "ada@example.com", "reason": "invalid_grant" }),
            "Mailbox ada@example.com disconnected: the provider ended the access",
        ),
        (
            AuditAction::WebhookRedelivered,
            json!({ "webhook_id": null }),
            "1 event replayed to a webhook",
        ),
    ] {
        assert_eq!(sentence(&entry(action, None, details), false).plain(), text);
    }
}

#[test]
fn every_action_is_told_in_words_whatever_its_details() {
    for action in AuditAction::ALL {
        for details in [Value::Null, json!({}), json!({ "email": 1, "name": [] })] {
            let text = sentence(&entry(action, None, details), false).plain();
            assert!(
                text.starts_with(char::is_uppercase) || text.starts_with('1'),
                "{text}"
            );
            assert!(!text.contains(action.as_str()), "{text}");
        }
    }
    let mut unknown = entry(AuditAction::AppCreated, None, json!({}));
    unknown.action = "app.painted".to_owned();
    assert_eq!(sentence(&unknown, true).plain(), "app.painted");
}
