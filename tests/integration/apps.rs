//! Subscribers and their apps by REST: what is answered, who may ask, and what holds at both doors
//! afterwards.

mod bounds;
mod change;
mod delete;
mod delete_subscriber;
mod fields;
mod keys;
mod me;
mod ownership;
mod rate;
mod refusals;
mod remembered;
mod requests;
mod responses;
mod secrets;
mod sign_up;
mod slugs;

use mailgate_types::seal::SealKeys;
use reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::json;

use crate::support::caller::{Answer, Caller, anonymous, has_just, is_moment, path, text};
use crate::support::gateway::{Gateway, MAILBOX, SEAL_KEY};
use crate::support::smtp_client::SmtpClient;

/// A gateway whose rate limits are out of the way of a test that asks much.
async fn unlimited() -> Gateway {
    Gateway::builder()
        .set("LIMITS__REQUESTS_PER_SECOND", 100_000)
        .set("LIMITS__REQUESTS_BURST", 100_000)
        .start()
        .await
}

/// `POST /send` with this key and `pk`; the usual message.
async fn send(gateway: &Gateway, send_key: &str, pk: &str) -> Answer {
    let body = json!({ "pk": pk, "to": "bob@example.com", "subject": "Hello", "body": "Hi." });
    let request = anonymous(gateway, Method::POST, "/send");
    Answer::to(request.header("x-send-key", send_key).json(&body)).await
}

/// AUTH PLAIN at a gateway; answers the connection and the reply.
pub async fn authenticate(gateway: &Gateway, app_id: &str, send_key: &str) -> (SmtpClient, String) {
    use base64::Engine as _;

    let mut client = SmtpClient::encrypted(gateway).await;
    let plain = format!("\0{app_id}\0{send_key}");
    let plain = base64::engine::general_purpose::STANDARD.encode(plain);
    let reply = client.command(&format!("AUTH PLAIN {plain}")).await;
    (client, reply)
}

/// A session of an app.
pub async fn session(gateway: &Gateway, app_id: &str, send_key: &str) -> SmtpClient {
    let (client, reply) = authenticate(gateway, app_id, send_key).await;
    assert!(reply.starts_with("235 "), "{app_id}: {reply}");
    client
}

/// A message of the demo's mailbox.
fn message() -> Vec<u8> {
    format!("From: {MAILBOX}\r\nTo: bob@example.com\r\nSubject: Hello\r\n\r\nHi.").into_bytes()
}

/// Asserts that a key has its prefix and 43 digits of base 62.
fn is_key(text: &str, prefix: &str) {
    let digits = text.strip_prefix(prefix).unwrap_or_default();
    let well_formed = digits.len() == 43 && digits.bytes().all(|it| it.is_ascii_alphanumeric());
    assert!(well_formed, "{prefix}: {text}");
}

/// Access and refresh token of the gateway's mailbox, as they are in the database now.
async fn tokens(gateway: &Gateway) -> (String, String) {
    let id = gateway.mailbox.credential;
    let (access, refresh): (Vec<u8>, Vec<u8>) = sqlx::query_as(
        "SELECT access_token_sealed, refresh_token_sealed FROM mailboxes WHERE id = $1",
    )
    .bind(id.0)
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap();
    let keys = SealKeys::parse([SEAL_KEY]).unwrap();
    let open = |column: &str, sealed: &[u8]| {
        let opened = keys.unseal(&format!("mailboxes.{column} {}", id.0), sealed);
        opened.unwrap().expose_secret().to_owned()
    };
    (
        open("access_token", &access),
        open("refresh_token", &refresh),
    )
}
