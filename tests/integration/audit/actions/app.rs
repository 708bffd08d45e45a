//! What is done with an app, its webhooks and its keys, until it is deleted.

use mailgate_types::audit::AuditAction;
use reqwest::Method;
use serde_json::json;

use super::{HOOK, Walk};
use crate::support::caller::{Caller, text};

impl Walk<'_> {
    /// All that can be done with an app, until it is deleted.
    pub(super) async fn with_an_app(&mut self, secret: &str) {
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
}
