//! Who may ask: a subscriber, about the configurations of an app of its own, under that app's path.

use reqwest::Method;
use serde_json::{Value, json};

use super::{arrived, builder, create, hook, hooks, renew, settled};
use crate::support::caller::{Answer, Caller, anonymous, text};
use crate::support::gateway::Gateway;
use crate::support::receiver::Receiver;

/// Every operation, below `/apps/{pushable_key}/webhooks`.
fn operations(webhook: &str, delivery: &str) -> Vec<(Method, String)> {
    vec![
        (Method::GET, String::new()),
        (Method::POST, String::new()),
        (Method::PUT, format!("/{webhook}")),
        (Method::DELETE, format!("/{webhook}")),
        (Method::POST, format!("/{webhook}/test")),
        (Method::GET, format!("/{webhook}/deliveries")),
        (
            Method::POST,
            format!("/{webhook}/deliveries/{delivery}/retry"),
        ),
    ]
}

/// A body that any of them would take.
fn body() -> Value {
    json!({ "url": "https://elsewhere.example/", "events": ["email.sent"] })
}

async fn row(gateway: &Gateway) -> Vec<String> {
    sqlx::query_scalar("SELECT webhook_configs::text FROM webhook_configs ORDER BY id")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn anothers_is_as_unknown_as_none_at_all() {
    let gateway = builder().start().await;
    let owner = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let created = create(&owner, &receiver.url("/"), &["send_key.renewed"]).await;
    renew(&owner).await;
    arrived(&gateway, &receiver, 1).await;
    settled(&gateway).await;
    let list = format!("{}/deliveries", hook(&gateway, &created));
    let list = owner.get(&list).await.success(200);
    let (webhook, delivery) = (text(&created, "id"), text(&list["deliveries"][0], "id"));
    let before = row(&gateway).await;

    let stranger = Caller::another(&gateway, "Stranger").await;
    let own = stranger.create("Own").await;
    let theirs = hooks(&gateway);
    let own = format!("/apps/{}/webhooks", text(&own, "pushable_key"));
    let unknown = "01h2xcejqtf2nbrexx3vqjhp41";
    for (method, operation) in operations(webhook, delivery) {
        let ask = async |caller: &Caller<'_>, path: &str| {
            Answer::to(caller.request(method.clone(), path).json(&body())).await
        };
        let answer = ask(&stranger, &format!("{theirs}{operation}")).await;
        assert_eq!(
            answer.problem(),
            (404, "app_not_found"),
            "{method} {operation}"
        );
        if operation.is_empty() {
            continue;
        }
        // Another's configuration below an app of one's own.
        let answer = ask(&stranger, &format!("{own}{operation}")).await;
        assert_eq!(
            answer.problem(),
            (404, "webhook_not_found"),
            "{method} {operation}"
        );
        for other in [
            format!("wconf_{unknown}"),
            format!("wdel_{unknown}"),
            webhook.to_uppercase(),
            format!("{webhook}x"),
            webhook.trim_start_matches("wconf_").to_owned(),
            "x%00y".to_owned(),
            "%FF".to_owned(),
        ] {
            let path = format!("{theirs}{}", operation.replace(webhook, &other));
            let answer = ask(&owner, &path).await;
            assert_eq!(answer.status, 404, "{method} {path}: {}", answer.body);
        }
    }
    // A delivery of one configuration below another one.
    let other = create(&owner, &receiver.url("/"), &["app.created"]).await;
    for (path, code) in [
        (
            format!("{}/deliveries/{delivery}/retry", hook(&gateway, &other)),
            "delivery_not_found",
        ),
        (
            format!(
                "{}/deliveries/wdel_{unknown}/retry",
                hook(&gateway, &created)
            ),
            "delivery_not_found",
        ),
        (
            format!("{}/deliveries/x/retry", hook(&gateway, &created)),
            "delivery_not_found",
        ),
    ] {
        assert_eq!(owner.reset(&path).await.problem(), (404, code), "{path}");
    }
    owner.delete(&hook(&gateway, &other)).await.success(204);
    assert_eq!(row(&gateway).await, before);
    assert_eq!(receiver.count(), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_let_in_without_the_api_secret() {
    let gateway = builder().start().await;
    let owner = Caller::owner(&gateway).await;
    let created = create(&owner, "https://app.example/", &["email.sent"]).await;
    let before = row(&gateway).await;
    let delivery = "wdel_01h2xcejqtf2nbrexx3vqjhp41";
    for (method, operation) in operations(text(&created, "id"), delivery) {
        let path = format!("{}{operation}", hooks(&gateway));
        for (header, value) in [
            ("x-other", owner.secret.as_str()),
            ("x-send-key", gateway.app.send_key.expose()),
            ("x-api-secret", gateway.app.send_key.expose()),
            ("x-api-secret", text(&created, "secret")),
            ("x-api-secret", "sk_wrong"),
        ] {
            let request = anonymous(&gateway, method.clone(), &path);
            let answer = Answer::to(request.header(header, value).json(&body())).await;
            assert_eq!(
                answer.problem(),
                (401, "invalid_api_secret"),
                "{method} {path}"
            );
        }
    }
    assert_eq!(row(&gateway).await, before);
    gateway.stop().await;
}
