//! A configuration from its creation to its end.

use chrono::TimeDelta;
use mailgate_types::clock::Clock;
use mailgate_types::moment::iso8601;
use serde_json::{Value, json};

use super::{
    arrived, builder, create, events, hook, hooks, is_signed, next_attempt, renew, settled,
};
use crate::support::caller::{Caller, has_just, is_moment, text};
use crate::support::gateway::Gateway;
use crate::support::receiver::{Receiver, Reply};

const RENEWED: &str = "send_key.renewed";

/// The only configuration in the list.
async fn listed(caller: &Caller<'_>) -> Value {
    let list = caller.get(&hooks(caller.gateway)).await.success(200);
    has_just(&list, vec!["webhooks"]);
    let webhooks = list["webhooks"].as_array().unwrap();
    assert_eq!(webhooks.len(), 1, "{list}");
    webhooks[0].clone()
}

/// Asserts a moment between `before` and now.
fn is_within(moment: &str, before: &str, gateway: &Gateway) {
    is_moment(moment);
    let now = iso8601(gateway.clock.now());
    assert!(
        before <= moment && moment <= now.as_str(),
        "{before} {moment} {now}"
    );
}

/// A new configuration of [`RENEWED`] (given twice) and `app.deleted`, in its answer and in the list.
async fn is_as_asked_for(caller: &Caller<'_>, created: &Value, url: &str) {
    let in_creation = [
        "id",
        "app_id",
        "url",
        "events",
        "is_active",
        "secret",
        "secret_encoding",
        "created_at",
    ];
    has_just(created, in_creation.to_vec());
    let secret = text(created, "secret");
    assert_eq!(secret.len(), "whsec_".len() + 44);
    assert!(text(created, "id").starts_with("wconf_"));
    assert_eq!(created["app_id"], caller.gateway.app.id.to_string());
    assert_eq!(created["url"], url);
    assert_eq!(
        created["events"],
        json!([RENEWED, "app.deleted"]),
        "each once"
    );
    assert_eq!(created["is_active"], true);

    let item = listed(caller).await;
    let in_list = [
        "last_triggered_at",
        "success_rate_7d",
        "previous_secret_expires_at",
    ];
    has_just(&item, [in_creation.as_slice(), &in_list].concat());
    let truncated = format!("{}…{}", &secret[..10], &secret[secret.len() - 4..]);
    assert_eq!(item["secret"], truncated);
    assert_eq!(item["last_triggered_at"], Value::Null);
    assert_eq!(item["success_rate_7d"], 1.0);
    assert_eq!(item["previous_secret_expires_at"], Value::Null);
    for field in [
        "id",
        "app_id",
        "url",
        "events",
        "is_active",
        "created_at",
        "secret_encoding",
    ] {
        assert_eq!(item[field], created[field], "{field}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn created_listed_changed_and_deleted() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let (first, second) = (Receiver::start().await, Receiver::start().await);
    let list = caller.get(&hooks(&gateway)).await.success(200);
    assert_eq!(list, json!({ "webhooks": [] }));

    let before = iso8601(gateway.clock.now());
    let created = create(
        &caller,
        &first.url("/a"),
        &[RENEWED, "app.deleted", RENEWED],
    )
    .await;
    is_within(text(&created, "created_at"), &before, &gateway);
    is_as_asked_for(&caller, &created, &first.url("/a")).await;
    let secret = text(&created, "secret").to_owned();

    renew(&caller).await;
    let requests = arrived(&gateway, &first, 1).await;
    is_signed(&requests[0], &secret);
    settled(&gateway).await;
    let item = listed(&caller).await;
    is_moment(text(&item, "last_triggered_at"));
    assert_eq!(item["success_rate_7d"], 1.0);

    gateway.clock.advance(TimeDelta::minutes(1));
    let before = iso8601(gateway.clock.now());
    let path = hook(&gateway, &created);
    let changed = json!({ "url": second.url("/b") });
    let changed = caller.put(&path, &changed).await.success(200);
    is_within(text(&changed, "updated_at"), &before, &gateway);
    assert_eq!(
        changed,
        json!({ "id": created["id"], "url": second.url("/b"), "events": created["events"],
                "is_active": true, "updated_at": changed["updated_at"] })
    );
    renew(&caller).await;
    is_signed(&arrived(&gateway, &second, 1).await[0], &secret);

    // Without any field it stays as it is, and null is as good as none.
    for body in [
        json!({}),
        json!({ "url": null, "events": null, "is_active": null }),
    ] {
        let same = caller.put(&path, &body).await.success(200);
        assert_eq!(same["url"], second.url("/b"));
        assert_eq!(same["events"], created["events"]);
    }
    let paused = caller.put(&path, &json!({ "is_active": false })).await;
    assert_eq!(paused.success(200)["is_active"], false);
    assert_eq!(listed(&caller).await["is_active"], false);
    renew(&caller).await;
    let back = json!({ "is_active": true, "events": ["app.created"] });
    let back = caller.put(&path, &back).await.success(200);
    assert_eq!(back["events"], json!(["app.created"]));
    renew(&caller).await;
    caller
        .put(&path, &json!({ "events": [RENEWED] }))
        .await
        .success(200);
    renew(&caller).await;
    let requests = arrived(&gateway, &second, 2).await;
    settled(&gateway).await;
    assert_eq!(
        requests.len(),
        2,
        "neither while paused nor while it listed another event"
    );
    assert_eq!(listed(&caller).await["created_at"], created["created_at"]);

    let deleted = caller.delete(&path).await;
    assert_eq!((deleted.status, deleted.body), (204, Value::Null));
    for answer in [
        caller.delete(&path).await,
        caller.put(&path, &json!({})).await,
        caller.get(&format!("{path}/deliveries")).await,
        caller.reset(&format!("{path}/test")).await,
    ] {
        assert_eq!(answer.problem(), (404, "webhook_not_found"));
    }
    let list = caller.get(&hooks(&gateway)).await.success(200);
    assert_eq!(list, json!({ "webhooks": [] }));
    renew(&caller).await;
    settled(&gateway).await;
    assert_eq!(
        (first.count(), second.count()),
        (1, 2),
        "nothing after its end"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happened_before_its_end_still_arrives() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    receiver.then([Reply::Status(503, "not now")]);
    let created = create(&caller, &receiver.url("/"), &[RENEWED]).await;
    renew(&caller).await;
    arrived(&gateway, &receiver, 1).await;
    caller.delete(&hook(&gateway, &created)).await.success(204);
    renew(&caller).await;
    next_attempt(&gateway).await;
    let requests = arrived(&gateway, &receiver, 2).await;
    settled(&gateway).await;
    assert_eq!(
        receiver.count(),
        2,
        "the first one again, and the second one never"
    );
    assert_eq!(
        requests[0].header("webhook-id"),
        requests[1].header("webhook-id")
    );
    assert_eq!(requests[0].body, requests[1].body);
    is_signed(&requests[1], text(&created, "secret"));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_the_callers_own() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    for (secret, truncated) in [
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ…LaSw"),
        ("correct horse battery staple", "corr…aple"),
    ] {
        let receiver = Receiver::start().await;
        let body = json!({ "url": receiver.url("/"), "events": [RENEWED], "secret": secret });
        let created = caller.post(&hooks(&gateway), &body).await.success(201);
        assert_eq!(created["secret"], secret);
        assert_eq!(listed(&caller).await["secret"], truncated);
        renew(&caller).await;
        is_signed(&arrived(&gateway, &receiver, 1).await[0], secret);
        // Nowhere in the database in clear.
        let row: String = sqlx::query_scalar("SELECT webhook_configs::text FROM webhook_configs")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap();
        assert!(!row.contains(secret) && row.contains(receiver.url("/").as_str()));
        caller.delete(&hook(&gateway, &created)).await.success(204);
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gets_what_it_lists() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let (mail, keys) = (Receiver::start().await, Receiver::start().await);
    create(&caller, &mail.url("/"), &["email.sent"]).await;
    create(&caller, &keys.url("/"), &[RENEWED, "email.sent"]).await;
    gateway.send_to("bob@example.com").await;
    renew(&caller).await;
    arrived(&gateway, &keys, 2).await;
    settled(&gateway).await;
    let mut told = events(&keys.received());
    told.sort();
    assert_eq!(told, ["email.sent", RENEWED]);
    assert_eq!(events(&mail.received()), ["email.sent"]);
    // One event, one name, whoever is told.
    let sent = keys
        .received()
        .into_iter()
        .find(|it| it.json()["event"] == "email.sent");
    let sent = sent.unwrap();
    assert_eq!(
        sent.header("webhook-id"),
        mail.received()[0].header("webhook-id")
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_has_twenty_at_most() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let body = json!({ "url": "https://app.example/hook", "events": [RENEWED] });
    let hooks = hooks(&gateway);
    // All at once, so that a count that isn't guarded lets some more through.
    let answers = futures_util::future::join_all((0..30).map(|_| caller.post(&hooks, &body))).await;
    let mut refused = 0;
    for answer in answers {
        if answer.status != 201 {
            assert_eq!(answer.problem(), (409, "too_many_webhooks"));
            refused += 1;
        }
    }
    assert_eq!(refused, 10);
    let list = caller.get(&hooks).await.success(200);
    let webhooks = list["webhooks"].as_array().unwrap();
    assert_eq!(webhooks.len(), 20);
    caller
        .delete(&hook(&gateway, &webhooks[7]))
        .await
        .success(204);
    caller.post(&hooks, &body).await.success(201);
    gateway.stop().await;
}
