//! What an entry of each action says.

use mailgate_types::audit::AuditAction;
use serde_json::{Value, json};

use super::HOOK;
use crate::support::gateway::MAILBOX;

/// What an entry of each action says beside its action.
pub(super) struct Expected {
    pub(super) actor: &'static str,
    /// From the client, and not from the gateway or a command line.
    pub(super) has_address: bool,
    pub(super) of_app: bool,
    /// The prefix of the target.
    pub(super) target: &'static str,
    pub(super) details: Value,
}

#[expect(clippy::too_many_lines, reason = "a table of all actions")]
pub(super) fn expected(action: AuditAction) -> Expected {
    use AuditAction as A;
    let of = |actor, of_app, target, details| Expected {
        actor,
        has_address: actor != "provider",
        of_app,
        target,
        details,
    };
    let none = || json!({});
    match action {
        A::SubscriberCreated => of("operator", false, "", none()),
        A::SubscriberChanged => {
            let details = json!({ "label": { "from": "New", "to": "Newer" } });
            of("subscriber", false, "", details)
        }
        A::EmailChangeRequested | A::EmailChangeStopped => {
            let details =
                json!({ "email": { "from": "new@example.com", "to": "newer@example.com" } });
            of("subscriber", false, "", details)
        }
        A::SubscriberSuspended => Expected {
            has_address: false,
            ..of(
                "operator",
                false,
                "",
                json!({ "reason": { "from": null, "to": "Spam" } }),
            )
        },
        A::SubscriberResumed => Expected {
            has_address: false,
            ..of(
                "operator",
                false,
                "",
                json!({ "reason": { "from": "Spam", "to": null } }),
            )
        },
        A::SubscriberLimitsChanged => Expected {
            has_address: false,
            ..of(
                "operator",
                false,
                "",
                json!({
                    "apps": { "from": null, "to": 5 },
                    "requests_per_second": { "from": null, "to": 7 },
                }),
            )
        },
        A::SubscriberDeletionScheduled => Expected {
            has_address: false,
            ..of("operator", false, "", json!({ "restorable_until": "" }))
        },
        A::SubscriberRestored | A::SubscriberDeleted | A::SecretsResealed => Expected {
            has_address: false,
            ..of("operator", false, "", none())
        },
        A::AppCreated => {
            let details = json!({ "name": "My app", "webhook_url": "" });
            of("subscriber", true, "", details)
        }
        A::AppChanged => {
            let details = json!({ "webhook_url": { "from": "", "to": HOOK } });
            of("subscriber", true, "", details)
        }
        A::AppDeleted => of("subscriber", true, "", json!({ "name": "My app" })),
        A::SendKeyRenewed
        | A::SendKeyRevealed
        | A::WebhookSecretRenewed
        | A::WebhookSecretRevealed
        | A::PushableKeyRenewed => of("subscriber", true, "", none()),
        A::SendKeyCreated => {
            let details = json!({
                "name": "Key", "expires_at": "", "allowed_addresses": [], "credential_ids": [],
            });
            of("subscriber", true, "skey_", details)
        }
        A::SendKeyChanged => {
            let details = json!({
                "allowed_addresses": { "from": [], "to": ["192.0.2.0/24"] },
            });
            of("subscriber", true, "skey_", details)
        }
        A::SendKeyDeleted => of("subscriber", true, "skey_", json!({ "name": "Key" })),
        A::ApiSecretCreated => {
            let details = json!({ "name": "Key", "scopes": ["logs:read"], "expires_at": null });
            of("subscriber", false, "asec_", details)
        }
        A::ApiSecretDeleted => of("subscriber", false, "asec_", json!({ "name": "Key" })),
        A::WebhookCreated => {
            let details = json!({ "url": HOOK, "events": ["email.sent"], "is_active": true });
            of("subscriber", true, "wconf_", details)
        }
        A::WebhookChanged => {
            let details = json!({
                "events": { "from": ["email.sent"], "to": ["email.sent", "email.reply"] },
                "is_active": { "from": true, "to": false },
            });
            of("subscriber", true, "wconf_", details)
        }
        A::WebhookDeleted => of("subscriber", true, "wconf_", json!({ "url": HOOK })),
        A::SuppressionsDeleted => {
            let details = json!({ "to_address": "bob@example.com", "deleted": 1 });
            of("subscriber", true, "", details)
        }
        A::WebhookSecretRotated | A::WebhookTested => of("subscriber", true, "wconf_", none()),
        A::WebhookReplayed => {
            let details = json!({
                "since": "2026-01-01T00:00:00.000Z", "until": "2099-12-31T23:59:59.999Z",
                "success": false, "event": null, "queued": 1,
            });
            of("subscriber", true, "", details)
        }
        A::WebhookRedelivered => {
            let details = json!({ "webhook_id": null, "attempt_number": 2 });
            of("subscriber", true, "wdel_", details)
        }
        A::ConnectSessionCreated => {
            let details = json!({
                "user_id": null, "plugin": "plugin_a", "expected_email": MAILBOX,
                "expires_at": "",
            });
            of("subscriber", true, "", details)
        }
        A::PortalLinkMinted => of("subscriber", false, "", json!({ "expires_at": "" })),
        A::LogsExported => {
            let details = json!({ "from": null, "before": null, "scheduled": false });
            of("subscriber", false, "", details)
        }
        A::UserConnected => Expected {
            has_address: false,
            ..of(
                "user",
                true,
                "cred_",
                json!({ "email": MAILBOX, "plugin": "plugin_a", "user_id": null }),
            )
        },
        A::UserDisconnected => of(
            "subscriber",
            true,
            "cred_",
            json!({ "email": MAILBOX, "plugin": "plugin_a", "reason": "removed" }),
        ),
        A::UserReleased => {
            let details = json!({ "user_id": null, "disconnected": 0 });
            of("subscriber", true, "0", details)
        }
        A::MessageRetried | A::MessageCanceled => of("subscriber", true, "log_", none()),
        A::PortalSignedIn => of("subscriber", false, "psess_", json!({ "by": "api_secret" })),
        A::PortalSignedOut => of("subscriber", false, "psess_", none()),
        A::ApiSecretRenewed => of("subscriber", false, "", json!({ "revoked": false })),
        A::ApiSecretRevealed
        | A::CheckoutStarted
        | A::PortalOpened
        | A::SubscriptionCanceled
        | A::SubscriptionReactivated => of("subscriber", false, "", none()),
    }
}
