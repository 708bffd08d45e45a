//! Secrets of configurations that are replaced: both sign for a day, then the old one is gone.

use chrono::TimeDelta;
use mailgate_types::clock::Clock;
use mailgate_types::moment::iso8601;
use serde_json::{Value, json};

use super::{
    arrived, builder, create, hook, hooks, is_signed, is_signed_with, next_attempt, post, renew,
    settled,
};
use crate::support::caller::{Caller, has_just, path, text};
use crate::support::gateway::Gateway;
use crate::support::receiver::{Receiver, Reply};

const RENEWED: &str = "send_key.renewed";

/// How many previous secrets the database holds.
async fn previous(gateway: &Gateway) -> i64 {
    sqlx::query_scalar(
        "SELECT (SELECT count(previous_secret_sealed) FROM webhook_configs)
                + (SELECT count(previous_webhook_secret_sealed) FROM apps)
                + (SELECT count(previous_secret_sealed) FROM deleted_webhook_endpoints)",
    )
    .fetch_one(&mut gateway.database().await)
    .await
    .unwrap()
}

/// One round of the worker.
async fn purge(gateway: &Gateway) {
    gateway
        .daemon
        .webhooks
        .forget_secrets(&tokio_util::sync::CancellationToken::new())
        .await
        .unwrap();
}

