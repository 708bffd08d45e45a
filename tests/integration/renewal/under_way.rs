//! A request that was authenticated before its credential ended, and whose body comes after: it does nothing any more.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use mailgate_domain::accounts::Renewal;
use serde_json::{Value, json};

use crate::portal::visitor::Visitor;
use crate::strangers::raw::{Answered, Raw};
use crate::support::caller::{Caller, path, text};
use crate::support::gateway::{Gateway, OPERATOR};

const ENDED: (u16, &str) = (401, "invalid_api_secret");

/// What requests could have changed.
const TABLES: [&str; 10] = [
    "apps",
    "api_secrets",
    "audit_entries",
    "portal_links",
    "portal_sessions",
    "send_keys",
    "spool",
    "suppressions",
    "webhook_configs",
    "webhook_queue",
];

/// The content of those tables, but for what the renewal itself has written.
async fn content(gateway: &Gateway) -> Vec<(&'static str, Vec<String>)> {
    let mut database = gateway.database().await;
    let mut content = Vec::new();
    for table in TABLES {
        let rows = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
            "SELECT row_to_json(it)::text FROM {table} AS it ORDER BY 1"
        )));
        let mut rows: Vec<String> = rows.fetch_all(&mut database).await.unwrap();
        rows.retain(|row| !row.contains("api_secret.renewed"));
        content.push((table, rows));
    }
    let named = "SELECT label || ' ' || email FROM subscribers ORDER BY id";
    let named = sqlx::query_scalar(named).fetch_all(&mut database);
    content.push(("subscribers", named.await.unwrap()));
    content
}

/// A request of which the last byte is withheld, and that last byte.
struct Held {
    client: Raw,
    last: String,
}

impl Held {
    /// Sends all but the last byte, once whoever sends it has been let in: only then the body is asked for.
    async fn begin(
        gateway: &Gateway,
        (method, path): (&str, &str),
        fields: &str,
        body: &str,
    ) -> Self {
        let (first, last) = body.split_at(body.len() - 1);
        let mut client = Raw::to(gateway).await;
        let length = body.len();
        let fields = format!("{fields}Content-Length: {length}\r\nExpect: 100-continue\r\n");
        client.begin(method, path, &fields).await;
        assert_eq!(client.answer().await.status, 100, "{method} {path}");
        client.write(first).await;
        Self {
            client,
            last: last.to_owned(),
        }
    }

    async fn by_secret(
        gateway: &Gateway,
        operation: (&str, &str),
        secret: &str,
        body: &Value,
    ) -> Self {
        let fields = format!("X-Api-Secret: {secret}\r\nContent-Type: application/json\r\n");
        Self::begin(gateway, operation, &fields, &body.to_string()).await
    }

    async fn in_the_portal(gateway: &Gateway, visitor: &Visitor, path: &str, form: &str) -> Self {
        let base = &gateway.daemon.base_url;
        let fields = format!(
            "Cookie: {}\r\nOrigin: {base}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n",
            visitor.cookie()
        );
        Self::begin(gateway, ("POST", path), &fields, form).await
    }

    async fn end(mut self) -> Answered {
        self.client.write(&self.last).await;
        self.client.answer().await
    }
}

/// Renews the API secret, as its owner does on learning that it was stolen.
async fn renew(gateway: &Gateway) {
    let accounts = &gateway.daemon.accounts;
    let renewed = accounts.renew_api_secret(gateway.subscriber, Renewal::default(), OPERATOR);
    renewed.await.unwrap();
}

/// The operations of the interface that an API secret opens and that read a body.
async fn with_a_body(gateway: &Gateway) -> BTreeSet<String> {
    let url = format!("{}/openapi.json", gateway.daemon.base_url);
    let document: Value = gateway
        .http
        .get(url)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    operations
        .filter(|operation| {
            let by_secret = operation["security"].to_string().contains("api_secret");
            by_secret && !operation["requestBody"].is_null()
        })
        .map(|operation| text(operation, "operationId").to_owned())
        .collect()
}

fn hook() -> Value {
    json!({ "url": "https://hooks.example/a", "events": ["email.sent"] })
}

/// A webhook configuration and a send key of the app, which has a `webhook_url` then.
async fn with_targets(owner: &Caller<'_>, app: &str) -> (String, String) {
    let hook = hook();
    let webhook = owner
        .post(&format!("{app}/webhooks"), &hook)
        .await
        .success(201);
    let webhook = format!("{app}/webhooks/{}", text(&webhook, "id"));
    let url = json!({ "webhook_url": "https://hooks.example/b" });
    owner.put(app, &url).await.success(200);
    let key = json!({ "name": "Key" });
    let created = owner
        .post(&format!("{app}/send-keys"), &key)
        .await
        .success(201);
    let send_key = format!("{app}/send-keys/{}", text(&created, "id"));
    (webhook, send_key)
}

