//! Every action of the trail, done as it is done.

use std::collections::BTreeSet;

use mailgate_sandbox::payprov::DeliveryMode;
use mailgate_types::plugin::Plugin;
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use super::*;
use crate::command_line::process::{Finished, Invocation};
use crate::portal::visitor::Visitor;
use crate::support::caller::{Answer, is_moment, path};
use crate::support::gateway::{MAILBOX, SEAL_KEY};

const TOKEN: &str = "an operator token of this test's own";

/// Where the client sits behind the proxy, which is this test.
const CLIENT: &str = "2001:db8::7";

const HOOK: &str = "https://hooks.example/a";

/// What an entry of each action says beside its action.
struct Expected {
    actor: &'static str,
    /// From the client, and not from the gateway or a command line.
    has_address: bool,
    of_app: bool,
    /// The prefix of the target.
    target: &'static str,
    details: Value,
}

#[expect(clippy::too_many_lines, reason = "a table of all actions")]
fn expected(action: AuditAction) -> Expected {
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

/// The gateway, and which actions have been seen.
struct Walk<'a> {
    gateway: &'a Gateway,
    seen: BTreeSet<AuditAction>,
}

impl Walk<'_> {
    /// Does something, which leaves one entry, as it is expected.
    async fn leaves<T>(&mut self, action: AuditAction, doing: impl Future<Output = T>) -> T {
        let before = rows(self.gateway).await;
        let done = doing.await;
        let new = since(self.gateway, &before).await;
        let [row] = new.as_slice() else {
            panic!("{action}: {new:?}");
        };
        let expected = expected(action);
        assert_eq!(row.action, action.as_str());
        assert_eq!(row.actor, expected.actor, "{action}");
        let address = expected.has_address.then_some(CLIENT);
        assert_eq!(row.address.as_deref(), address, "{action}");
        assert_eq!(row.app_id.is_some(), expected.of_app, "{action}");
        assert_eq!(row.app_slug.is_some(), expected.of_app, "{action}");
        let target = row.target.as_deref().unwrap_or_default();
        assert!(target.starts_with(expected.target), "{action}: {target}");
        assert_eq!(target.is_empty(), expected.target.is_empty(), "{action}");
        if action != AuditAction::SecretsResealed {
            let mut details = row.details.clone();
            let is_minted = action.as_str().ends_with("_minted")
                || action == AuditAction::ConnectSessionCreated;
            if is_minted {
                is_moment(text(&details, "expires_at"));
                details["expires_at"] = json!("");
            }
            if action == AuditAction::SubscriberDeletionScheduled {
                is_moment(text(&details, "restorable_until"));
                details["restorable_until"] = json!("");
            }
            assert_eq!(details, expected.details, "{action}");
            assert!(row.subscriber_id.is_some(), "{action}");
        }
        self.seen.insert(action);
        done
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.gateway.daemon.base_url);
        let request = self.gateway.http.request(method, url);
        request.header("x-forwarded-for", CLIENT)
    }

    /// Changes something as a subscriber.
    async fn change(
        &mut self,
        action: AuditAction,
        secret: &str,
        (method, path): (Method, &str),
        body: Value,
    ) -> Value {
        let request = self.request(method, path).header("x-api-secret", secret);
        let answer = self.leaves(action, Answer::to(request.json(&body))).await;
        assert!(answer.status < 300, "{path}: {}", answer.body);
        answer.body
    }

    /// Waits until so many events were tried, and nothing more is done for them.
    async fn given_up(&self, events: i64) {
        let gateway = self.gateway;
        gateway
            .eventually("attempts", async |gateway| {
                let attempts: i64 = sqlx::query_scalar("SELECT count(*) FROM webhook_deliveries")
                    .fetch_one(&mut gateway.database().await)
                    .await
                    .unwrap();
                attempts >= events
            })
            .await;
        sqlx::query("DELETE FROM webhook_queue")
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
    }

    /// All that can be done with an app, until it is deleted.
    async fn with_an_app(&mut self, secret: &str) {
        use AuditAction as A;
        let body = json!({ "name": "My app" });
        let app = self
            .change(A::AppCreated, secret, (Method::POST, "/apps"), body)
            .await;
        let path = format!("/apps/{}", text(&app, "pushable_key"));
        let body = json!({ "webhook_url": HOOK, "name": "My app" });
        self.change(A::AppChanged, secret, (Method::PUT, &path), body)
            .await;
        let reset = format!("{path}/reset-send-key");
        self.change(A::SendKeyRenewed, secret, (Method::POST, &reset), json!({}))
            .await;
        let reset = format!("{path}/reset-webhook-secret");
        self.change(
            A::WebhookSecretRenewed,
            secret,
            (Method::POST, &reset),
            json!({}),
        )
        .await;
        let reset = format!("{path}/reset-pushable-key");
        let app = self
            .change(
                A::PushableKeyRenewed,
                secret,
                (Method::POST, &reset),
                json!({}),
            )
            .await;
        let path = format!("/apps/{}", text(&app, "pushable_key"));
        let webhooks = format!("{path}/webhooks");
        let body = json!({ "url": HOOK, "events": ["email.sent"] });
        let created = self
            .change(A::WebhookCreated, secret, (Method::POST, &webhooks), body)
            .await;
        let webhook = format!("{webhooks}/{}", text(&created, "id"));
        let body = json!({
            "url": HOOK, "events": ["email.sent", "email.reply"], "is_active": false,
        });
        self.change(A::WebhookChanged, secret, (Method::PUT, &webhook), body)
            .await;
        let rotate = format!("{webhook}/rotate-secret");
        self.change(
            A::WebhookSecretRotated,
            secret,
            (Method::POST, &rotate),
            json!({}),
        )
        .await;
        self.given_up(1).await;
        self.again(secret, &path, &webhook).await;
        let replay = format!("{path}/replay");
        let body = json!({ "since": "2026-01-01", "until": "2099-12-31" });
        self.change(A::WebhookReplayed, secret, (Method::POST, &replay), body)
            .await;
        self.change(
            A::WebhookDeleted,
            secret,
            (Method::DELETE, &webhook),
            json!({}),
        )
        .await;
        sqlx::query(
            "INSERT INTO suppressions
             SELECT id, 'bob@example.com', id, now() FROM apps WHERE pushable_key = $1",
        )
        .bind(text(&app, "pushable_key"))
        .execute(&mut self.gateway.database().await)
        .await
        .unwrap();
        let one = format!("{path}/suppressions?to_address=Bob@example.com");
        self.change(
            A::SuppressionsDeleted,
            secret,
            (Method::DELETE, &one),
            json!({}),
        )
        .await;
        self.with_keys(secret, &path).await;
        self.change(A::AppDeleted, secret, (Method::DELETE, &path), json!({}))
            .await;
    }

    /// The operator suspends a subscriber, resumes it, limits it, deletes it, restores it, and deletes it for good.
    async fn shut(&mut self, id: &str) {
        let arguments = ["subscriber", "suspend", id, "--reason", "Spam"];
        let suspending = command(self.gateway, SEAL_KEY, &arguments);
        self.leaves(AuditAction::SubscriberSuspended, suspending)
            .await;
        let arguments = ["subscriber", "resume", id];
        let resuming = command(self.gateway, SEAL_KEY, &arguments);
        self.leaves(AuditAction::SubscriberResumed, resuming).await;
        let limits = ["--apps", "5", "--requests-per-second", "7"];
        let arguments = [&["subscriber", "limits", id], limits.as_slice()].concat();
        let limiting = command(self.gateway, SEAL_KEY, &arguments);
        self.leaves(AuditAction::SubscriberLimitsChanged, limiting)
            .await;
        let delete = ["subscriber", "delete", id, "--yes", "--label", "Newer"];
        let deleting = command(self.gateway, SEAL_KEY, &delete);
        self.leaves(AuditAction::SubscriberDeletionScheduled, deleting)
            .await;
        let arguments = ["subscriber", "restore", id];
        let restoring = command(self.gateway, SEAL_KEY, &arguments);
        self.leaves(AuditAction::SubscriberRestored, restoring)
            .await;
        let arguments = [&delete as &[&str], &["--now"]].concat();
        let deleting = command(self.gateway, SEAL_KEY, &arguments);
        self.leaves(AuditAction::SubscriberDeleted, deleting).await;
    }

    /// A delivery is made again, and a test sent.
    async fn again(&mut self, secret: &str, app: &str, webhook: &str) {
        use AuditAction as A;
        let deliveries = format!("{app}/deliveries");
        let listed = Caller {
            gateway: self.gateway,
            secret: secret.to_owned(),
        };
        let listed = listed.get(&deliveries).await.success(200);
        let delivery = text(&listed["deliveries"][0], "id");
        let again = format!("{deliveries}/{delivery}/retry");
        self.change(
            A::WebhookRedelivered,
            secret,
            (Method::POST, &again),
            json!({}),
        )
        .await;
        self.given_up(2).await;
        let test = format!("{webhook}/test");
        self.change(A::WebhookTested, secret, (Method::POST, &test), json!({}))
            .await;
    }

    /// Keys with less power, of an app and of its subscriber.
    async fn with_keys(&mut self, secret: &str, app: &str) {
        use AuditAction as A;
        let keys = format!("{app}/send-keys");
        let body = json!({ "name": "Key" });
        let created = self
            .change(A::SendKeyCreated, secret, (Method::POST, &keys), body)
            .await;
        let key = format!("{keys}/{}", text(&created, "id"));
        let body = json!({ "allowed_addresses": ["192.0.2.7/24"] });
        self.change(A::SendKeyChanged, secret, (Method::PUT, &key), body)
            .await;
        self.change(A::SendKeyDeleted, secret, (Method::DELETE, &key), json!({}))
            .await;
        let secrets = (Method::POST, "/me/api-secrets");
        let body = json!({ "name": "Key", "scopes": ["logs:read"] });
        let created = self
            .change(A::ApiSecretCreated, secret, secrets, body)
            .await;
        let limited = format!("/me/api-secrets/{}", text(&created, "id"));
        let gone = (Method::DELETE, limited.as_str());
        self.change(A::ApiSecretDeleted, secret, gone, json!({}))
            .await;
    }

    /// One of the gateway's own app, whose provider takes none now.
    /// Links that connect a mailbox, and that sign in to the portal.
    async fn mints(&mut self, own: &str) {
        let gateway = self.gateway;
        let session = format!("{}/connect-sessions", path(&gateway.app));
        let body = json!({ "plugin": "plugin_a", "expected_email": MAILBOX });
        let created = (Method::POST, session.as_str());
        self.change(AuditAction::ConnectSessionCreated, own, created, body)
            .await;
        let minted = (Method::POST, "/portal/sessions");
        self.change(AuditAction::PortalLinkMinted, own, minted, json!({}))
            .await;
    }

    async fn with_a_waiting_message(&mut self) {
        use AuditAction as A;
        let secret = Caller::owner(self.gateway).await.secret;
        let (status, answer) = self.gateway.send_to("tempfail@example.com").await;
        assert_eq!(status, 202, "{answer}");
        let log = format!("/logs/{}", text(&answer, "log_id"));
        let retry = format!("{log}/retry");
        self.change(
            A::MessageRetried,
            &secret,
            (Method::POST, &retry),
            json!({}),
        )
        .await;
        let waits: &'static str =
            "SELECT count(*) FROM spool WHERE state = 'deferred' AND attempts = 2";
        self.gateway
            .eventually("the second attempt", async |gateway| {
                let waiting: i64 = sqlx::query_scalar(waits)
                    .fetch_one(&mut gateway.database().await)
                    .await
                    .unwrap();
                waiting == 1
            })
            .await;
        let cancel = format!("{log}/cancel");
        self.change(
            A::MessageCanceled,
            &secret,
            (Method::POST, &cancel),
            json!({}),
        )
        .await;
    }

    async fn with_a_subscription(&mut self, secret: &str) {
        use AuditAction as A;
        // An event would make the card pay before the subscriber says so.
        let payments = &self.gateway.sandbox.payments;
        payments.set_delivery(DeliveryMode::ByHand);
        let body = json!({ "portal_url": "https://portal.example/billing" });
        let checkout = (Method::POST, "/payprov/checkout-setup");
        let page = self
            .change(A::CheckoutStarted, secret, checkout, body)
            .await;
        // Where it leads back to doesn't exist.
        let browser = reqwest::Client::builder().no_proxy();
        let browser = browser.redirect(reqwest::redirect::Policy::none()).build();
        let card = browser.unwrap().post(text(&page, "url"));
        let entered = card.form(&[("card", "works")]).send().await.unwrap();
        assert!(entered.status().is_redirection(), "{}", entered.status());
        let body = json!({ "return_url": "https://portal.example/billing" });
        let portal = (Method::POST, "/payprov/portal");
        self.change(A::PortalOpened, secret, portal, body).await;
        let reactivate = (Method::POST, "/payprov/reactivate");
        self.change(A::SubscriptionReactivated, secret, reactivate, json!({}))
            .await;
        let cancel = (Method::POST, "/payprov/cancel-subscription");
        self.change(A::SubscriptionCanceled, secret, cancel, json!({}))
            .await;
    }

    async fn with_another_address(&mut self, secret: &str) {
        for (action, email) in [
            (AuditAction::EmailChangeRequested, "newer@example.com"),
            (AuditAction::EmailChangeStopped, "new@example.com"),
        ] {
            let me = (Method::PATCH, "/me");
            self.change(action, secret, me, json!({ "email": email }))
                .await;
        }
    }
}

