//! Webhook configurations over REST: their lives, what a caller may give, who may ask, and what arrives
//! at a real receiver because of them.

mod app_secret;
mod deliveries;
mod fields;
mod life;
mod own_url;
mod ownership;
mod payloads;
mod replay;
mod rotation;
mod testing;
mod told;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use hmac::{Hmac, KeyInit, Mac};
use mailgate_types::clock::Clock;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::caller::{Answer, Caller, path, text};
use crate::support::gateway::{Builder, Gateway};
use crate::support::receiver::{Received, Receiver};

/// A gateway that may call this machine, and whose rate limits are out of the way.
fn builder() -> Builder {
    Gateway::builder()
        .set("WEBHOOKS__ALLOW_PRIVATE", true)
        .set("LIMITS__REQUESTS_PER_SECOND", 100_000)
        .set("LIMITS__REQUESTS_BURST", 100_000)
}

/// The path of the demo app's configurations.
fn hooks(gateway: &Gateway) -> String {
    format!("{}/webhooks", path(&gateway.app))
}

/// The path of one of them.
fn hook(gateway: &Gateway, webhook: &Value) -> String {
    format!("{}/{}", hooks(gateway), text(webhook, "id"))
}

/// A new configuration of the demo app.
async fn create(caller: &Caller<'_>, url: &str, events: &[&str]) -> Value {
    let body = json!({ "url": url, "events": events });
    let answer = caller.post(&hooks(caller.gateway), &body).await;
    answer.success(201)
}

/// The demo app's send key renewed: an event that costs little.
async fn renew(caller: &Caller<'_>) {
    let path = format!("{}/reset-send-key", path(&caller.gateway.app));
    caller.reset(&path).await.success(200);
}

/// `POST` without a body.
async fn post(caller: &Caller<'_>, path: &str) -> Answer {
    Answer::to(caller.request(Method::POST, path)).await
}

/// Waits for so many requests in all, and answers them.
async fn arrived(gateway: &Gateway, receiver: &Receiver, count: usize) -> Vec<Received> {
    let what = format!("request {count} at the receiver");
    gateway
        .eventually(&what, async |_| receiver.count() >= count)
        .await;
    receiver.received()
}

/// Waits until nothing is due any more: every attempt that was due is recorded.
async fn settled(gateway: &Gateway) {
    gateway
        .eventually("the end of all that is due", async |gateway| {
            let due: i64 =
                sqlx::query_scalar("SELECT count(*) FROM webhook_queue WHERE state <> 'waiting'")
                    .fetch_one(&mut gateway.database().await)
                    .await
                    .unwrap();
            due == 0
        })
        .await;
}

/// Moves the clock to the next attempt of what waits.
async fn next_attempt(gateway: &Gateway) {
    settled(gateway).await;
    let at: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar("SELECT min(due_at) FROM webhook_queue WHERE state = 'waiting'")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
    let wait = at - gateway.clock.now();
    gateway.clock.advance(wait.max(TimeDelta::zero()));
}

/// Asserts that a request is signed with these secrets and no others, in this order, as a receiver would that knows the
/// standard only.
fn is_signed_with(request: &Received, secrets: &[&str]) {
    let expected: Vec<String> = (secrets.iter())
        .map(|secret| signature(request, secret))
        .collect();
    assert_eq!(request.header("webhook-signature"), expected.join(" "));
    assert_eq!(request.header("content-type"), "application/json");
}

pub fn is_signed(request: &Received, secret: &str) {
    is_signed_with(request, &[secret]);
}

fn signature(request: &Received, secret: &str) -> String {
    let key = match secret.strip_prefix("whsec_") {
        Some(encoded) => STANDARD.decode(encoded).unwrap(),
        None => secret.as_bytes().to_vec(),
    };
    let (id, timestamp) = (
        request.header("webhook-id"),
        request.header("webhook-timestamp"),
    );
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&key).unwrap();
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(&request.body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// The names of the events that arrived, in their order.
fn events(requests: &[Received]) -> Vec<String> {
    requests
        .iter()
        .map(|request| text(&request.json(), "event").to_owned())
        .collect()
}
