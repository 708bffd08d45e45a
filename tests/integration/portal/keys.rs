//! Additional send keys and API secrets: made by who shows the API secret, shown once, deleted.

use serde_json::json;

use super::visitor::{Page, Visitor, api_secret};
use crate::support::caller::Caller;
use crate::support::gateway::{Gateway, create_app};

const MARKUP: &str = "<script>alert(1)</script>\"'><img src=x>";

const SECRETS: [&str; 4] = ["sk_", "sek_", "whs_", "mgs_"];

fn hides_all(page: &Page) {
    for secret in SECRETS {
        assert!(!page.text.contains(secret), "{secret}: {}", page.text);
    }
    assert!(!page.text.contains("<script>alert"), "{}", page.text);
    assert!(!page.text.contains("<img"), "{}", page.text);
}

/// The one value with this prefix on a page.
fn shown(page: &Page, prefix: &str) -> String {
    let mut found = page.text.split(prefix).skip(1);
    let rest = found.next().unwrap_or_else(|| panic!("{}", page.text));
    let value: String = rest
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    assert_eq!(value.len(), 43, "{}", page.text);
    assert!(
        found.all(|other| other.starts_with(&value)),
        "{}",
        page.text
    );
    format!("{prefix}{value}")
}

/// The first path on the page that is between these.
fn path(page: &Page, start: &str, end: &str) -> String {
    let (_, rest) = page
        .text
        .split_once(start)
        .unwrap_or_else(|| panic!("{}", page.text));
    let (middle, _) = rest.split_once(end).unwrap();
    format!("{start}{middle}{end}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_key_is_shown_once() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let app = format!("/portal/apps/{}", gateway.app.slug);
    let new = format!("{app}/send-keys/new");
    let page = visitor.get(&new).await;
    assert_eq!(page.status, 200);
    hides_all(&page);
    let credential = gateway.mailbox.credential.to_string();
    assert!(page.text.contains(&credential), "{}", page.text);
    let secret = api_secret(&gateway).await;
    let right = [
        ("name", MARKUP),
        ("last_day", "2030-12-31"),
        ("allowed_addresses", "127.0.0.1/8\r\n::1, 192.0.2.7"),
        ("credential_ids", credential.as_str()),
        ("api_secret", secret.as_str()),
    ];
    let with = |field: &str, value: &'static str| {
        right.map(|(name, given)| (name, if name == field { value } else { given }))
    };
    for (fields, status, words) in [
        (with("name", " "), 422, "Enter a name."),
        (
            with("last_day", "2020-01-01"),
            422,
            "Enter today or a later day",
        ),
        (
            with("last_day", "9999-12-31"),
            422,
            "Enter today or a later day",
        ),
        (
            with("last_day", "+262142-12-31"),
            422,
            "Enter today or a later day",
        ),
        (
            with("allowed_addresses", "nowhere"),
            422,
            "IP addresses or CIDR ranges",
        ),
        (
            with("credential_ids", "cred_01h2xcejqtf2nbrexx3vqjhp41"),
            422,
            "Choose mailboxes of this app.",
        ),
        (
            with("credential_ids", MARKUP),
            422,
            "Choose mailboxes of this app.",
        ),
        (with("api_secret", "x"), 403, "current API secret"),
    ] {
        let page = visitor.post(&new, &fields).await;
        assert_eq!(page.status, status, "{words}: {}", page.text);
        assert!(page.text.contains(words), "{words}: {}", page.text);
        hides_all(&page);
    }
    let page = visitor.post(&new, &right).await;
    assert_eq!(page.status, 201, "{}", page.text);
    assert_eq!(page.header("cache-control"), "no-store");
    let key = shown(&page, "sek_");
    assert!(!page.text.contains(&secret));
    let owner = Caller::owner(&gateway).await;
    let keys = format!("/apps/{}/send-keys", gateway.app.pushable_key.expose());
    let listed = owner.get(&keys).await.success(200)["send_keys"][1].clone();
    assert_eq!(listed["name"], MARKUP);
    assert_eq!(listed["expires_at"], "2031-01-01T00:00:00.000Z");
    let networks = json!(["127.0.0.0/8", "::1/128", "192.0.2.7/32"]);
    assert_eq!(listed["allowed_addresses"], networks);
    assert_eq!(listed["credential_ids"], json!([credential]));
    let body = json!({ "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com", "subject": "s", "body": "b" });
    let send = async || {
        let request = gateway
            .http
            .post(format!("{}/send", gateway.daemon.base_url));
        let request = request.header("x-send-key", &key).json(&body);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(send().await, 200);
    let page = visitor.get(&app).await;
    hides_all(&page);
    assert!(page.text.contains("192.0.2.7/32"), "{}", page.text);
    let delete = path(&page, &format!("{app}/send-keys/"), "/delete");
    let page = visitor.get(&delete).await;
    assert_eq!(page.status, 200);
    hides_all(&page);
    assert_eq!(send().await, 200, "nothing is deleted by looking");
    let page = visitor.post(&delete, &[]).await;
    assert_eq!(page.location(), format!("{app}?done=key-deleted"));
    assert_eq!(send().await, 401);
    assert_eq!(visitor.post(&delete, &[]).await.status, 404);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_secret_is_shown_once() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let new = "/portal/settings/api-secrets/new";
    hides_all(&visitor.get(new).await);
    let secret = api_secret(&gateway).await;
    let right = [
        ("name", MARKUP),
        ("scopes", "logs:read"),
        ("scopes", "apps:read"),
        ("api_secret", secret.as_str()),
    ];
    for (fields, status) in [
        (vec![("name", ""), ("scopes", "logs:read")], 422),
        (vec![("name", "x"), ("scopes", "everything")], 422),
        (vec![("name", "x"), ("scopes", "logs:read")], 403),
    ] {
        let page = visitor.post(new, &fields).await;
        assert_eq!(page.status, status, "{fields:?}");
        hides_all(&page);
    }
    let page = visitor.post(new, &right).await;
    assert_eq!(page.status, 201, "{}", page.text);
    let value = shown(&page, "sk_");
    assert_ne!(value, secret);
    let caller = Caller {
        gateway: &gateway,
        secret: value.clone(),
    };
    caller.get("/apps").await.success(200);
    assert_eq!(caller.get("/webhooks").await.status, 404);
    let page = visitor.get("/portal/settings").await;
    hides_all(&page);
    assert!(page.text.contains("apps:read, logs:read"), "{}", page.text);
    // It is no proof for another one.
    let proof = [
        ("name", "x"),
        ("scopes", "logs:read"),
        ("api_secret", value.as_str()),
    ];
    assert_eq!(visitor.post(new, &proof).await.status, 403);
    let delete = path(&page, "/portal/settings/api-secrets/", "/delete");
    hides_all(&visitor.get(&delete).await);
    caller.get("/apps").await.success(200);
    let page = visitor.post(&delete, &[]).await;
    assert_eq!(page.location(), "/portal/settings?done=secret-deleted");
    assert_eq!(
        caller.get("/apps").await.problem(),
        (401, "invalid_api_secret")
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anothers_keys_are_nothing() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    let keys = format!("/apps/{}/send-keys", gateway.app.pushable_key.expose());
    let key = owner
        .post(&keys, &json!({ "name": "Mine" }))
        .await
        .success(201);
    let fields = json!({ "name": "Mine", "scopes": ["apps:read"] });
    let secret = owner.post("/me/api-secrets", &fields).await.success(201);
    let (_, theirs) = create_app(&gateway.daemon, "Theirs").await;
    let credentials = gateway.daemon.accounts.app_credentials(theirs.id).await;
    let their_secret = credentials.unwrap().unwrap().api_secret;
    let mut stranger = Visitor::new(&gateway.daemon.base_url);
    assert_eq!(stranger.sign_in(their_secret.expose()).await.status, 303);
    let id = |value: &serde_json::Value| value["id"].as_str().unwrap().to_owned();
    for path in [
        format!(
            "/portal/apps/{}/send-keys/{}/delete",
            gateway.app.slug,
            id(&key)
        ),
        format!("/portal/apps/{}/send-keys/{}/delete", theirs.slug, id(&key)),
        format!("/portal/apps/{}/send-keys/{}/delete", theirs.slug, "x"),
        format!("/portal/settings/api-secrets/{}/delete", id(&secret)),
    ] {
        assert_eq!(stranger.get(&path).await.status, 404, "{path}");
        assert_eq!(stranger.post(&path, &[]).await.status, 404, "{path}");
    }
    let path = format!("/portal/apps/{}/send-keys/new", gateway.app.slug);
    assert_eq!(stranger.get(&path).await.status, 404);
    let proof = [("name", "x"), ("api_secret", their_secret.expose())];
    assert_eq!(stranger.post(&path, &proof).await.status, 404);
    let listed = owner.get(&keys).await.success(200);
    assert_eq!(listed["send_keys"].as_array().unwrap().len(), 2);
    gateway.stop().await;
}
