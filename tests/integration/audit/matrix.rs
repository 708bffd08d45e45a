//! Every operation of the interface, with what it leaves: those that change, show or create something leave one entry
//! each, the others none.

use std::collections::BTreeSet;

use mailgate_sandbox::payprov::DeliveryMode;
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use super::*;
use crate::portal::visitor::Visitor;
use crate::support::caller::{anonymous, path};

const TOKEN: &str = "an operator token of this test's own";

const HOOK: &str = "https://hooks.example/a";

/// Those that are no `GET` and leave nothing: they send a message, lead to a provider, or report what a provider did.
const SILENT: [&str; 3] = ["begin_connecting", "billing_webhook", "send"];

/// What has been called of a gateway.
struct Matrix<'a> {
    gateway: &'a Gateway,
    called: BTreeSet<&'static str>,
}

impl Matrix<'_> {
    /// Calls an operation, which leaves one entry of this action, or none at all.
    async fn does(
        &mut self,
        operation: &'static str,
        leaves: Option<AuditAction>,
        request: RequestBuilder,
    ) -> Value {
        let request = request.build().unwrap();
        if *request.method() != Method::GET && !SILENT.contains(&operation) {
            assert!(leaves.is_some(), "{operation} leaves something");
        }
        let before = rows(self.gateway).await;
        let response = self.gateway.http.execute(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.text().await.unwrap();
        if leaves.is_some() {
            assert!(status < 300, "{operation}: {status} {body}");
        } else {
            assert!(status < 500, "{operation}: {status} {body}");
        }
        let new = since(self.gateway, &before).await;
        let left: Vec<&str> = new.iter().map(|row| row.action.as_str()).collect();
        let expected: Vec<&str> = leaves.iter().map(|action| action.as_str()).collect();
        assert_eq!(left, expected, "{operation}");
        self.called.insert(operation);
        serde_json::from_str(&body).unwrap_or_default()
    }

    /// Waits until an event was tried at both endpoints; nothing more is done for it.
    async fn tried(&self) {
        let tried = "SELECT count(DISTINCT endpoint_id) FROM webhook_deliveries
                     WHERE event = 'send_key.renewed'";
        self.gateway
            .eventually("attempts", async |gateway| {
                let tried = sqlx::query_scalar::<_, i64>(tried);
                tried
                    .fetch_one(&mut gateway.database().await)
                    .await
                    .unwrap()
                    == 2
            })
            .await;
        self.forget_waiting().await;
    }

    async fn forget_waiting(&self) {
        sqlx::query("DELETE FROM webhook_queue")
            .execute(&mut self.gateway.database().await)
            .await
            .unwrap();
    }
}

fn get(caller: &Caller<'_>, path: &str) -> RequestBuilder {
    caller.request(Method::GET, path)
}

fn post(caller: &Caller<'_>, path: &str, body: &Value) -> RequestBuilder {
    caller.request(Method::POST, path).json(body)
}

/// The operations in the document.
async fn documented(gateway: &Gateway) -> BTreeSet<String> {
    let document = anonymous(gateway, Method::GET, "/openapi.json");
    let document: Value = document.send().await.unwrap().json().await.unwrap();
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    operations
        .map(|operation| text(operation, "operationId").to_owned())
        .collect()
}

async fn with_keys(matrix: &mut Matrix<'_>, owner: &Caller<'_>, app: &str) {
    use AuditAction as A;
    matrix.does("me", None, get(owner, "/me")).await;
    let label = owner
        .request(Method::PATCH, "/me")
        .json(&json!({ "label": "Newer" }));
    matrix
        .does("change_me", Some(A::SubscriberChanged), label)
        .await;
    let secrets = "/me/api-secrets";
    let body = json!({ "name": "Key", "scopes": ["logs:read"] });
    let created = matrix
        .does(
            "create_api_secret",
            Some(A::ApiSecretCreated),
            post(owner, secrets, &body),
        )
        .await;
    matrix
        .does("list_api_secrets", None, get(owner, secrets))
        .await;
    let one = owner.request(
        Method::DELETE,
        &format!("{secrets}/{}", text(&created, "id")),
    );
    matrix
        .does("delete_api_secret", Some(A::ApiSecretDeleted), one)
        .await;
    let keys = format!("{app}/send-keys");
    let created = matrix
        .does(
            "create_send_key",
            Some(A::SendKeyCreated),
            post(owner, &keys, &json!({ "name": "Key" })),
        )
        .await;
    matrix.does("list_send_keys", None, get(owner, &keys)).await;
    let key = format!("{keys}/{}", text(&created, "id"));
    let change = owner
        .request(Method::PUT, &key)
        .json(&json!({ "name": "Other" }));
    matrix
        .does("change_send_key", Some(A::SendKeyChanged), change)
        .await;
    let delete = owner.request(Method::DELETE, &key);
    matrix
        .does("delete_send_key", Some(A::SendKeyDeleted), delete)
        .await;
    let shown = get(owner, &format!("{app}/send-key"));
    matrix
        .does("send_key", Some(A::SendKeyRevealed), shown)
        .await;
    let shown = get(owner, &format!("{app}/webhook-secret"));
    matrix
        .does("webhook_secret", Some(A::WebhookSecretRevealed), shown)
        .await;
    let minted = owner.request(Method::POST, "/portal/sessions");
    matrix
        .does("create_portal_session", Some(A::PortalLinkMinted), minted)
        .await;
}

