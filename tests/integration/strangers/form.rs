//! Requests that somebody between client and gateway could read otherwise, and what answers say to caches and
//! clients.

use reqwest::Method;
use serde_json::json;

use super::raw::Raw;
use crate::support::caller::{Answer, Caller, anonymous, path, text};
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_one_host() {
    let gateway = Gateway::start().await;
    for (head, expected) in [
        ("GET /me HTTP/1.1\r\n", (400, "invalid_host")),
        (
            "GET /me HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n",
            (400, "invalid_host"),
        ),
        (
            "GET /me HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n",
            (400, "invalid_host"),
        ),
        (
            "GET /me HTTP/1.1\r\nHost: x@a.example\r\n",
            (400, "invalid_host"),
        ),
        (
            "GET /me HTTP/1.1\r\nHost: a.example/b\r\n",
            (400, "invalid_host"),
        ),
        (
            "GET /me HTTP/1.1\r\nHost: a.example:80\r\n",
            (401, "invalid_api_secret"),
        ),
        ("GET /me HTTP/1.1\r\nHost:\r\n", (401, "invalid_api_secret")),
        ("GET /me HTTP/1.0\r\n", (401, "invalid_api_secret")),
        ("GET /healthz HTTP/1.1\r\n", (400, "invalid_host")),
        ("GET /openapi.json HTTP/1.1\r\n", (400, "invalid_host")),
        ("GET /nothing HTTP/1.1\r\n", (400, "invalid_host")),
    ] {
        let mut client = Raw::to(&gateway).await;
        client.write(&format!("{head}\r\n")).await;
        assert_eq!(client.answer().await.problem(), expected, "{head}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_keys_are_one_too_many() {
    let gateway = Gateway::start().await;
    let other = format!("sek_{}", "0".repeat(43));
    let key = gateway.app.send_key.expose();
    let send = async |headers: &[(&str, &str)]| {
        let mut request = anonymous(&gateway, Method::POST, "/send");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = json!({ "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com",
                           "subject": "Hello", "body": "Hi." });
        Answer::to(request.json(&body)).await
    };
    for headers in [
        [("x-send-key", key), ("x-api-key", other.as_str())],
        [("x-send-key", other.as_str()), ("x-api-key", key)],
        [("x-send-key", key), ("x-send-key", other.as_str())],
        [("x-send-key", key), ("x-api-key", "")],
    ] {
        let answer = send(&headers).await;
        assert_eq!(
            answer.problem(),
            (400, "ambiguous_credentials"),
            "{headers:?}"
        );
    }
    send(&[("x-send-key", key), ("x-api-key", key)])
        .await
        .success(200);
    let caller = Caller::owner(&gateway).await;
    let twice = caller
        .request(Method::GET, "/me")
        .header("x-api-secret", "sk_other");
    assert_eq!(
        Answer::to(twice).await.problem(),
        (400, "ambiguous_credentials")
    );
    assert_eq!(gateway.sandbox.inbox.count(), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_comes_as_it_is() {
    let gateway = Gateway::builder().billed().start().await;
    let caller = Caller::owner(&gateway).await;
    for coding in ["gzip", "br", "identity, gzip", "x"] {
        for path in ["/apps", "/payprov/checkout-setup"] {
            let request = caller
                .request(Method::POST, path)
                .json(&json!({ "name": "x" }));
            let answer = Answer::to(request.header("content-encoding", coding)).await;
            assert_eq!(
                answer.problem(),
                (415, "unsupported_encoding"),
                "{path} {coding}"
            );
            assert_eq!(answer.header("accept-encoding"), "identity");
        }
    }
    let request = caller
        .request(Method::POST, "/apps")
        .json(&json!({ "name": "x" }));
    let answer = Answer::to(request.header("content-encoding", "identity")).await;
    answer.success(201);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_cache_keeps_a_secret() {
    let gateway = Gateway::builder()
        .set(
            "HTTP__OPERATOR_TOKEN",
            "an operator token of the tests' own",
        )
        .start()
        .await;
    let mut caller = Caller::owner(&gateway).await;
    let app = path(&gateway.app);
    let own = |answer: &Answer| answer.header("cache-control").to_owned();
    let sign_up = anonymous(&gateway, Method::POST, "/subscribers")
        .header("x-operator-token", "an operator token of the tests' own")
        .json(&json!({ "label": "Grace", "email": "grace@example.com" }));
    let hook = json!({ "url": "https://app.invalid/", "events": ["email.sent"] });
    let mut answers = vec![
        Answer::to(sign_up).await,
        caller.get("/me").await,
        caller.post("/apps", &json!({ "name": "x" })).await,
        caller.get(&format!("{app}/send-key")).await,
        caller.reset(&format!("{app}/reset-send-key")).await,
        caller.get(&format!("{app}/webhook-secret")).await,
        caller.reset(&format!("{app}/reset-webhook-secret")).await,
        caller.post(&format!("{app}/webhooks"), &hook).await,
        caller.reset(&format!("{app}/reset-pushable-key")).await,
    ];
    let reset = caller.reset("/me/reset-api-secret").await;
    caller.secret = text(&reset.body, "api_secret").to_owned();
    answers.push(reset);
    for answer in &answers {
        assert!((200..300).contains(&answer.status), "{}", answer.body);
        assert_eq!(own(answer), "no-store", "{}", answer.status);
    }
    // A page for everybody may be kept.
    let url = format!("{}/openapi.json", gateway.daemon.base_url);
    let document = gateway.http.get(url).send().await.unwrap();
    assert_eq!(document.headers()["cache-control"], "public, max-age=300");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_401_says_where_the_key_belongs() {
    let gateway = Gateway::builder()
        .set(
            "HTTP__OPERATOR_TOKEN",
            "an operator token of the tests' own",
        )
        .start()
        .await;
    for (method, path, header) in [
        (Method::GET, "/me", "X-Api-Secret"),
        (Method::GET, "/apps/pk_x", "X-Api-Secret"),
        (Method::POST, "/send", "X-Send-Key"),
        (Method::POST, "/subscribers", "X-Operator-Token"),
    ] {
        for key in [None, Some("wrong")] {
            let mut request = anonymous(&gateway, method.clone(), path);
            if let Some(key) = key {
                request = request.header(header, key);
            }
            let answer = Answer::to(request).await;
            assert_eq!(answer.status, 401, "{path}");
            let expected = format!("ApiKey realm=\"mailgate\", header=\"{header}\"");
            assert_eq!(answer.header("www-authenticate"), expected, "{path}");
        }
    }
    gateway.stop().await;
}
