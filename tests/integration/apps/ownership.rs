//! Who may ask: a subscriber, about apps of its own.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Answer, Caller, anonymous, path, unlimited};
use crate::support::gateway::Gateway;

/// Every operation that names an app.
const OPERATIONS: [(Method, &str); 6] = [
    (Method::GET, ""),
    (Method::PUT, ""),
    (Method::DELETE, ""),
    (Method::GET, "/send-key"),
    (Method::POST, "/reset-send-key"),
    (Method::POST, "/reset-pushable-key"),
];

#[tokio::test(flavor = "multi_thread")]
async fn anothers_app_is_as_unknown_as_none_at_all() {
    let gateway = unlimited().await;
    let stranger = Caller::another(&gateway, "Stranger").await;
    stranger.create("Own").await;
    let before = row(&gateway).await;
    let unknown = format!("/apps/pk_{}", "x".repeat(43));
    for (method, operation) in OPERATIONS {
        // A body that is wrong tells nothing either.
        for body in [json!({ "name": "Mine now" }), json!({ "name": 7 })] {
            let ask = async |app: &str| {
                let request = stranger.request(method.clone(), &format!("{app}{operation}"));
                let answer = Answer::to(request.json(&body)).await;
                let case = format!("{method} {app}{operation}");
                assert_eq!(answer.problem(), (404, "app_not_found"), "{case}");
                without_request_id(answer.body)
            };
            let theirs = ask(&path(&gateway.app)).await;
            for other in [
                unknown.as_str(),
                "/apps/pk_",
                "/apps/x%00y",
                "/apps/%FF",
                "/apps/..%2Fapps",
                &format!("/apps/{}", gateway.app.slug),
                &format!("/apps/{}", gateway.app.id),
            ] {
                assert_eq!(ask(other).await, theirs, "{method} {other}{operation}");
            }
        }
    }
    assert_eq!(row(&gateway).await, before);
    let list = stranger.get("/apps").await.success(200);
    assert_eq!(list["apps"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_let_in_without_the_api_secret() {
    let gateway = unlimited().await;
    let owner = Caller::owner(&gateway).await;
    let before = row(&gateway).await;
    let swapped: String = owner.secret[3..]
        .chars()
        .map(|letter| match letter {
            'a'..='z' => letter.to_ascii_uppercase(),
            _ => letter.to_ascii_lowercase(),
        })
        .collect();
    let app = path(&gateway.app);
    let own = OPERATIONS.map(|(method, operation)| (method, format!("{app}{operation}")));
    let others = [
        (Method::GET, "/me".to_owned()),
        (Method::POST, "/me/reset-api-secret".to_owned()),
        (Method::GET, "/apps".to_owned()),
        (Method::POST, "/apps".to_owned()),
    ];
    for (method, path) in own.into_iter().chain(others) {
        for (header, value) in [
            ("x-other", owner.secret.as_str()),
            ("x-send-key", gateway.app.send_key.expose()),
            ("x-api-key", &owner.secret),
            ("authorization", &format!("Basic {}", owner.secret)),
            ("authorization", &owner.secret),
            ("authorization", "Bearer"),
            ("authorization", &format!("Bearer {}x", owner.secret)),
            ("x-api-secret", ""),
            ("x-api-secret", "sk_wrong"),
            ("x-api-secret", &format!("sk_{}", "x".repeat(43))),
            ("x-api-secret", &format!("sk_{swapped}")),
            ("x-api-secret", &format!("{}x", owner.secret)),
            ("x-api-secret", gateway.app.send_key.expose()),
            ("x-api-secret", gateway.app.pushable_key.expose()),
            ("x-api-secret", "é"),
        ] {
            let request = anonymous(&gateway, method.clone(), &path);
            let request = request.header(header, value).json(&json!({ "name": "x" }));
            let answer = Answer::to(request).await;
            let expected = (401, "invalid_api_secret");
            assert_eq!(answer.problem(), expected, "{method} {path} {header}");
        }
    }
    assert_eq!(row(&gateway).await, before);
    owner.get("/me").await.success(200);
    let bearer = format!("Bearer {}", owner.secret);
    let request = anonymous(&gateway, Method::GET, "/me").header("authorization", bearer);
    Answer::to(request).await.success(200);
}

fn without_request_id(mut body: Value) -> Value {
    body.as_object_mut().unwrap().remove("request_id");
    body
}

/// The gateway's app as it lies in the database.
async fn row(gateway: &Gateway) -> String {
    sqlx::query_scalar("SELECT apps::text FROM apps WHERE id = $1")
        .bind(gateway.app.id.0)
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}
