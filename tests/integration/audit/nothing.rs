//! What changes nothing leaves nothing, and a change and its entry are there together or not at all.

use mailgate_domain::mailboxes::NewConnection;
use mailgate_types::plugin::Plugin;
use reqwest::Method;
use serde_json::json;
use sqlx::Executor as _;

use super::*;
use crate::support::caller::{Answer, anonymous, path};

#[tokio::test(flavor = "multi_thread")]
async fn strangers_and_refusals_leave_nothing() {
    let gateway = Gateway::builder()
        .set("LIMITS__AUTHENTICATION_FAILURES_PER_MINUTE", 1_000_000)
        .set("HTTP__OPERATOR_TOKEN", "x".repeat(32))
        .start()
        .await;
    let owner = Caller::owner(&gateway).await;
    let app = path(&gateway.app);
    let other = Caller::another(&gateway, "Other").await;
    let before = rows(&gateway).await;
    let credential = format!("{app}/credentials/{}", gateway.mailbox.credential);
    let unknown = "wconf_01h2xcejqtf2nbrexx3vqjhp41";
    let webhook = format!("{app}/webhooks/{unknown}");
    for (method, path) in [
        (Method::POST, "/subscribers".to_owned()),
        (Method::POST, "/me/reset-api-secret".to_owned()),
        (Method::POST, "/apps".to_owned()),
        (Method::PUT, app.clone()),
        (Method::DELETE, app.clone()),
        (Method::POST, format!("{app}/reset-send-key")),
        (Method::POST, format!("{app}/reset-pushable-key")),
        (Method::POST, format!("{app}/webhooks")),
        (Method::PUT, webhook.clone()),
        (Method::DELETE, webhook.clone()),
        (Method::DELETE, credential.clone()),
        (
            Method::DELETE,
            format!("{app}/users/{}", gateway.mailbox.user_key),
        ),
        (Method::POST, "/payprov/cancel-subscription".to_owned()),
        (Method::POST, "/payprov/reactivate".to_owned()),
    ] {
        // Nobody's, a wrong one's, and another subscriber's.
        for secret in ["", "sk_wrong", &other.secret] {
            if secret == other.secret && !path.starts_with(&app) {
                continue;
            }
            let request = anonymous(&gateway, method.clone(), &path);
            let request = request.header("x-api-secret", secret);
            let request = request.header("x-operator-token", "wrong");
            let answer = Answer::to(request.json(&json!({ "name": "x" }))).await;
            assert!(
                matches!(answer.status, 401 | 404),
                "{path}: {}",
                answer.body
            );
        }
    }
    for page in [
        "/connect/pk_x",
        "/oauth/callback?state=x&code=y",
        "/oauth/callback",
    ] {
        let response = anonymous(&gateway, Method::GET, page).send().await.unwrap();
        assert!(response.status().is_client_error(), "{page}");
    }
    let connect = format!("/connect/{}", gateway.app.pushable_key.expose());
    anonymous(&gateway, Method::GET, &connect)
        .send()
        .await
        .unwrap();

    // The subscriber's own, that change nothing.
    let name = json!({ "name": "Demo", "multiuser": false });
    owner.put(&app, &name).await.success(200);
    owner.put(&app, &json!({})).await.success(200);
    for (body, field) in [
        (json!({ "webhook_url": "ftp://x" }), "webhook_url"),
        (json!({ "name": "" }), "name"),
    ] {
        assert_eq!(owner.put(&app, &body).await.wrong_fields(), [field]);
    }
    assert_eq!(owner.delete(&webhook).await.status, 404);
    let change = json!({ "is_active": false });
    assert_eq!(owner.put(&webhook, &change).await.status, 404);
    assert_eq!(
        owner.reset("/payprov/cancel-subscription").await.status,
        409
    );
    nothing_since(&gateway, &before).await;

    // A mailbox is disconnected once.
    owner.delete(&credential).await.success(200);
    assert_eq!(owner.delete(&credential).await.status, 404);
    assert_eq!(since(&gateway, &before).await.len(), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_renew_the_same_secret_one_leaves_an_entry() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let before = rows(&gateway).await;
    let (one, other) = tokio::join!(
        owner.reset("/me/reset-api-secret"),
        owner.reset("/me/reset-api-secret")
    );
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401]);
    assert_eq!(since(&gateway, &before).await.len(), 1);
    gateway.stop().await;
}

