//! `POST /subscribers`, for a sign-up page of the operator's own.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Answer, Caller, anonymous, has_just, is_key, text};
use crate::support::gateway::Gateway;

const TOKEN: &str = "operator-token-of-at-least-32-characters";

async fn sign_up(gateway: &Gateway, token: Option<&str>, body: &Value) -> Answer {
    let mut request = anonymous(gateway, Method::POST, "/subscribers");
    if let Some(token) = token {
        request = request.header("x-operator-token", token);
    }
    Answer::to(request.json(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_off_unless_the_operator_sets_a_token() {
    let gateway = Gateway::start().await;
    let body = json!({ "label": "Grace", "email": "grace@example.com" });
    for token in [None, Some(""), Some(TOKEN)] {
        let answer = sign_up(&gateway, token, &body).await;
        assert_eq!(answer.problem(), (404, "not_found"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_token_a_subscriber_is_made_who_can_work() {
    let gateway = Gateway::builder()
        .set("HTTP__OPERATOR_TOKEN", TOKEN)
        .start()
        .await;
    let body = json!({ "label": "Grace's shop", "email": "grace@example.com" });
    let owner = Caller::owner(&gateway).await;
    for token in [
        None,
        Some(""),
        Some(&TOKEN[1..]),
        Some(&TOKEN.to_uppercase()),
        Some(&owner.secret),
    ] {
        let answer = sign_up(&gateway, token, &body).await;
        assert_eq!(answer.problem(), (401, "invalid_operator_token"));
    }
    for (body, wrong) in [
        (json!({}), vec!["email", "label"]),
        (json!({ "label": "", "email": "x" }), vec!["email", "label"]),
        (json!({ "label": 1, "email": [] }), vec!["email", "label"]),
        (
            json!({ "label": "\u{200b}", "email": "a@example.com" }),
            vec!["label"],
        ),
        (
            json!({ "label": "x".repeat(256), "email": "a@example.com" }),
            vec!["label"],
        ),
        (
            json!({ "label": "x", "email": "a@example.com, b@example.com" }),
            vec!["email"],
        ),
        (
            json!({ "label": "x", "email": "a@b\r\nX: y" }),
            vec!["email"],
        ),
    ] {
        let answer = sign_up(&gateway, Some(TOKEN), &body).await;
        assert_eq!(answer.wrong_fields(), wrong, "{body}");
    }
    let created = sign_up(&gateway, Some(TOKEN), &body).await.success(201);
    has_just(
        &created,
        vec!["subscriber_id", "label", "email", "api_secret"],
    );
    is_key(text(&created, "api_secret"), "sk_");
    let caller = Caller {
        gateway: &gateway,
        secret: text(&created, "api_secret").to_owned(),
    };
    let me = caller.get("/me").await.success(200);
    for (name, value) in created.as_object().unwrap() {
        assert_eq!(me[name], *value, "{name}");
    }
    assert_eq!(me["label"], "Grace's shop");
    assert_eq!(me["subscription_status"], "active");
    caller.create("Shop").await;
}
