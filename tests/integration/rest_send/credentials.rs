//! Who may call, and what a request must look like before its fields count.

use reqwest::Method;
use reqwest::header::{ALLOW, CONTENT_TYPE};
use serde_json::json;

use super::{Answer, fields, request, request_to, send};
use crate::support::gateway::{Gateway, create_app};

/// One gateway for all of these, each with an empty inbox.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_let_in_or_told_why_not() {
    let gateway = Gateway::start().await;
    a_stranger_is_told_nothing_of_the_fields(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    pk_names_the_keys_own_app(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    the_body_says_that_it_is_json(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    the_body_is_a_json_object(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    paths_and_methods_that_are_not_there(&gateway).await;
    gateway.sandbox.inbox.clear().await.unwrap();
    the_send_key_alone_lets_a_caller_in(&gateway).await;
}

async fn the_send_key_alone_lets_a_caller_in(gateway: &Gateway) {
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    let key = gateway.app.send_key.expose();
    let mut database = gateway.database().await;
    let swapped: String = key[4..]
        .chars()
        .map(|letter| match letter {
            'a'..='z' => letter.to_ascii_uppercase(),
            _ => letter.to_ascii_lowercase(),
        })
        .collect();
    let body = fields(gateway, &json!({}));
    for (case, header, value, expected) in [
        ("the key", "X-Send-Key", key, (200, "")),
        ("for older clients", "X-Api-Key", key, (200, "")),
        (
            "a bearer's",
            "Authorization",
            &format!("Bearer {key}"),
            (200, ""),
        ),
        (
            "in any case",
            "Authorization",
            &format!("bearer  {key}"),
            (200, ""),
        ),
        (
            "another scheme's",
            "Authorization",
            &format!("Basic {key}"),
            (401, "invalid_send_key"),
        ),
        ("no key", "X-Other", "x", (401, "invalid_send_key")),
        ("an empty one", "X-Send-Key", "", (401, "invalid_send_key")),
        (
            "a wrong one",
            "X-Send-Key",
            "sek_wrong",
            (401, "invalid_send_key"),
        ),
        (
            "a wrong one for older clients",
            "X-Api-Key",
            "sek_wrong",
            (401, "invalid_send_key"),
        ),
        (
            "in other case",
            "X-Send-Key",
            &format!("sek_{swapped}"),
            (401, "invalid_send_key"),
        ),
        (
            "the pushable key",
            "X-Send-Key",
            gateway.app.pushable_key.expose(),
            (401, "invalid_send_key"),
        ),
        (
            "in X-Api-Secret",
            "X-Api-Secret",
            key,
            (401, "invalid_send_key"),
        ),
        (
            "a wrong bearer token",
            "Authorization",
            &format!("Bearer {key}x"),
            (401, "invalid_send_key"),
        ),
        (
            "another app's key",
            "X-Send-Key",
            other.send_key.expose(),
            (403, "pk_mismatch"),
        ),
    ] {
        let answer = Answer::to(request(gateway).header(header, value).json(&body)).await;
        assert_eq!(answer.problem(), expected, "{case}");
    }
    assert_eq!(gateway.sandbox.inbox.count(), 4);
    sqlx::query("UPDATE apps SET send_key_digest = '\\x00' WHERE id = $1")
        .bind(gateway.app.id.0)
        .execute(&mut database)
        .await
        .unwrap();
    let answer = send(gateway, json!({})).await;
    assert_eq!(answer.problem(), (401, "invalid_send_key"), "a renewed key");
    assert_eq!(gateway.sandbox.inbox.count(), 4);
}

/// Nobody learns from an answer which fields would be right before showing a key.
async fn a_stranger_is_told_nothing_of_the_fields(gateway: &Gateway) {
    for body in ["", "{", "[]", "{}"] {
        let json = request(gateway).header(CONTENT_TYPE, "application/json");
        let answer = Answer::to(json.body(body)).await;
        assert_eq!(answer.problem(), (401, "invalid_send_key"), "{body}");
    }
    let answer = Answer::to(request(gateway).body("hello")).await;
    assert_eq!(answer.problem(), (401, "invalid_send_key"));
}

async fn pk_names_the_keys_own_app(gateway: &Gateway) {
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    let answer = send(gateway, json!({ "pk": null })).await;
    assert_eq!(answer.wrong_fields(), ["pk"]);
    let answer = send(gateway, json!({ "pk": 7 })).await;
    assert_eq!(answer.wrong_fields(), ["pk"]);
    let answer = send(gateway, json!({ "pk": other.pushable_key.expose() })).await;
    assert_eq!(answer.problem(), (403, "pk_mismatch"));
    assert_eq!(gateway.sandbox.inbox.count(), 0);
}

async fn the_body_says_that_it_is_json(gateway: &Gateway) {
    let body = fields(gateway, &json!({})).to_string();
    let post = || {
        request(gateway)
            .header("x-send-key", gateway.app.send_key.expose())
            .body(body.clone())
    };
    for (content_type, expected) in [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/jsonp", 415),
        ("", 415),
    ] {
        let answer = Answer::to(post().header(CONTENT_TYPE, content_type)).await;
        assert_eq!(answer.status, expected, "{content_type:?}");
        if expected == 415 {
            assert_eq!(answer.body["code"], "unsupported_media_type");
        }
    }
    let answer = Answer::to(post()).await;
    assert_eq!(answer.problem(), (415, "unsupported_media_type"), "missing");
    assert_eq!(gateway.sandbox.inbox.count(), 3);
}

async fn the_body_is_a_json_object(gateway: &Gateway) {
    let pk = gateway.app.pushable_key.expose();
    for (body, expected) in [
        (String::new(), 400),
        ("{".to_owned(), 400),
        ("{\"pk\":}".to_owned(), 400),
        ("{'pk': 'x'}".to_owned(), 400),
        (format!("{{\"pk\":\"{pk}\"}} and more"), 400),
        (format!("{{\"pk\":\"{pk}\",}}"), 400),
        ("\"\\ud800\"".to_owned(), 400),
        ("[]".to_owned(), 422),
        (format!("[\"{pk}\",\"b@example.com\",\"s\",\"b\"]"), 422),
        ("\"text\"".to_owned(), 422),
        ("1".to_owned(), 422),
        ("true".to_owned(), 422),
        ("null".to_owned(), 422),
    ] {
        let request = request(gateway)
            .header("x-send-key", gateway.app.send_key.expose())
            .header(CONTENT_TYPE, "application/json")
            .body(body.clone());
        let answer = Answer::to(request).await;
        let code = if expected == 400 {
            "malformed_json"
        } else {
            "invalid_request"
        };
        assert_eq!(answer.problem(), (expected, code), "{body}");
    }
    assert_eq!(gateway.sandbox.inbox.count(), 0);
}

async fn paths_and_methods_that_are_not_there(gateway: &Gateway) {
    for (method, path, expected) in [
        (Method::POST, "/nothing", (404, "not_found")),
        (Method::GET, "/", (404, "not_found")),
        (Method::POST, "/send/", (404, "not_found")),
        (Method::POST, "/SEND", (404, "not_found")),
        (Method::GET, "/send", (405, "method_not_allowed")),
        (Method::PUT, "/send", (405, "method_not_allowed")),
        (Method::DELETE, "/send", (405, "method_not_allowed")),
    ] {
        let answer = Answer::to(request_to(gateway, method.clone(), path)).await;
        assert_eq!(answer.problem(), expected, "{method} {path}");
        // RFC 9110 §15.5.6 wants it.
        let allow = answer
            .headers
            .get(ALLOW)
            .map(|value| value.to_str().unwrap());
        let wanted = (expected.0 == 405).then_some("POST");
        assert_eq!(allow, wanted, "{method} {path}");
    }
}
