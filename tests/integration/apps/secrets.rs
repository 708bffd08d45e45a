//! No secret in what the program writes: not in a log line at any level, not in a metric.

use std::fmt::Write as _;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::{Caller, text, tokens};
use crate::command_line::process::{Running, http_client};
use crate::command_line::serve::{authenticated, replica};
use crate::support::gateway::{Gateway, MAILBOX, SEAL_KEY};
use crate::support::ports;
use crate::support::smtp_client::SmtpClient;

const OPERATOR_TOKEN: &str = "operator-token-3f9c1d7a5b2e8064-never-logged";
const DATABASE_PASSWORD: &str = "database-password-7d41";
const SUBJECT: &str = "subject-word-b83e";
const BODY: &str = "body-word-51fa";
const CUSTOMERS_WORD: &str = "wrong-field-word-c2d9";
const WRONG_SECRET: &str = "sk_mistyped1111111111111111111111111111111111111";
const WRONG_KEY: &str = "sek_mistyped2222222222222222222222222222222222222";

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_ever_written() {
    let gateway = Gateway::start().await;
    let metrics = ports::local_address();
    let mut child = replica(&gateway)
        .set("DATABASE__URL", with_password(&gateway.database_url))
        .set("HTTP__OPERATOR_TOKEN", OPERATOR_TOKEN)
        .set("LOG__FILTER", "trace")
        .set("METRICS__LISTEN", metrics.to_string())
        .start();
    let addresses = child.ready().await;
    let base = format!("http://{}", addresses.http);
    let http = http_client();
    let mut secrets = vec![
        (
            "the seal key",
            SEAL_KEY.split_once(':').unwrap().1.to_owned(),
        ),
        ("the operator token", OPERATOR_TOKEN.to_owned()),
        ("the database password", DATABASE_PASSWORD.to_owned()),
        ("the subject", SUBJECT.to_owned()),
        ("the body", BODY.to_owned()),
        ("a field's value", CUSTOMERS_WORD.to_owned()),
        ("a mistyped secret", WRONG_SECRET.to_owned()),
        ("a mistyped key", WRONG_KEY.to_owned()),
        ("the send key", gateway.app.send_key.expose().to_owned()),
    ];
    let mut remember_tokens = async || {
        let (access, refresh) = tokens(&gateway).await;
        secrets.push(("an access token", access));
        secrets.push(("a refresh token", refresh));
    };
    remember_tokens().await;
    let authorization = &gateway.sandbox.authorization;
    authorization.expire_access_tokens().await.unwrap();
    by_rest(&gateway, &http, &base).await;
    remember_tokens().await;
    assert_eq!(authorization.refreshes(), 1);
    by_smtp(&gateway, addresses.starttls).await;
    // HTTP/2 has log lines of its own.
    let http2 = Client::builder().no_proxy().http2_prior_knowledge();
    let http2 = http2.build().unwrap();
    secrets.extend(accounts(&gateway, &http2, &base).await);
    let metrics = http.get(format!("http://{metrics}/metrics")).send().await;
    let metrics = metrics.unwrap().text().await.unwrap();
    assert!(metrics.contains("mailgate_"), "{metrics}");
    child.terminate().await;
    let written = written(&child);
    assert!(
        written.contains("\"level\":\"TRACE\""),
        "nothing was traced"
    );
    assert!(written.contains("\"target\":\"h2::"), "nothing of HTTP/2");
    let route = "\"route\":\"/apps/{pushable_key}\"";
    assert!(written.contains(route), "requests are not logged");
    assert!(!written.contains("panicked"));
    let mut leaks = String::new();
    for (what, secret) in &secrets {
        for (form, spelling) in spellings(secret) {
            let lines = written.lines().chain(metrics.lines());
            for line in lines.filter(|line| line.contains(&spelling)) {
                let shown: String = line.chars().take(600).collect();
                writeln!(leaks, "{what} ({form}): {shown}").unwrap();
            }
        }
    }
    assert!(leaks.is_empty(), "{leaks}");
    gateway.stop().await;
}

fn written(child: &Running) -> String {
    format!("{}\n{}", child.stdout(), child.stderr())
}

/// How a text may stand in a line: as it is, in Base64 at any offset, as bytes.
fn spellings(secret: &str) -> Vec<(&'static str, String)> {
    let mut all = vec![("plain", secret.to_owned())];
    for skipped in 0..3 {
        let whole = secret.len() / 3 * 3 - 3;
        let part = &secret.as_bytes()[skipped..skipped + whole.min(secret.len() - skipped) / 3 * 3];
        all.push(("Base64", STANDARD_NO_PAD.encode(part)));
        all.push(("Base64", URL_SAFE_NO_PAD.encode(part)));
    }
    let bytes = format!("{:?}", secret.as_bytes());
    all.push(("bytes", bytes.trim_matches(['[', ']']).to_owned()));
    let mut hexadecimal = String::new();
    for byte in secret.bytes() {
        write!(hexadecimal, "{byte:02x}").unwrap();
    }
    all.push(("hexadecimal", hexadecimal));
    all
}

/// A password that the private server doesn't ask for.
fn with_password(url: &str) -> String {
    let mut url = url::Url::parse(url).expect("an address");
    url.set_password(Some(DATABASE_PASSWORD)).expect("a host");
    url.to_string()
}