async fn rotate(caller: &Caller<'_>, webhook: &Value) -> Value {
    let path = format!("{}/rotate-secret", hook(caller.gateway, webhook));
    let rotated = post(caller, &path).await.success(200);
    has_just(
        &rotated,
        vec![
            "id",
            "secret",
            "secret_encoding",
            "previous_secret_expires_at",
        ],
    );
    assert_eq!(rotated["id"], webhook["id"]);
    rotated
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sign_for_a_day() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let webhook = create(&caller, &receiver.url("/"), &[RENEWED]).await;
    let first = text(&webhook, "secret");
    // One that waits when the secret is replaced.
    receiver.then([Reply::Status(500, "")]);
    renew(&caller).await;
    is_signed(&arrived(&gateway, &receiver, 1).await[0], first);
    settled(&gateway).await;

    let rotated = rotate(&caller, &webhook).await;
    let second = text(&rotated, "secret");
    assert_ne!(first, second);
    assert_eq!(rotated["secret_encoding"], "base64");
    let until = text(&rotated, "previous_secret_expires_at");
    let day = iso8601(gateway.clock.now() + TimeDelta::hours(24));
    assert_eq!(until[..16], day[..16]);
    next_attempt(&gateway).await;
    is_signed_with(&arrived(&gateway, &receiver, 2).await[1], &[second, first]);
    let test = format!("{}/test", hook(&gateway, &webhook));
    post(&caller, &test).await.success(200);
    is_signed_with(&arrived(&gateway, &receiver, 3).await[2], &[second, first]);
    let list = caller.get(&hooks(&gateway)).await.success(200);
    let item = &list["webhooks"][0];
    assert_eq!(item["previous_secret_expires_at"], until);
    assert!(!list.to_string().contains(second), "{list}");
    assert!(text(item, "secret").ends_with(&second[second.len() - 4..]));

    gateway.clock.advance(TimeDelta::hours(23));
    purge(&gateway).await;
    renew(&caller).await;
    is_signed_with(&arrived(&gateway, &receiver, 4).await[3], &[second, first]);
    assert_eq!(previous(&gateway).await, 1);
    gateway.clock.advance(TimeDelta::hours(1));
    renew(&caller).await;
    is_signed(&arrived(&gateway, &receiver, 5).await[4], second);
    let list = caller.get(&hooks(&gateway)).await.success(200);
    let item = &list["webhooks"][0];
    assert_eq!(item["previous_secret_expires_at"], Value::Null);
    purge(&gateway).await;
    assert_eq!(previous(&gateway).await, 0, "it is nowhere any more");
    renew(&caller).await;
    is_signed(&arrived(&gateway, &receiver, 6).await[5], second);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_two_sign_and_a_repeated_call_changes_nothing() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let webhook = create(&caller, &receiver.url("/"), &[RENEWED]).await;
    let rotated = rotate(&caller, &webhook).await;
    let second = text(&rotated, "secret");
    let own = "correct horse battery staple";
    let path = format!("{}/rotate-secret", hook(&gateway, &webhook));
    gateway.clock.advance(TimeDelta::hours(1));
    let given = caller.post(&path, &json!({ "secret": own })).await;
    let given = given.success(200);
    assert_eq!(given["secret"], own);
    assert_eq!(given["secret_encoding"], "raw");
    renew(&caller).await;
    is_signed_with(&arrived(&gateway, &receiver, 1).await[0], &[own, second]);
    gateway.clock.advance(TimeDelta::hours(1));
    let again = caller.post(&path, &json!({ "secret": own })).await;
    assert_eq!(again.success(200), given);
    renew(&caller).await;
    is_signed_with(&arrived(&gateway, &receiver, 2).await[1], &[own, second]);
    assert_eq!(previous(&gateway).await, 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_of_an_end_is_signed_as_at_the_end() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let (one, own) = (Receiver::start().await, Receiver::start().await);
    let body = json!({ "name": "Told", "webhook_url": own.url("/") });
    let app = caller.post("/apps", &body).await.success(201);
    let path = format!("/apps/{}", text(&app, "pushable_key"));
    arrived(&gateway, &own, 1).await;
    let body = json!({ "url": one.url("/"), "events": [RENEWED, "app.deleted"] });
    let webhook = caller.post(&format!("{path}/webhooks"), &body).await;
    let webhook = webhook.success(201);
    settled(&gateway).await;
    // They wait with the secrets of today, which are replaced before the next attempt.
    one.then([Reply::Status(500, "")]);
    own.then([Reply::Status(500, "")]);
    let renewed = caller.reset(&format!("{path}/reset-send-key")).await;
    renewed.success(200);
    arrived(&gateway, &one, 1).await;
    arrived(&gateway, &own, 2).await;
    settled(&gateway).await;
    let rotate = format!("{path}/webhooks/{}/rotate-secret", text(&webhook, "id"));
    let rotated = post(&caller, &rotate).await.success(200);
    let reset = caller.reset(&format!("{path}/reset-webhook-secret")).await;
    let reset = reset.success(200);
    caller.delete(&path).await.success(200);
    let of_one = [text(&rotated, "secret"), text(&webhook, "secret")];
    let of_own = [text(&reset, "webhook_secret"), text(&app, "webhook_secret")];
    is_signed_with(&arrived(&gateway, &one, 2).await[1], &of_one);
    is_signed_with(&arrived(&gateway, &own, 3).await[2], &of_own);
    next_attempt(&gateway).await;
    is_signed_with(&arrived(&gateway, &one, 3).await[2], &of_one);
    is_signed_with(&arrived(&gateway, &own, 4).await[3], &of_own);
    settled(&gateway).await;
    // With the rest of the app.
    gateway
        .eventually("nothing is left of the secrets", async |gateway| {
            let left: i64 = sqlx::query_scalar("SELECT count(*) FROM deleted_webhook_endpoints")
                .fetch_one(&mut gateway.database().await)
                .await
                .unwrap();
            left == 0
        })
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_configurations_secrets_go_when_nothing_waits() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let webhook = create(&caller, &receiver.url("/"), &[RENEWED]).await;
    receiver.then([Reply::Status(500, "")]);
    renew(&caller).await;
    arrived(&gateway, &receiver, 1).await;
    settled(&gateway).await;
    let rotated = rotate(&caller, &webhook).await;
    caller.delete(&hook(&gateway, &webhook)).await.success(204);
    let left = async || -> (i64, i64) {
        sqlx::query_as(
            "SELECT count(*), count(previous_secret_sealed) FROM deleted_webhook_endpoints",
        )
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
    };
    assert_eq!(left().await, (1, 1));
    // The row of the queue is kept where it is, as after a long outage.
    sqlx::query("UPDATE webhook_queue SET due_at = due_at + interval '4 days'")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    gateway.clock.advance(TimeDelta::days(3));
    purge(&gateway).await;
    assert_eq!(left().await, (1, 0), "it still has a delivery to sign");
    next_attempt(&gateway).await;
    let request = &arrived(&gateway, &receiver, 2).await[1];
    is_signed(request, text(&rotated, "secret"));
    settled(&gateway).await;
    purge(&gateway).await;
    assert_eq!(left().await, (0, 0));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_and_with_what() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let webhook = create(&caller, &receiver.url("/"), &[RENEWED]).await;
    let rotate = format!("{}/rotate-secret", hook(&gateway, &webhook));
    for body in [json!({ "secret": "short" }), json!({ "secret": 7 })] {
        let answer = caller.post(&rotate, &body).await;
        assert_eq!(answer.wrong_fields(), ["secret"]);
    }
    let answer = caller.post(&rotate, &json!([])).await;
    assert_eq!(answer.problem(), (422, "invalid_request"));
    let unknown = format!(
        "{}/wconf_01h2xcejqtf2nbrexx3vqjhp41/rotate-secret",
        hooks(&gateway)
    );
    let answer = post(&caller, &unknown).await;
    assert_eq!(answer.problem(), (404, "webhook_not_found"));
    let stranger = Caller::another(&gateway, "Stranger").await;
    let answer = post(&stranger, &rotate).await;
    assert_eq!(answer.problem(), (404, "app_not_found"));
    let app = stranger.post("/apps", &json!({ "name": "Theirs" })).await;
    let app = app.success(201);
    let theirs = format!(
        "/apps/{}/webhooks/{}/rotate-secret",
        text(&app, "pushable_key"),
        text(&webhook, "id")
    );
    let answer = post(&stranger, &theirs).await;
    assert_eq!(answer.problem(), (404, "webhook_not_found"));
    assert_eq!(previous(&gateway).await, 0);
    // Deliveries read beside: nothing was changed.
    renew(&caller).await;
    is_signed(
        &arrived(&gateway, &receiver, 1).await[0],
        text(&webhook, "secret"),
    );
    assert!(caller.get(&path(&gateway.app)).await.status == 200);
    gateway.stop().await;
}
