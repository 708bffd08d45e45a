//! `POST /send`, through the sandbox.

mod attachments;
mod composed;
mod credentials;
mod fields;
mod headers;
mod mailbox;
mod outcomes;
mod recipients;
mod sender;

use mail_parser::{Message, MessageParser};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::gateway::Gateway;

/// A gateway whose limit of requests is no noise.
async fn start() -> Gateway {
    Gateway::builder()
        .set("LIMITS__REQUESTS_BURST", 100_000)
        .start()
        .await
}

/// The one message that came since the inbox was empty.
async fn take(gateway: &Gateway) -> Vec<u8> {
    let mut arrived = gateway.arrived().await;
    assert_eq!(arrived.len(), 1);
    gateway.sandbox.inbox.clear().await.unwrap();
    arrived.remove(0)
}

fn parsed(raw: &[u8]) -> Message<'static> {
    MessageParser::new().parse(raw).unwrap().into_owned()
}

/// An answer of the REST interface.
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl Answer {
    /// Sends the request. What holds for every answer is asserted here: its id, and the form of a
    /// problem (RFC 9457).
    async fn to(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let request_id = headers["x-request-id"].to_str().unwrap();
        assert!(!request_id.is_empty());
        if status.is_success() {
            assert_eq!(headers[CONTENT_TYPE], "application/json", "{text}");
        } else {
            assert_eq!(headers[CONTENT_TYPE], "application/problem+json", "{text}");
            assert_eq!(body["request_id"], request_id, "{text}");
            assert_eq!(body["status"], status.as_u16(), "{text}");
            for member in ["type", "title", "detail", "code"] {
                let value = body[member].as_str().unwrap_or_default();
                assert!(!value.is_empty(), "{member}: {text}");
            }
        }
        Self {
            status: status.as_u16(),
            headers,
            body,
        }
    }

    /// The status and the problem's code.
    fn problem(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or_default())
    }

    /// The fields that a 422 names, in its order.
    fn wrong_fields(&self) -> Vec<&str> {
        assert_eq!(self.status, 422, "{}", self.body);
        let errors = self.body["errors"].as_array().into_iter().flatten();
        errors
            .map(|error| {
                assert!(error["detail"].is_string(), "{error}");
                error["field"].as_str().unwrap()
            })
            .collect()
    }
}

fn request(gateway: &Gateway) -> RequestBuilder {
    request_to(gateway, Method::POST, "/send")
}

fn request_to(gateway: &Gateway, method: Method, path: &str) -> RequestBuilder {
    gateway
        .http
        .request(method, format!("{}{path}", gateway.daemon.base_url))
}

/// The usual fields with `changes` over them; null takes a field away.
fn fields(gateway: &Gateway, changes: &Value) -> Value {
    let mut fields = json!({
        "pk": gateway.app.pushable_key.expose(),
        "to": "bob@example.com",
        "subject": "Hello",
        "body": "It works.",
    });
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            fields.as_object_mut().unwrap().remove(name);
        } else {
            fields[name] = value.clone();
        }
    }
    fields
}

/// The usual request with the app's key and `changes`.
async fn send(gateway: &Gateway, changes: Value) -> Answer {
    send_json(gateway, &fields(gateway, &changes)).await
}

/// Just this body with the app's key.
async fn send_json(gateway: &Gateway, body: &Value) -> Answer {
    Answer::to(
        request(gateway)
            .header("x-send-key", gateway.app.send_key.expose())
            .json(body),
    )
    .await
}

async fn set_subscription(gateway: &Gateway, status: Option<&str>) {
    sqlx::query("UPDATE subscribers SET subscription_status = $1 WHERE id = $2")
        .bind(status)
        .bind(gateway.subscriber.0)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}