/// Sends that succeed, fail now, fail for good, and are wrong.
async fn by_rest(gateway: &Gateway, http: &Client, base: &str) {
    let key = gateway.app.send_key.expose();
    for (header, key, change, expected) in [
        ("x-send-key", key, json!({}), 200),
        ("x-api-key", key, json!({ "html": BODY }), 200),
        (
            "x-send-key",
            key,
            json!({ "to": "tempfail@example.com" }),
            202,
        ),
        (
            "x-send-key",
            key,
            json!({ "to": "permfail@example.com" }),
            502,
        ),
        ("x-send-key", key, json!({ "to": CUSTOMERS_WORD }), 422),
        ("x-send-key", key, json!({ "subject": [SUBJECT] }), 422),
        ("x-send-key", key, json!({ "plugin": CUSTOMERS_WORD }), 422),
        ("x-send-key", WRONG_KEY, json!({}), 401),
        ("x-send-key", "sek_short-and-mistyped", json!({}), 401),
    ] {
        let mut body = json!({
            "pk": gateway.app.pushable_key.expose(),
            "to": "bob@example.com",
            "subject": SUBJECT,
            "body": BODY,
        });
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        let request = http.post(format!("{base}/send")).header(header, key);
        let response = request.json(&body).send().await.unwrap();
        assert_eq!(response.status().as_u16(), expected, "{change}");
    }
    let response = http
        .post(format!("{base}/send"))
        .header("x-send-key", key)
        .header("content-type", "application/json")
        .body(format!("{{\"subject\": \"{SUBJECT}"))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status().as_u16(), 400);
}

async fn by_smtp(gateway: &Gateway, starttls: SocketAddr) {
    let mut client = authenticated(gateway, starttls).await;
    let message = format!("From: {MAILBOX}\r\nSubject: {SUBJECT}\r\n\r\n{BODY}");
    for (recipient, expected) in [
        ("bob@example.com", "250 2.0.0"),
        ("tempfail@example.com", "250 2.0.0"),
        ("permfail@example.com", "550 "),
    ] {
        let reply = client.submit(recipient, message.as_bytes()).await;
        assert!(reply.starts_with(expected), "{recipient}: {reply}");
    }
    let stranger = format!("From: x@example.com\r\nSubject: {SUBJECT}\r\n\r\n{BODY}");
    let reply = client.submit("bob@example.com", stranger.as_bytes()).await;
    assert!(reply.starts_with("550 5.7.1"), "{reply}");
    for mistyped in [WRONG_KEY, "sek_short-and-mistyped"] {
        let mut client = SmtpClient::connect(starttls).await;
        client.reply().await;
        client.command("EHLO client.example").await;
        client.command("STARTTLS").await;
        let mut client = client.encrypt(&gateway.ca_file).await;
        client.command("EHLO client.example").await;
        client.command("AUTH LOGIN").await;
        client.command(&STANDARD.encode(&gateway.app.slug)).await;
        let reply = client.command(&STANDARD.encode(mistyped)).await;
        assert!(reply.starts_with("535 "), "{reply}");
        // A command that isn't one may hold anything.
        client.command(&format!("{mistyped} {SUBJECT}")).await;
    }
}

/// A subscriber's life; answers the secrets that it had.
async fn accounts(gateway: &Gateway, http: &Client, base: &str) -> Vec<(&'static str, String)> {
    let call = async |method: Method, path: &str, header: &str, secret: &str, body: Value| {
        let request = http.request(method, format!("{base}{path}"));
        let response = request.header(header, secret).json(&body).send().await;
        let response = response.unwrap();
        (
            response.status().as_u16(),
            response.json::<Value>().await.unwrap(),
        )
    };
    let header = "x-api-secret";
    let (status, _) = call(Method::GET, "/me", header, WRONG_SECRET, json!({})).await;
    assert_eq!(status, 401);
    // In the wrong place: where the pushable key belongs.
    let mistaken = format!("/apps/{}", gateway.app.send_key.expose());
    let (status, _) = call(Method::GET, &mistaken, header, WRONG_SECRET, json!({})).await;
    assert_eq!(status, 401);
    let new = json!({ "label": "Grace", "email": "grace@example.com" });
    let token = "x-operator-token";
    let (status, me) = call(Method::POST, "/subscribers", token, OPERATOR_TOKEN, new).await;
    assert_eq!(status, 201, "{me}");
    let first = text(&me, "api_secret").to_owned();
    let path = "/me/reset-api-secret";
    let (_, renewed) = call(Method::POST, path, header, &first, json!({})).await;
    let secret = text(&renewed, "api_secret").to_owned();
    let new = json!({ "name": "App" });
    let (status, app) = call(Method::POST, "/apps", header, &secret, new).await;
    assert_eq!(status, 201, "{app}");
    let wrong = json!({ "name": 1, "webhook_url": CUSTOMERS_WORD });
    let (status, _) = call(Method::POST, "/apps", header, &secret, wrong).await;
    assert_eq!(status, 422);
    let path = format!("/apps/{}", text(&app, "pushable_key"));
    let reset = format!("{path}/reset-send-key");
    let (_, key) = call(Method::POST, &reset, header, &secret, json!({})).await;
    let (status, _) = call(Method::DELETE, &path, header, &secret, json!({})).await;
    assert_eq!(status, 200);
    let owner = Caller::owner(gateway).await;
    vec![
        ("an API secret", first),
        ("a renewed API secret", secret),
        ("the owner's API secret", owner.secret),
        ("a send key", text(&app, "send_key").to_owned()),
        ("a renewed send key", text(&key, "send_key").to_owned()),
        ("a webhook secret", text(&app, "webhook_secret").to_owned()),
    ]
}