/// A further app with its webhooks, until it is deleted.
async fn with_an_app(matrix: &mut Matrix<'_>, owner: &Caller<'_>) {
    use AuditAction as A;
    let body = json!({ "name": "My app" });
    let app = matrix
        .does(
            "create_app",
            Some(A::AppCreated),
            post(owner, "/apps", &body),
        )
        .await;
    matrix.does("list_apps", None, get(owner, "/apps")).await;
    let app = format!("/apps/{}", text(&app, "pushable_key"));
    matrix.does("show_app", None, get(owner, &app)).await;
    let change = owner
        .request(Method::PUT, &app)
        .json(&json!({ "webhook_url": HOOK }));
    matrix.does("change_app", Some(A::AppChanged), change).await;
    let hooks = format!("{app}/webhooks");
    let body = json!({ "url": HOOK, "events": ["send_key.renewed"] });
    let created = matrix
        .does(
            "create_webhook",
            Some(A::WebhookCreated),
            post(owner, &hooks, &body),
        )
        .await;
    matrix.does("list_webhooks", None, get(owner, &hooks)).await;
    let hook = format!("{hooks}/{}", text(&created, "id"));
    let test = owner.request(Method::POST, &format!("{hook}/test"));
    matrix
        .does("test_webhook", Some(A::WebhookTested), test)
        .await;
    let reset = owner.request(Method::POST, &format!("{app}/reset-send-key"));
    matrix
        .does("reset_send_key", Some(A::SendKeyRenewed), reset)
        .await;
    matrix.tried().await;
    for (endpoint, [list, show, retry, replay]) in [
        (
            &hook,
            [
                "list_deliveries",
                "show_delivery",
                "retry_delivery",
                "replay_webhook",
            ],
        ),
        (
            &app,
            [
                "list_app_deliveries",
                "show_app_delivery",
                "retry_app_delivery",
                "replay_app_webhook",
            ],
        ),
    ] {
        let deliveries = format!("{endpoint}/deliveries");
        let listed = matrix.does(list, None, get(owner, &deliveries)).await;
        let listed = listed["deliveries"].as_array().unwrap();
        let delivery = listed.iter().find(|it| it["event"] == "send_key.renewed");
        let delivery = format!("{deliveries}/{}", text(delivery.unwrap(), "id"));
        matrix.does(show, None, get(owner, &delivery)).await;
        let again = owner.request(Method::POST, &format!("{delivery}/retry"));
        matrix.does(retry, Some(A::WebhookRedelivered), again).await;
        matrix.forget_waiting().await;
        let since = json!({ "since": "2026-01-01", "event": "send_key.renewed" });
        let again = post(owner, &format!("{endpoint}/replay"), &since);
        matrix.does(replay, Some(A::WebhookReplayed), again).await;
        matrix.forget_waiting().await;
    }
    with_a_webhook(matrix, owner, &hook).await;
    let reset = owner.request(Method::POST, &format!("{app}/reset-webhook-secret"));
    matrix
        .does("reset_webhook_secret", Some(A::WebhookSecretRenewed), reset)
        .await;
    let reset = owner.request(Method::POST, &format!("{app}/reset-pushable-key"));
    let renewed = matrix
        .does("reset_pushable_key", Some(A::PushableKeyRenewed), reset)
        .await;
    let app = format!("/apps/{}", text(&renewed, "pushable_key"));
    let delete = owner.request(Method::DELETE, &app);
    matrix.does("delete_app", Some(A::AppDeleted), delete).await;
}

