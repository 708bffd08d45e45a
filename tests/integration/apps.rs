//! Subscribers and their apps by REST: what is answered, who may ask, and what holds at both doors
//! afterwards.

mod change;
mod delete;
mod fields;
mod keys;
mod me;
mod ownership;
mod rate;
mod requests;
mod responses;
mod secrets;
mod sign_up;
mod slugs;

use mailgate::accounts::CreatedApp;
use mailgate::types::email_address::EmailAddress;
use mailgate::types::seal::SealKeys;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, RequestBuilder};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::support::gateway::{Gateway, MAILBOX, SEAL_KEY};
use crate::support::smtp_client::SmtpClient;

/// An answer of the REST interface.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl Answer {
    /// Sends the request; the form of any answer is asserted here.
    async fn to(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.unwrap();
        let media_type = headers.get(CONTENT_TYPE).map(|it| it.to_str().unwrap());
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let request_id = headers["x-request-id"].to_str().unwrap();
        if status.is_success() {
            assert_eq!(media_type, Some("application/json"), "{status}: {text}");
        } else {
            let expected = Some("application/problem+json");
            assert_eq!(media_type, expected, "{status}: {text}");
            assert_eq!(body["request_id"], request_id, "{text}");
            assert_eq!(body["status"], status.as_u16(), "{text}");
        }
        Self {
            status: status.as_u16(),
            headers,
            body,
        }
    }

    /// The body of a success.
    fn success(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }

    fn problem(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or_default())
    }

    /// The fields that a 422 names, in alphabetical order.
    fn wrong_fields(&self) -> Vec<&str> {
        assert_eq!(self.problem(), (422, "invalid_request"), "{}", self.body);
        let errors = self.body["errors"].as_array().into_iter().flatten();
        let mut names: Vec<&str> = errors.map(|error| text(error, "field")).collect();
        names.sort_unstable();
        names
    }

    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

/// A subscriber at a gateway.
struct Caller<'a> {
    gateway: &'a Gateway,
    secret: String,
}

impl<'a> Caller<'a> {
    /// The one that owns the gateway's app.
    async fn owner(gateway: &'a Gateway) -> Self {
        let accounts = &gateway.daemon.accounts;
        let credentials = accounts.app_credentials(gateway.app.id).await.unwrap();
        let secret = credentials.unwrap().api_secret;
        let secret = secret.expose().to_owned();
        Self { gateway, secret }
    }

    /// A further one, without apps.
    async fn another(gateway: &'a Gateway, label: &str) -> Self {
        let email = EmailAddress::parse("another@example.com").unwrap();
        let created = gateway.daemon.accounts.sign_up(label, &email).await;
        let secret = created.unwrap().api_secret.expose().to_owned();
        Self { gateway, secret }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        anonymous(self.gateway, method, path).header("x-api-secret", &self.secret)
    }

    async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::GET, path)).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::to(self.request(Method::POST, path).json(body)).await
    }

    async fn put(&self, path: &str, body: &Value) -> Answer {
        Answer::to(self.request(Method::PUT, path).json(body)).await
    }

    async fn delete(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::DELETE, path)).await
    }

    /// `POST` without a body.
    async fn reset(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::POST, path)).await
    }

    /// A new app of this name.
    async fn create(&self, name: &str) -> Value {
        let answer = self.post("/apps", &json!({ "name": name })).await;
        answer.success(201)
    }
}

/// A gateway whose rate limits are out of the way of a test that asks much.
async fn unlimited() -> Gateway {
    Gateway::builder()
        .set("LIMITS__REQUESTS_PER_SECOND", 100_000)
        .set("LIMITS__REQUESTS_BURST", 100_000)
        .start()
        .await
}

fn anonymous(gateway: &Gateway, method: Method, path: &str) -> RequestBuilder {
    let url = format!("{}{path}", gateway.daemon.base_url);
    gateway.http.request(method, url)
}

/// `POST /send` with this key and `pk`; the usual message.
async fn send(gateway: &Gateway, send_key: &str, pk: &str) -> Answer {
    let body = json!({ "pk": pk, "to": "bob@example.com", "subject": "Hello", "body": "Hi." });
    let request = anonymous(gateway, Method::POST, "/send");
    Answer::to(request.header("x-send-key", send_key).json(&body)).await
}

/// AUTH PLAIN at a gateway; answers the connection and the reply.
async fn authenticate(gateway: &Gateway, app_id: &str, send_key: &str) -> (SmtpClient, String) {
    use base64::Engine as _;

    let mut client = SmtpClient::encrypted(gateway).await;
    let plain = format!("\0{app_id}\0{send_key}");
    let plain = base64::engine::general_purpose::STANDARD.encode(plain);
    let reply = client.command(&format!("AUTH PLAIN {plain}")).await;
    (client, reply)
}

/// A session of an app.
async fn session(gateway: &Gateway, app_id: &str, send_key: &str) -> SmtpClient {
    let (client, reply) = authenticate(gateway, app_id, send_key).await;
    assert!(reply.starts_with("235 "), "{app_id}: {reply}");
    client
}

/// A message of the demo's mailbox.
fn message() -> Vec<u8> {
    format!("From: {MAILBOX}\r\nTo: bob@example.com\r\nSubject: Hello\r\n\r\nHi.").into_bytes()
}

/// The path of an app.
fn path(app: &CreatedApp) -> String {
    format!("/apps/{}", app.pushable_key.expose())
}

/// The names of an object's fields, in alphabetical order.
fn names(object: &Value) -> Vec<&str> {
    let object = object.as_object().expect("an object");
    let mut names: Vec<&str> = object.keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Asserts that an object has these fields and no others.
fn has_just(object: &Value, mut expected: Vec<&str>) {
    expected.sort_unstable();
    assert_eq!(names(object), expected, "{object}");
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name]
        .as_str()
        .unwrap_or_else(|| panic!("{name} is a text of {object}"))
}

/// Asserts that a key has its prefix and 43 digits of base 62.
fn is_key(text: &str, prefix: &str) {
    let digits = text.strip_prefix(prefix).unwrap_or_default();
    let well_formed = digits.len() == 43 && digits.bytes().all(|it| it.is_ascii_alphanumeric());
    assert!(well_formed, "{prefix}: {text}");
}

/// Asserts ISO 8601 in UTC.
fn is_moment(text: &str) {
    assert!(text.ends_with('Z'), "{text}");
    assert!(chrono::DateTime::parse_from_rfc3339(text).is_ok(), "{text}");
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