/// Refuses every row of a table from now on.
async fn refuse(gateway: &Gateway, table: &str) {
    let statement = format!(
        "CREATE FUNCTION refuse_{table}() RETURNS trigger LANGUAGE plpgsql
         AS 'BEGIN RAISE EXCEPTION ''refused''; END';
         CREATE TRIGGER refuse BEFORE INSERT ON {table}
         FOR EACH ROW EXECUTE FUNCTION refuse_{table}()"
    );
    let statement = sqlx::AssertSqlSafe(statement);
    gateway.database().await.execute(statement).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_rolled_back_leaves_no_entry() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let app = path(&gateway.app);
    let hook = json!({ "webhook_url": "https://hooks.example/a" });
    owner.put(&app, &hook).await.success(200);
    let before = rows(&gateway).await;
    // What the events are written to, which comes after the change or its entry.
    refuse(&gateway, "webhook_messages").await;
    for (method, path) in [
        (Method::POST, format!("{app}/reset-send-key")),
        (
            Method::DELETE,
            format!("{app}/credentials/{}", gateway.mailbox.credential),
        ),
        (Method::DELETE, app.clone()),
    ] {
        let answer = Answer::to(owner.request(method, &path)).await;
        assert!(answer.status >= 500, "{path}: {}", answer.body);
    }
    nothing_since(&gateway, &before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_entry_can_not_be_written_is_not_made() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let app = path(&gateway.app);
    let hook = json!({ "url": "https://hooks.example/a", "events": ["email.sent"] });
    let created = owner.post(&format!("{app}/webhooks"), &hook).await;
    let webhook = format!("{app}/webhooks/{}", text(&created.success(201), "id"));
    let state = async || -> String {
        sqlx::query_scalar(
            "SELECT jsonb_build_object(
                 'secrets', (SELECT jsonb_agg(encode(api_secret_digest, 'hex')) FROM subscribers),
                 'apps', (SELECT jsonb_agg(to_jsonb(app) ORDER BY id) FROM apps AS app),
                 'mailboxes', (SELECT jsonb_agg(email || status ORDER BY id) FROM mailboxes),
                 'webhooks', (SELECT jsonb_agg(to_jsonb(config)) FROM webhook_configs AS config)
             )::text",
        )
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
    };
    let before = state().await;
    refuse(&gateway, "audit_entries").await;
    for (method, path, body) in [
        (Method::POST, "/me/reset-api-secret".to_owned(), json!({})),
        (Method::POST, "/apps".to_owned(), json!({ "name": "x" })),
        (Method::PUT, app.clone(), json!({ "name": "x" })),
        (Method::POST, format!("{app}/reset-send-key"), json!({})),
        (Method::POST, format!("{app}/reset-pushable-key"), json!({})),
        (Method::POST, format!("{app}/webhooks"), hook.clone()),
        (Method::PUT, webhook.clone(), json!({ "is_active": false })),
        (Method::DELETE, webhook, json!({})),
        (
            Method::DELETE,
            format!("{app}/credentials/{}", gateway.mailbox.credential),
            json!({}),
        ),
        (Method::DELETE, app.clone(), json!({})),
    ] {
        let answer = Answer::to(owner.request(method, &path).json(&body)).await;
        assert!(answer.status >= 500, "{path}: {}", answer.body);
    }
    let redirect_uri = format!("http://{}/oauth/callback", gateway.daemon.http_address);
    let granted = gateway
        .sandbox
        .authorize(&redirect_uri, "eve@sandbox.example")
        .await;
    let granted = granted.unwrap();
    let new = NewConnection {
        app: gateway.app.id,
        user_id: None,
        plugin: Plugin::A,
        code: &granted.code,
        redirect_uri: &redirect_uri,
        code_verifier: &granted.code_verifier,
    };
    assert!(gateway.daemon.mailboxes.connect(&new).await.is_err());
    assert_eq!(state().await, before);
}