#[tokio::test]
async fn no_operation_finishes_by_a_secret_that_was_renewed() {
    let gateway = Gateway::builder()
        .billed()
        .set("DATABASE__MAX_CONNECTIONS", 80)
        .start()
        .await;
    let owner = Caller::owner(&gateway).await;
    let app = path(&gateway.app);
    let (webhook, send_key) = with_targets(&owner, &app).await;
    let hook = hook();
    let key = json!({ "name": "Key" });
    let since = json!({ "since": "2026-01-01" });
    let secret = json!({ "name": "Thief", "scopes": ["apps:write"] });
    let page = json!({ "portal_url": "https://portal.example/" });
    let back = json!({ "return_url": "https://portal.example/" });
    let other = json!({ "email": "thief@example.com" });
    let operations = [
        (
            "create_api_secret",
            "POST",
            "/me/api-secrets".to_owned(),
            secret,
        ),
        (
            "create_app",
            "POST",
            "/apps".to_owned(),
            json!({ "name": "Thief's" }),
        ),
        (
            "change_app",
            "PUT",
            app.clone(),
            json!({ "name": "Thief's" }),
        ),
        (
            "create_connect_session",
            "POST",
            format!("{app}/connect-sessions"),
            json!({}),
        ),
        ("change_me", "PATCH", "/me".to_owned(), other),
        (
            "billing_checkout_setup",
            "POST",
            "/payprov/checkout-setup".to_owned(),
            page,
        ),
        ("billing_portal", "POST", "/payprov/portal".to_owned(), back),
        ("create_send_key", "POST", format!("{app}/send-keys"), key),
        (
            "change_send_key",
            "PUT",
            send_key,
            json!({ "name": "Thief's" }),
        ),
        (
            "create_webhook",
            "POST",
            format!("{app}/webhooks"),
            hook.clone(),
        ),
        (
            "change_webhook",
            "PUT",
            webhook.clone(),
            json!({ "is_active": false }),
        ),
        (
            "replay_webhook",
            "POST",
            format!("{webhook}/replay"),
            since.clone(),
        ),
        ("replay_app_webhook", "POST", format!("{app}/replay"), since),
        (
            "rotate_webhook_secret",
            "POST",
            format!("{webhook}/rotate-secret"),
            json!({}),
        ),
    ];
    let named: BTreeSet<String> = operations.iter().map(|it| it.0.to_owned()).collect();
    assert_eq!(named, with_a_body(&gateway).await);
    let mut held = Vec::new();
    for (name, method, path, body) in &operations {
        let held_back = Held::by_secret(&gateway, (method, path), &owner.secret, body).await;
        held.push((name, held_back));
    }
    renew(&gateway).await;
    let before = content(&gateway).await;
    for (name, held) in held {
        let answer = held.end().await;
        assert_eq!(answer.problem(), ENDED, "{name}");
    }
    assert_eq!(content(&gateway).await, before);
    gateway.stop().await;
}

#[tokio::test]
async fn an_additional_secret_is_ended_by_its_own_end_alone() {
    let gateway = Gateway::builder()
        .set("DATABASE__MAX_CONNECTIONS", 80)
        .start()
        .await;
    let owner = Caller::owner(&gateway).await;
    let new = json!({ "name": "Deploys", "scopes": ["apps:write"] });
    let created = owner.post("/me/api-secrets", &new).await.success(201);
    let (id, secret) = (text(&created, "id"), text(&created, "api_secret"));
    let body = json!({ "name": "Another" });
    let apps = ("POST", "/apps");
    let kept = Held::by_secret(&gateway, apps, secret, &body).await;
    renew(&gateway).await;
    assert_eq!(kept.end().await.status, 201);
    let ended = Held::by_secret(&gateway, apps, secret, &body).await;
    let owner = Caller::owner(&gateway).await;
    let deleted = owner.delete(&format!("/me/api-secrets/{id}")).await;
    assert_eq!(deleted.status, 204);
    let before = content(&gateway).await;
    assert_eq!(ended.end().await.problem(), ENDED);
    assert_eq!(content(&gateway).await, before);
    gateway.stop().await;
}

#[tokio::test]
async fn a_session_that_was_ended_finishes_no_form() {
    let gateway = Gateway::builder()
        .set("DATABASE__MAX_CONNECTIONS", 80)
        .start()
        .await;
    let accounts = &gateway.daemon.accounts;
    let life = TimeDelta::minutes(5);
    let minted = accounts.mint_portal_link(gateway.subscriber, life, OPERATOR);
    let (link, _) = minted.await.unwrap();
    let mut thief = Visitor::new(&gateway.daemon.base_url);
    let page = thief
        .post(&format!("/portal/sign-in/{}", link.expose()), &[])
        .await;
    thief.keep_cookie(&page);
    let renewal = "/portal/settings/api-secret/renew";
    let last = thief.get(renewal).await.field("last");
    let forms = [
        (renewal, "x=1".to_owned()),
        (renewal, format!("last={last}")),
        ("/portal/settings/api-secret/reveal", "x=1".to_owned()),
        (
            "/portal/settings",
            "label=Thief&email=thief%40example.com".to_owned(),
        ),
        ("/portal/apps", "name=Thief".to_owned()),
        (
            "/portal/settings/api-secrets/new",
            "name=Thief&scopes=apps%3Awrite".to_owned(),
        ),
    ];
    let mut held = Vec::new();
    for (path, form) in &forms {
        held.push((
            path,
            Held::in_the_portal(&gateway, &thief, path, form).await,
        ));
    }
    renew(&gateway).await;
    let before = content(&gateway).await;
    for (path, held) in held {
        let answer = held.end().await;
        // The mark of another secret is none of the current one either way.
        let is_refused = answer.status == 401 || answer.header.contains("renewed-before");
        assert!(is_refused, "{path}: {answer:?}");
    }
    assert_eq!(content(&gateway).await, before);
    gateway.stop().await;
}