/// A webhook is changed, and deleted.
async fn with_a_webhook(matrix: &mut Matrix<'_>, owner: &Caller<'_>, hook: &str) {
    use AuditAction as A;
    let rotate = post(owner, &format!("{hook}/rotate-secret"), &json!({}));
    matrix
        .does(
            "rotate_webhook_secret",
            Some(A::WebhookSecretRotated),
            rotate,
        )
        .await;
    let change = owner
        .request(Method::PUT, hook)
        .json(&json!({ "is_active": false }));
    matrix
        .does("change_webhook", Some(A::WebhookChanged), change)
        .await;
    let delete = owner.request(Method::DELETE, hook);
    matrix
        .does("delete_webhook", Some(A::WebhookDeleted), delete)
        .await;
}

async fn with_messages(matrix: &mut Matrix<'_>, owner: &Caller<'_>, app: &str) {
    use AuditAction as A;
    let gateway = matrix.gateway;
    let message = json!({
        "pk": gateway.app.pushable_key.expose(), "to": "tempfail@example.com", "subject": "x",
        "body": "x",
    });
    let send = anonymous(gateway, Method::POST, "/send");
    let send = send.header("x-send-key", gateway.app.send_key.expose());
    let accepted = matrix.does("send", None, send.json(&message)).await;
    let log = format!("/logs/{}", text(&accepted, "log_id"));
    matrix.does("list_logs", None, get(owner, "/logs")).await;
    let csv = get(owner, "/logs").header("accept", "text/csv");
    matrix.does("list_logs", Some(A::LogsExported), csv).await;
    matrix.does("show_log", None, get(owner, &log)).await;
    for (operation, path) in [
        ("show_queue", "/queue".to_owned()),
        ("stats", "/stats".to_owned()),
        ("email_stats", "/email-stats".to_owned()),
        ("list_refusals", format!("{app}/refusals")),
        ("list_suppressions", format!("{app}/suppressions")),
        ("list_audit_entries", "/audit".to_owned()),
    ] {
        matrix.does(operation, None, get(owner, &path)).await;
    }
    let retry = owner.request(Method::POST, &format!("{log}/retry"));
    matrix
        .does("retry_message", Some(A::MessageRetried), retry)
        .await;
    let waits = "SELECT count(*) FROM spool WHERE state = 'deferred' AND attempts = 2";
    gateway
        .eventually("the second attempt", async |gateway| {
            let waiting = sqlx::query_scalar::<_, i64>(waits);
            waiting
                .fetch_one(&mut gateway.database().await)
                .await
                .unwrap()
                == 1
        })
        .await;
    let cancel = owner.request(Method::POST, &format!("{log}/cancel"));
    matrix
        .does("cancel_message", Some(A::MessageCanceled), cancel)
        .await;
    sqlx::query("INSERT INTO suppressions SELECT $1, 'bob@example.com', $1, now()")
        .bind(gateway.app.id.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let all = owner.request(Method::DELETE, &format!("{app}/suppressions"));
    matrix
        .does("delete_suppressions", Some(A::SuppressionsDeleted), all)
        .await;
}

async fn with_a_subscription(matrix: &mut Matrix<'_>, payer: &Caller<'_>) {
    use AuditAction as A;
    let gateway = matrix.gateway;
    gateway.sandbox.payments.set_delivery(DeliveryMode::ByHand);
    let body = json!({ "portal_url": "https://portal.example/" });
    let checkout = post(payer, "/payprov/checkout-setup", &body);
    let page = matrix
        .does("billing_checkout_setup", Some(A::CheckoutStarted), checkout)
        .await;
    let browser = reqwest::Client::builder().no_proxy();
    let browser = browser.redirect(reqwest::redirect::Policy::none()).build();
    let card = browser.unwrap().post(text(&page, "url"));
    card.form(&[("card", "works")]).send().await.unwrap();
    let body = json!({ "return_url": "https://portal.example/" });
    let portal = post(payer, "/payprov/portal", &body);
    matrix
        .does("billing_portal", Some(A::PortalOpened), portal)
        .await;
    let reactivate = payer.request(Method::POST, "/payprov/reactivate");
    matrix
        .does(
            "billing_reactivate",
            Some(A::SubscriptionReactivated),
            reactivate,
        )
        .await;
    let cancel = payer.request(Method::POST, "/payprov/cancel-subscription");
    matrix
        .does(
            "billing_cancel_subscription",
            Some(A::SubscriptionCanceled),
            cancel,
        )
        .await;
    for (operation, path) in [
        ("billing_status", "/payprov/status"),
        ("billing_subscription", "/payprov/subscription"),
    ] {
        matrix.does(operation, None, get(payer, path)).await;
    }
    let event = anonymous(gateway, Method::POST, "/payprov/webhook").json(&json!({}));
    matrix.does("billing_webhook", None, event).await;
}

async fn with_mailboxes(matrix: &mut Matrix<'_>, owner: &Caller<'_>, app: &str) {
    use AuditAction as A;
    let gateway = matrix.gateway;
    let create = post(owner, &format!("{app}/connect-sessions"), &json!({}));
    matrix
        .does(
            "create_connect_session",
            Some(A::ConnectSessionCreated),
            create,
        )
        .await;
    let page = format!("/connect/{}", gateway.app.pushable_key.expose());
    for (operation, method, path) in [
        ("connect", Method::GET, page.as_str()),
        ("begin_connecting", Method::POST, page.as_str()),
        ("connect_result", Method::GET, "/connect/result"),
        // One that has been granted is among the actions.
        (
            "oauth_callback",
            Method::GET,
            "/oauth/callback?state=x&code=y",
        ),
        ("healthz", Method::GET, "/healthz"),
        ("readyz", Method::GET, "/readyz"),
    ] {
        matrix
            .does(operation, None, anonymous(gateway, method, path))
            .await;
    }
    let mailbox = format!("{app}/credentials/{}", gateway.mailbox.credential);
    let disconnect = owner.request(Method::DELETE, &mailbox);
    matrix
        .does("disconnect_mailbox", Some(A::UserDisconnected), disconnect)
        .await;
    // A user whom a session has brought.
    sqlx::query("UPDATE end_users SET vouched_at = now()")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let user = format!("{app}/users/{}", gateway.mailbox.user_key);
    let release = owner.request(Method::DELETE, &user);
    matrix
        .does("release_user", Some(A::UserReleased), release)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_leaves_what_it_is_said_to() {
    let gateway = Gateway::builder()
        .billed()
        .set("HTTP__OPERATOR_TOKEN", TOKEN)
        .start()
        .await;
    let mut matrix = Matrix {
        gateway: &gateway,
        called: BTreeSet::new(),
    };
    let owner = Caller::owner(&gateway).await;
    let app = path(&gateway.app);
    let new = anonymous(&gateway, Method::POST, "/subscribers")
        .header("x-operator-token", TOKEN)
        .json(&json!({ "label": "New", "email": "new@example.com" }));
    let created = matrix
        .does(
            "create_subscriber",
            Some(AuditAction::SubscriberCreated),
            new,
        )
        .await;
    let payer = Caller {
        gateway: &gateway,
        secret: text(&created, "api_secret").to_owned(),
    };
    with_keys(&mut matrix, &owner, &app).await;
    with_an_app(&mut matrix, &owner).await;
    with_messages(&mut matrix, &owner, &app).await;
    with_a_subscription(&mut matrix, &payer).await;
    with_mailboxes(&mut matrix, &owner, &app).await;
    let reset = owner.request(Method::POST, "/me/reset-api-secret");
    matrix
        .does(
            "reset_api_secret",
            Some(AuditAction::ApiSecretRenewed),
            reset,
        )
        .await;
    let called: BTreeSet<String> = matrix.called.iter().map(ToString::to_string).collect();
    assert_eq!(
        called,
        documented(&gateway).await,
        "a new operation is to be classified here"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_portal_mints_sends_again_and_exports_leaves_an_entry() {
    use AuditAction as A;
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let visitor = Visitor::signed_in(&gateway).await;
    let app = format!("/portal{}", path(&gateway.app));
    let hook = json!({ "url": HOOK, "events": ["send_key.renewed"] });
    let created = owner
        .post(&format!("{}/webhooks", path(&gateway.app)), &hook)
        .await;
    let hook = format!("/portal/webhooks/{}", text(&created.success(201), "id"));
    let mailbox = format!("/portal/mailboxes/{}", gateway.mailbox.credential);
    let before = rows(&gateway).await;
    let link = [
        ("user_id", ""),
        ("plugin", ""),
        ("expected_email", ""),
        ("kind", "session"),
    ];
    let mut expected = Vec::new();
    for (path, form, action) in [
        (
            format!("{app}/link"),
            link.as_slice(),
            A::ConnectSessionCreated,
        ),
        (
            format!("{mailbox}/reconnect"),
            &[],
            A::ConnectSessionCreated,
        ),
        (format!("{hook}/test"), &[], A::WebhookTested),
    ] {
        let page = visitor.post(&path, form).await;
        assert!(page.status < 400, "{path}: {page:?}");
        expected.push(action.as_str());
    }
    let page = visitor.get("/portal/messages.csv").await;
    assert_eq!(page.status, 200);
    expected.push(A::LogsExported.as_str());
    let mut new = since(&gateway, &before).await;
    new.sort_by_key(|row| row.id);
    let left: Vec<&str> = new.iter().map(|row| row.action.as_str()).collect();
    assert_eq!(left, expected);
    gateway.stop().await;
}
