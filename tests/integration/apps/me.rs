//! The subscriber itself and its secret.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Answer, Caller, has_just, is_key, is_moment, text};
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_sees_itself() {
    let gateway = Gateway::start().await;
    let caller = Caller::another(&gateway, "Grace's shop").await;
    let me = caller.get("/me").await.success(200);
    has_just(
        &me,
        vec![
            "subscriber_id",
            "label",
            "email",
            "api_secret",
            "created_at",
            "payprov_customer_id",
            "subscription_status",
            "status",
            "suspension_reason",
            "suspended_at",
        ],
    );
    let id = text(&me, "subscriber_id");
    assert!(id.starts_with("sub_") && id.len() == 30, "{id}");
    assert_eq!(me["label"], "Grace's shop");
    assert_eq!(me["email"], "another@example.com");
    assert_eq!(me["api_secret"], caller.secret);
    is_key(&caller.secret, "sk_");
    is_moment(text(&me, "created_at"));
    assert_eq!(me["subscription_status"], "active");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_secret_makes_the_old_one_worthless_everywhere() {
    let gateway = Gateway::start().await;
    let replica = gateway.replica().start().await;
    let mut caller = Caller::owner(&gateway).await;
    let renewed = caller.reset("/me/reset-api-secret").await.success(200);
    has_just(&renewed, vec!["api_secret", "minted_since"]);
    let secret = text(&renewed, "api_secret").to_owned();
    is_key(&secret, "sk_");
    assert_ne!(secret, caller.secret);
    for (secret, status) in [(caller.secret.clone(), 401), (secret.clone(), 200)] {
        for gateway in [&gateway, &replica] {
            let secret = secret.clone();
            let at = Caller { gateway, secret };
            assert_eq!(at.get("/me").await.status, status);
            assert_eq!(at.get("/apps").await.status, status);
        }
    }
    let old = caller.reset("/me/reset-api-secret").await;
    assert_eq!(old.problem(), (401, "invalid_api_secret"));
    caller.secret.clone_from(&secret);
    let me = caller.get("/me").await.success(200);
    assert_eq!(me["api_secret"], secret);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_resets_at_once_one_succeeds() {
    let gateway = Gateway::start().await;
    let replica = gateway.replica().start().await;
    let mut caller = Caller::owner(&gateway).await;
    for round in 0..8 {
        let elsewhere = Caller {
            gateway: &replica,
            secret: caller.secret.clone(),
        };
        let (one, two) = tokio::join!(
            caller.reset("/me/reset-api-secret"),
            elsewhere.reset("/me/reset-api-secret")
        );
        let (won, lost): (Vec<Answer>, Vec<Answer>) =
            [one, two].into_iter().partition(|it| it.status == 200);
        assert_eq!((won.len(), lost.len()), (1, 1), "{round}");
        assert_eq!(lost[0].problem(), (401, "invalid_api_secret"));
        caller.secret = text(&won[0].body, "api_secret").to_owned();
        let me = caller.get("/me").await.success(200);
        assert_eq!(me["api_secret"], caller.secret);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_changes_its_label_and_address() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let before = caller.get("/me").await.success(200);
    let patch = async |body: Value| {
        let request = caller.request(Method::PATCH, "/me").json(&body);
        Answer::to(request).await
    };
    for (body, wrong) in [
        (json!({ "label": " " }), vec!["label"]),
        (json!({ "label": "\u{200b}" }), vec!["label"]),
        (
            json!({ "label": "a\nb", "email": "nobody" }),
            vec!["email", "label"],
        ),
        (json!({ "email": 7 }), vec!["email"]),
        // What would be shown as something else than an address.
        (
            json!({ "email": "\"Nothing to do. See https://evil.example\"@example.com" }),
            vec!["email"],
        ),
        (json!({ "email": "a\u{200b}b@example.com" }), vec!["email"]),
        (
            json!({ "email": "a@example.com, b@example.com" }),
            vec!["email"],
        ),
    ] {
        assert_eq!(patch(body).await.wrong_fields(), wrong);
    }
    assert_eq!(patch(json!({})).await.success(200), before);
    let named = patch(json!({ "label": "Ada's shop" })).await.success(200);
    let mut expected = before.clone();
    expected["label"] = json!("Ada's shop");
    assert_eq!(named, expected);
    let moved = patch(json!({ "email": "New@Example.com", "label": null })).await;
    expected["email"] = json!("New@Example.com");
    assert_eq!(moved.success(200), expected);
    assert_eq!(caller.get("/me").await.success(200), expected);

    let entries = caller.get("/audit?action=subscriber.changed").await;
    let entries = entries.success(200)["entries"].clone();
    let details: Vec<&Value> = (entries.as_array().unwrap().iter())
        .map(|entry| &entry["details"])
        .collect();
    assert_eq!(
        details,
        [
            &json!({ "email": { "from": before["email"], "to": "New@Example.com" } }),
            &json!({ "label": { "from": before["label"], "to": "Ada's shop" } }),
        ]
    );
}
