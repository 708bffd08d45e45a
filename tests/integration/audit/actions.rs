//! Every action of the trail, done as it is done.

mod account;
mod app;
mod expected;
mod mailbox;
mod own_app;

use std::collections::BTreeSet;

use mailgate_types::audit::AuditAction;
use mailgate_types::ids::SubscriberId;
use mailgate_types::plugin::Plugin;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{nothing_since, rows, since};
use crate::command_line::process::{Finished, Invocation};
use crate::portal::visitor::Visitor;
use crate::support::caller::{Answer, Caller, is_moment, path, text};
use crate::support::gateway::{Gateway, MAILBOX, SEAL_KEY};
use expected::expected;

const TOKEN: &str = "an operator token of this test's own";

/// Where the client sits behind the proxy, which is this test.
const CLIENT: &str = "2001:db8::7";

const HOOK: &str = "https://hooks.example/a";

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
