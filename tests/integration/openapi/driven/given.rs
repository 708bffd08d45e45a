//! What a run is given: a subscriber, and apps with mailboxes and webhooks.

use mailgate_types::ids::{AppId, WebhookDeliveryId};
use mailgate_types::plugin::Plugin;
use serde_json::{Value, json};

use crate::openapi::{OPERATOR_TOKEN, text};
use crate::support::gateway::{Gateway, connect};

async fn post(gateway: &Gateway, path: &str, header: (&str, &str), body: Value) -> Value {
    let url = format!("{}{path}", gateway.daemon.base_url);
    let request = gateway.http.post(url).header(header.0, header.1);
    let response = request.json(&body).send().await.unwrap();
    assert_eq!(response.status(), 201);
    response.json().await.unwrap()
}

/// The API secret of a new subscriber.
pub(super) async fn sign_up(gateway: &Gateway) -> String {
    let body = json!({ "label": "Driven", "email": "driven@example.com" });
    let token = ("x-operator-token", OPERATOR_TOKEN);
    let subscriber = post(gateway, "/subscribers", token, body).await;
    text(&subscriber["api_secret"]).to_owned()
}

/// The pushable keys of new apps.
pub(super) async fn create_apps(gateway: &Gateway, api_secret: &str, count: usize) -> Vec<String> {
    let mut keys = Vec::new();
    for _ in 0..count {
        let body = json!({ "name": "Driven" });
        let app = post(gateway, "/apps", ("x-api-secret", api_secret), body).await;
        keys.push(text(&app["pushable_key"]).to_owned());
    }
    keys
}

/// How many mailboxes there are to disconnect.
const MAILBOXES: usize = 40;

/// An app with mailboxes that a run may disconnect, and with a user without any whom it may release: its pushable key,
/// the ids of the mailboxes, and the key of the user.
pub(super) async fn mailboxes(
    gateway: &Gateway,
    api_secret: &str,
) -> (String, Vec<String>, String) {
    let body = json!({ "name": "Driven", "multilink": true });
    let app = post(gateway, "/apps", ("x-api-secret", api_secret), body).await;
    let pushable_key = text(&app["pushable_key"]).to_owned();
    let id: uuid::Uuid = sqlx::query_scalar("SELECT id FROM apps WHERE pushable_key = $1")
        .bind(&pushable_key)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    let mut ids = Vec::new();
    for number in 0..MAILBOXES {
        let email = format!("driven-{number}@sandbox.example");
        let (daemon, sandbox) = (&gateway.daemon, &gateway.sandbox);
        let connected = connect(daemon, sandbox, AppId(id), None, Plugin::A, &email).await;
        ids.push(connected.credential.to_string());
    }
    let user: uuid::Uuid = sqlx::query_scalar(
        "INSERT INTO end_users (user_key, app_id, user_id, created_at)
         VALUES (gen_random_uuid(), $1, 'without', now()) RETURNING user_key",
    )
    .bind(id)
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    (pushable_key, ids, user.to_string())
}

/// An app with webhook configurations: some to change and try, some to delete, and one that was told of
/// something. Where that one leads nobody is called.
pub(super) struct Hooked {
    pub(super) pushable_key: String,
    pub(super) lasting: Vec<String>,
    pub(super) throwaway: Vec<String>,
    pub(super) told: String,
    pub(super) delivery: String,
    pub(super) own_delivery: String,
}

pub(super) async fn hooked(gateway: &Gateway, api_secret: &str) -> Hooked {
    let secret = ("x-api-secret", api_secret);
    let app = post(gateway, "/apps", secret, json!({ "name": "Hooked" })).await;
    let pushable_key = text(&app["pushable_key"]).to_owned();
    let path = format!("/apps/{pushable_key}");
    let mut ids = Vec::new();
    for _ in 0..19 {
        let body = json!({ "url": "https://app.invalid/", "events": ["send_key.renewed"] });
        let webhook = post(gateway, &format!("{path}/webhooks"), secret, body).await;
        ids.push(text(&webhook["id"]).to_owned());
    }
    // An address that is refused when it is called, so that each call ends at once.
    let mut database = gateway.database().await;
    for statement in [
        "UPDATE webhook_configs SET url = 'https://127.0.0.1/'",
        "UPDATE apps SET webhook_url = 'https://127.0.0.1/' WHERE name = 'Hooked'",
        "UPDATE webhook_configs SET is_active = id = (SELECT min(id::text)::uuid FROM webhook_configs)",
    ] {
        sqlx::query(statement).execute(&mut database).await.unwrap();
    }
    let url = format!("{}{path}/reset-send-key", gateway.daemon.base_url);
    let request = gateway.http.post(url).header(secret.0, secret.1);
    assert_eq!(request.send().await.unwrap().status(), 200);
    gateway
        .eventually("a delivery", async |gateway| {
            delivery(gateway, true).await.is_some() && delivery(gateway, false).await.is_some()
        })
        .await;
    let own_delivery = delivery(gateway, true).await.unwrap().to_string();
    let delivery = delivery(gateway, false).await.unwrap().to_string();
    let throwaway = ids.split_off(3);
    let told = ids.remove(0);
    Hooked {
        pushable_key,
        lasting: ids,
        throwaway,
        told,
        delivery,
        own_delivery,
    }
}

/// A delivery to the app's own address, or to a configuration.
async fn delivery(gateway: &Gateway, own: bool) -> Option<WebhookDeliveryId> {
    let id =
        sqlx::query_scalar("SELECT id FROM webhook_deliveries WHERE (endpoint_id = app_id) = $1")
            .bind(own)
            .fetch_optional(&mut gateway.database().await)
            .await;
    id.unwrap().map(WebhookDeliveryId)
}
