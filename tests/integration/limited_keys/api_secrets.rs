//! Additional API secrets: created, listed, used, deleted; and that none of them gains more than its scopes.

use chrono::TimeDelta;
use mailgate_types::clock::Clock as _;
use mailgate_types::moment::iso8601;
use mailgate_types::scope::Scope;

use super::*;
use crate::portal::visitor::Visitor;

const SECRETS: &str = "/me/api-secrets";

/// An additional secret with these scopes, and its id.
pub async fn limited<'a>(gateway: &'a Gateway, scopes: &[&str]) -> (Caller<'a>, String) {
    let owner = Caller::owner(gateway).await;
    let fields = json!({ "name": "Limited", "scopes": scopes });
    let created = owner.post(SECRETS, &fields).await.success(201);
    let secret = text(&created, "api_secret").to_owned();
    (Caller { gateway, secret }, text(&created, "id").to_owned())
}

pub fn all_scopes() -> Vec<&'static str> {
    Scope::ALL.map(Scope::as_str).to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_created_used_and_deleted() {
    let gateway = Gateway::start().await;
    let replica = gateway.replica().start().await;
    let owner = Caller::owner(&gateway).await;
    let fields = json!({ "name": "Reports", "scopes": ["logs:read", "apps:read", "logs:read"] });
    let created = owner.post(SECRETS, &fields).await.success(201);
    let (id, secret) = (
        text(&created, "id"),
        text(&created, "api_secret").to_owned(),
    );
    assert!(id.starts_with("asec_"), "{id}");
    assert!(secret.starts_with("sk_") && secret.len() == 46, "{secret}");
    assert_eq!(created["scopes"], json!(["apps:read", "logs:read"]));
    for gateway in [&gateway, &replica] {
        let (caller, other) = (
            Caller {
                gateway,
                secret: secret.clone(),
            },
            Caller {
                gateway,
                secret: owner.secret.clone(),
            },
        );
        assert_eq!(
            caller.get("/apps").await.success(200),
            other.get("/apps").await.success(200)
        );
        let refused = caller.post("/apps", &json!({ "name": "x" })).await;
        assert_eq!(refused.problem(), (403, "insufficient_scope"));
        assert_eq!(
            refused.body["detail"],
            "This API secret doesn't have the scope apps:write."
        );
    }
    gateway.daemon.accounts.write_key_uses().await.unwrap();
    let listed = owner.get(SECRETS).await.success(200);
    assert!(!listed.to_string().contains("sk_"), "{listed}");
    assert!(
        listed["api_secrets"][0]["last_used_at"].is_string(),
        "{listed}"
    );
    // The main one is renewed on its own.
    let renewed = owner.reset("/me/reset-api-secret").await.success(200);
    let owner = Caller {
        gateway: &gateway,
        secret: text(&renewed, "api_secret").to_owned(),
    };
    let caller = Caller {
        gateway: &gateway,
        secret: secret.clone(),
    };
    caller.get("/apps").await.success(200);
    owner.delete(&format!("{SECRETS}/{id}")).await.success(204);
    for gateway in [&gateway, &replica] {
        let caller = Caller {
            gateway,
            secret: secret.clone(),
        };
        assert_eq!(
            caller.get("/apps").await.problem(),
            (401, "invalid_api_secret")
        );
    }
    let again = owner.delete(&format!("{SECRETS}/{id}")).await;
    assert_eq!(again.problem(), (404, "api_secret_not_found"));
    for action in ["api_secret.created", "api_secret.deleted"] {
        let entries = recorded(&gateway, action).await;
        assert_eq!(entries.len(), 1, "{action}");
        assert_eq!(
            (entries[0].0.as_str(), entries[0].2),
            (id, None),
            "{action}"
        );
        assert!(!entries[0].1.to_string().contains("sk_"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_at_its_time() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let expires_at = iso8601(gateway.clock.now() + TimeDelta::hours(1));
    let fields = json!({ "name": "Short", "scopes": ["apps:read"], "expires_at": expires_at });
    let created = owner.post(SECRETS, &fields).await.success(201);
    let secret = text(&created, "api_secret").to_owned();
    let caller = Caller {
        gateway: &gateway,
        secret,
    };
    caller.get("/apps").await.success(200);
    gateway.clock.advance(TimeDelta::hours(2));
    assert_eq!(
        caller.get("/apps").await.problem(),
        (401, "invalid_api_secret")
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trail_says_which_secret_it_was() {
    let gateway = Gateway::start().await;
    let (caller, id) = limited(&gateway, &["apps:write", "audit:read"]).await;
    let app = path(&gateway.app);
    caller
        .put(&app, &json!({ "name": "Renamed" }))
        .await
        .success(200);
    let owner = Caller::owner(&gateway).await;
    owner
        .put(&app, &json!({ "name": "Again" }))
        .await
        .success(200);
    for (caller, action) in [(&caller, "app.changed"), (&owner, "app.changed")] {
        let trail = caller
            .get(&format!("/audit?action={action}"))
            .await
            .success(200);
        let secrets: Vec<&Value> = (trail["entries"].as_array().unwrap().iter())
            .map(|entry| &entry["api_secret_id"])
            .collect();
        assert_eq!(secrets, [&Value::Null, &json!(id)]);
    }
    let visitor = Visitor::signed_in(&gateway).await;
    let page = visitor.get("/portal/settings").await;
    assert!(page.text.contains(&id), "{}", page.text);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_scopes_together_lead_to_no_secret() {
    let gateway = Gateway::start().await;
    let (caller, id) = limited(&gateway, &all_scopes()).await;
    let me = caller.get("/me").await.success(200);
    assert_eq!(me["api_secret"], "");
    let main_only = (403, "insufficient_scope");
    let app = path(&gateway.app);
    let key = json!({ "name": "x" });
    for answer in [
        caller.get(SECRETS).await,
        caller
            .post(SECRETS, &json!({ "name": "x", "scopes": ["apps:read"] }))
            .await,
        caller.delete(&format!("{SECRETS}/{id}")).await,
        caller.reset("/me/reset-api-secret").await,
        caller.reset("/portal/sessions").await,
        caller.get(&format!("{app}/send-key")).await,
        caller.get(&format!("{app}/webhook-secret")).await,
        caller.reset(&format!("{app}/reset-send-key")).await,
        caller.post(&format!("{app}/send-keys"), &key).await,
    ] {
        assert_eq!(answer.problem(), main_only);
        assert_eq!(answer.body["detail"], "This requires the main API secret.");
    }
    // Sign-in links are mailed to the contact address.
    let request = caller.request(Method::PATCH, "/me");
    let answer = Answer::to(request.json(&json!({ "email": "thief@example.com" }))).await;
    assert_eq!(answer.problem(), main_only);
    // The lists say no value.
    let keys = caller.get(&format!("{app}/send-keys")).await.success(200);
    assert!(!keys.to_string().contains("sek_"));
    // It isn't the portal's API secret, neither to sign in nor as the proof there.
    let mut visitor = Visitor::new(&gateway.daemon.base_url);
    assert_eq!(visitor.sign_in(&caller.secret).await.status, 401);
    let visitor = Visitor::signed_in(&gateway).await;
    let proof = [("api_secret", caller.secret.as_str())];
    let page = visitor
        .post("/portal/settings/api-secret/reveal", &proof)
        .await;
    assert_eq!(page.status, 403);
    // It is no send key.
    let answer = send(&gateway, &caller.secret).await;
    assert_eq!(answer.problem(), (401, "invalid_send_key"));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apps_webhook_url_needs_the_scope_of_webhooks() {
    let gateway = Gateway::start().await;
    let (apps, _) = limited(&gateway, &["apps:write"]).await;
    let (both, _) = limited(&gateway, &["apps:write", "webhooks:write"]).await;
    let app = path(&gateway.app);
    for url in ["https://hooks.example/x", ""] {
        let change = json!({ "webhook_url": url });
        let refused = apps.put(&app, &change).await;
        assert_eq!(refused.problem(), (403, "insufficient_scope"));
        assert_eq!(
            refused.body["detail"],
            "This API secret doesn't have the scope webhooks:write."
        );
        both.put(&app, &change).await.success(200);
    }
    let new = json!({ "name": "New", "webhook_url": "https://hooks.example/x" });
    assert_eq!(
        apps.post("/apps", &new).await.problem(),
        (403, "insufficient_scope")
    );
    both.post("/apps", &new).await.success(201);
    apps.create("Without").await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_fields_are_named_and_twenty_are_enough() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let scopes = |count: usize| json!(vec!["apps:read"; count]);
    for (fields, wrong) in [
        (json!({}), vec!["name", "scopes"]),
        (json!({ "name": "", "scopes": [] }), vec!["name"]),
        (
            json!({ "name": "\u{200b}", "scopes": scopes(1) }),
            vec!["name"],
        ),
        (json!({ "name": "x", "scopes": [] }), vec!["scopes"]),
        (
            json!({ "name": "x", "scopes": "apps:read" }),
            vec!["scopes"],
        ),
        (
            json!({ "name": "x", "scopes": ["apps:read", "*", 7] }),
            vec!["scopes[1]", "scopes[2]"],
        ),
        (
            json!({ "name": "x", "scopes": scopes(101) }),
            vec!["scopes"],
        ),
        (
            json!({ "name": "x".repeat(256), "scopes": scopes(1), "expires_at": "never" }),
            vec!["expires_at", "name"],
        ),
    ] {
        let answer = owner.post(SECRETS, &fields).await;
        assert_eq!(answer.wrong_fields(), wrong, "{fields:.200}");
    }
    for _ in 0..20 {
        owner
            .post(SECRETS, &json!({ "name": "x", "scopes": scopes(100) }))
            .await
            .success(201);
    }
    let answer = owner
        .post(SECRETS, &json!({ "name": "x", "scopes": scopes(1) }))
        .await;
    assert_eq!(answer.problem(), (409, "too_many_api_secrets"));
    // Another subscriber neither sees nor deletes them.
    let listed = owner.get(SECRETS).await.success(200);
    let id = text(&listed["api_secrets"][0], "id");
    let stranger = Caller::another(&gateway, "Stranger").await;
    assert_eq!(
        stranger.get(SECRETS).await.success(200),
        json!({ "api_secrets": [] })
    );
    for id in [id, "x", "%00", "asec_01h2xcejqtf2nbrexx3vqjhp41"] {
        let answer = stranger.delete(&format!("{SECRETS}/{id}")).await;
        assert_eq!(answer.problem(), (404, "api_secret_not_found"), "{id}");
    }
    gateway.stop().await;
}