async fn command(gateway: &Gateway, keys: &str, arguments: &[&str]) -> Finished {
    let finished = Invocation::new(arguments)
        .set("DATABASE__URL", &gateway.database_url)
        .set("SEAL__KEYS", keys)
        .finish()
        .await;
    finished.succeeds();
    finished
}

#[tokio::test(flavor = "multi_thread")]
async fn every_action_leaves_one_entry_with_who_what_and_from_where() {
    let gateway = Gateway::builder()
        .billed()
        .set("HTTP__OPERATOR_TOKEN", TOKEN)
        .set("HTTP__TRUSTED_PROXIES", "127.0.0.1")
        .set("PORTAL__BASE_URL", "https://portal.example/portal")
        .start()
        .await;
    let mut walk = Walk {
        gateway: &gateway,
        seen: BTreeSet::new(),
    };
    let request = walk
        .request(Method::POST, "/subscribers")
        .header("x-operator-token", TOKEN)
        .json(&json!({ "label": "New", "email": "new@example.com" }));
    let created = walk
        .leaves(AuditAction::SubscriberCreated, Answer::to(request))
        .await
        .success(201);
    let (id, secret) = (
        text(&created, "subscriber_id"),
        text(&created, "api_secret"),
    );
    walk.with_an_app(secret).await;
    walk.with_a_subscription(secret).await;
    let (rename, body) = ((Method::PATCH, "/me"), json!({ "label": "Newer" }));
    walk.change(AuditAction::SubscriberChanged, secret, rename, body)
        .await;
    walk.with_another_address(secret).await;
    let reset = (Method::POST, "/me/reset-api-secret");
    walk.change(AuditAction::ApiSecretRenewed, secret, reset, json!({}))
        .await;

    walk.with_a_waiting_message().await;

    let connecting = gateway.connect(None, Plugin::A, MAILBOX);
    let mailbox = walk.leaves(AuditAction::UserConnected, connecting).await;
    let credential = format!("{}/credentials/{}", path(&gateway.app), mailbox.credential);
    let own = Caller::owner(&gateway).await.secret;
    let disconnect = (Method::DELETE, credential.as_str());
    walk.change(AuditAction::UserDisconnected, &own, disconnect, json!({}))
        .await;

    // A user whom a session has brought, and whose mailbox has ended since.
    sqlx::query("UPDATE end_users SET vouched_at = now()")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let user = format!("{}/users/{}", path(&gateway.app), mailbox.user_key);
    let release = (Method::DELETE, user.as_str());
    walk.change(AuditAction::UserReleased, &own, release, json!({}))
        .await;

    walk.mints(&own).await;

    let mut visitor = Visitor::new(&gateway.daemon.base_url).from(CLIENT);
    walk.leaves(AuditAction::PortalSignedIn, visitor.sign_in(&own))
        .await;
    let proof = [("api_secret", own.as_str())];
    let reveal = visitor.post("/portal/settings/api-secret/reveal", &proof);
    walk.leaves(AuditAction::ApiSecretRevealed, reveal).await;
    let app = visitor.post("/portal/apps", &[("name", "Shown")]).await;
    let (app, _) = app.location().split_once('?').unwrap();
    for (action, key) in [
        (AuditAction::SendKeyRevealed, "send-key"),
        (AuditAction::WebhookSecretRevealed, "webhook-secret"),
    ] {
        let path = format!("{app}/reveal/{key}");
        walk.leaves(action, visitor.post(&path, &proof)).await;
    }
    let export = visitor.get("/portal/messages.csv");
    walk.leaves(AuditAction::LogsExported, export).await;
    let leave = visitor.post("/portal/sign-out", &[]);
    walk.leaves(AuditAction::PortalSignedOut, leave).await;

    // From the command line.
    let before = rows(&gateway).await;
    command(&gateway, SEAL_KEY, &["subscriber", "reset-secret", id]).await;
    let arguments = [
        "subscriber",
        "create",
        "--label",
        "G",
        "--email",
        "g@example.com",
    ];
    command(&gateway, SEAL_KEY, &arguments).await;
    for row in since(&gateway, &before).await {
        let wanted = ["subscriber.created", "api_secret.renewed"];
        assert!(wanted.contains(&row.action.as_str()), "{row:?}");
        let by = (row.actor.as_str(), row.address.as_deref());
        assert_eq!(by, ("operator", None), "{row:?}");
    }
    assert_eq!(since(&gateway, &before).await.len(), 2);
    walk.shut(id).await;
    let id: SubscriberId = id.parse().unwrap();
    let left = rows(&gateway).await;
    let left = left.values().filter(|row| row.subscriber_id == Some(id.0));
    assert_eq!(left.count(), 1, "the trail goes with its subscriber");
    // After this the gateway opens nothing any more.
    let keys = format!("new:ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=,{SEAL_KEY}");
    let resealing = command(&gateway, &keys, &["reseal"]);
    walk.leaves(AuditAction::SecretsResealed, resealing).await;
    // Nothing is left to be sealed anew, so nothing is changed.
    let before = rows(&gateway).await;
    command(&gateway, &keys, &["reseal"]).await;
    nothing_since(&gateway, &before).await;

    assert_eq!(walk.seen, BTreeSet::from(AuditAction::ALL));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_ends_a_mailbox_is_told_apart() {
    let gateway = Gateway::start().await;
    let reason = |row: &Row| row.details["reason"].as_str().map(str::to_owned);
    let shown = |rows: Vec<Row>| {
        let shown = rows
            .iter()
            .map(|row| (row.action.clone(), row.actor.clone(), reason(row)));
        shown.collect::<BTreeSet<_>>()
    };
    let by = |action: &str, actor: &str, reason: Option<&str>| {
        (
            action.to_owned(),
            actor.to_owned(),
            reason.map(str::to_owned),
        )
    };
    // The user, by connecting another one.
    let before = rows(&gateway).await;
    gateway
        .connect(None, Plugin::A, "grace@sandbox.example")
        .await;
    let replaced = BTreeSet::from([
        by("user.connected", "user", None),
        by("user.disconnected", "user", Some("replaced")),
    ]);
    assert_eq!(shown(since(&gateway, &before).await), replaced);
    // The provider, by refusing the grant.
    let before = rows(&gateway).await;
    let authorization = &gateway.sandbox.authorization;
    authorization
        .withdraw("grace@sandbox.example")
        .await
        .unwrap();
    assert_eq!(gateway.send_to("bob@example.com").await.0, 502);
    let refused = BTreeSet::from([by("user.disconnected", "provider", Some("invalid_grant"))]);
    assert_eq!(shown(since(&gateway, &before).await), refused);
    gateway.stop().await;
}
