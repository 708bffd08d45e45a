//! Keys with less power: additional send keys with an end, addresses and mailboxes, and additional API secrets with
//! scopes.

mod addresses;
mod apart;
mod api_secrets;
mod mailboxes;
mod nginx;
mod scopes;
mod send_keys;
mod sessions;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::caller::{Answer, Caller, anonymous, path, text};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;

const AUTHENTICATION_FAILED: &str = "535 5.7.8 Authentication failed";

/// Where an app's send keys are.
fn keys_path(gateway: &Gateway) -> String {
    format!("{}/send-keys", path(&gateway.app))
}

/// Creates a send key of the demo app.
async fn create(gateway: &Gateway, fields: &Value) -> Value {
    let owner = Caller::owner(gateway).await;
    owner.post(&keys_path(gateway), fields).await.success(201)
}

/// The usual message, with further fields.
async fn send_with(gateway: &Gateway, key: &str, further: &Value) -> Answer {
    let mut body = json!({ "to": "bob@example.com", "subject": "Hello", "body": "Hi." });
    for (name, value) in further.as_object().unwrap() {
        body[name] = value.clone();
    }
    if body.get("pk").is_none() {
        body["pk"] = json!(gateway.app.pushable_key.expose());
    }
    let request = anonymous(gateway, Method::POST, "/send");
    Answer::to(request.header("x-send-key", key).json(&body)).await
}

async fn send(gateway: &Gateway, key: &str) -> Answer {
    send_with(gateway, key, &json!({})).await
}

/// The reply to AUTH PLAIN of a client that has said EHLO.
async fn authenticate(client: &mut SmtpClient, slug: &str, key: &str) -> String {
    let plain = STANDARD.encode(format!("\0{slug}\0{key}"));
    client.command(&format!("AUTH PLAIN {plain}")).await
}

/// An authenticated session.
async fn session(gateway: &Gateway, slug: &str, key: &str) -> SmtpClient {
    let mut client = SmtpClient::encrypted(gateway).await;
    let reply = authenticate(&mut client, slug, key).await;
    assert!(reply.starts_with("235 "), "{reply}");
    client
}

/// Submits a message from this address; answers the reply.
async fn submit(client: &mut SmtpClient, from: &str) -> String {
    let content = format!("From: {from}\r\nTo: bob@example.com\r\nSubject: Hello\r\n\r\nHi.");
    client.submit("bob@example.com", content.as_bytes()).await
}

/// Asserts that a key opens nothing, by REST and by SMTP.
async fn opens_nothing(gateway: &Gateway, key: &str) {
    let answer = send(gateway, key).await;
    assert_eq!(answer.problem(), (401, "invalid_send_key"));
    let mut client = SmtpClient::encrypted(gateway).await;
    let reply = authenticate(&mut client, &gateway.app.slug, key).await;
    assert_eq!(reply, AUTHENTICATION_FAILED);
}

/// The entries of the trail with this action: target, details, and the additional API secret.
async fn recorded(gateway: &Gateway, action: &str) -> Vec<(String, Value, Option<uuid::Uuid>)> {
    sqlx::query_as(
        "SELECT coalesce(target, ''), details, api_secret_id FROM audit_entries
         WHERE action = $1 ORDER BY id",
    )
    .bind(action)
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap()
}
