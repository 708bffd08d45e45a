//! What was delivered: every attempt listed and counted, and any event delivered again.

use mailgate_types::plugin::Plugin;
use serde_json::{Value, json};

use super::{
    arrived, builder, create, events, hook, hooks, is_signed, next_attempt, renew, settled,
};
use crate::support::caller::{Caller, has_just, is_moment, text};
use crate::support::gateway::Gateway;
use crate::support::receiver::{Receiver, Reply};

const RENEWED: &str = "send_key.renewed";

/// The list, with this query.
async fn list(caller: &Caller<'_>, webhook: &Value, query: &str) -> Value {
    let path = format!("{}/deliveries{query}", hook(caller.gateway, webhook));
    let list = caller.get(&path).await.success(200);
    has_just(
        &list,
        vec!["deliveries", "total", "success_count", "failure_count"],
    );
    list
}

/// The attempt numbers of a list, and its totals.
fn numbers(list: &Value) -> (Vec<i64>, [i64; 3]) {
    let numbers = list["deliveries"].as_array().unwrap().iter();
    let numbers = numbers.map(|delivery| delivery["attempt_number"].as_i64().unwrap());
    let totals = ["total", "success_count", "failure_count"];
    (
        numbers.collect(),
        totals.map(|name| list[name].as_i64().unwrap()),
    )
}

/// An event that failed twice and then arrived.
async fn third_time_lucky() -> (Gateway, Receiver, Value) {
    let gateway = builder().start().await;
    let receiver = Receiver::start().await;
    let webhook = {
        let caller = Caller::owner(&gateway).await;
        let webhook = create(&caller, &receiver.url("/"), &[RENEWED, "user.connected"]).await;
        receiver.then([
            Reply::Status(500, "first"),
            Reply::Header(302, "location", receiver.url("/elsewhere")),
            Reply::Status(201, "third"),
        ]);
        renew(&caller).await;
        for count in 1..=2 {
            arrived(&gateway, &receiver, count).await;
            next_attempt(&gateway).await;
        }
        arrived(&gateway, &receiver, 3).await;
        settled(&gateway).await;
        webhook
    };
    (gateway, receiver, webhook)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attempt_is_listed_and_counted() {
    let (gateway, receiver, webhook) = third_time_lucky().await;
    let caller = Caller::owner(&gateway).await;
    let all = list(&caller, &webhook, "").await;
    assert_eq!(numbers(&all), (vec![3, 2, 1], [3, 1, 2]), "newest first");
    let requests = receiver.received();
    let deliveries = all["deliveries"].as_array().unwrap();
    for (delivery, (status, body, error)) in deliveries.iter().zip([
        (201, "third", None),
        (302, "", Some("302")),
        (500, "first", Some("500")),
    ]) {
        has_just(
            delivery,
            vec![
                "id",
                "webhook_config_id",
                "message_id",
                "event",
                "test",
                "attempt_number",
                "http_status",
                "response_body",
                "delivered_at",
                "duration_ms",
                "success",
                "error_message",
                "payload",
            ],
        );
        assert!(text(delivery, "id").starts_with("wdel_"));
        assert_eq!(delivery["webhook_config_id"], webhook["id"]);
        assert_eq!(delivery["event"], RENEWED);
        assert_eq!(delivery["message_id"], requests[0].header("webhook-id"));
        assert_eq!(delivery["http_status"], status);
        assert_eq!(delivery["response_body"], body);
        assert_eq!(delivery["payload"], requests[0].json());
        assert_eq!(delivery["success"], error.is_none());
        match error {
            Some(status) => assert!(text(delivery, "error_message").contains(status)),
            None => assert_eq!(delivery["error_message"], Value::Null),
        }
        is_moment(text(delivery, "delivered_at"));
    }
    let webhooks = caller.get(&hooks(&gateway)).await.success(200);
    let item = &webhooks["webhooks"][0];
    assert_eq!(item["last_triggered_at"], deliveries[0]["delivered_at"]);
    let rate = item["success_rate_7d"].as_f64().unwrap();
    assert!((rate - 1.0 / 3.0).abs() < 1e-9, "{rate}");
    gateway.clock.advance(chrono::TimeDelta::days(8));
    let webhooks = caller.get(&hooks(&gateway)).await.success(200);
    assert_eq!(
        webhooks["webhooks"][0]["success_rate_7d"], 1.0,
        "none within a week"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_and_pages() {
    let (gateway, receiver, webhook) = third_time_lucky().await;
    let caller = Caller::owner(&gateway).await;
    gateway
        .connect(None, Plugin::B, "eve@sandbox.example")
        .await;
    arrived(&gateway, &receiver, 4).await;
    settled(&gateway).await;
    for (query, expected, totals) in [
        ("", vec![1, 3, 2, 1], [4, 2, 2]),
        ("?success=true", vec![1, 3], [2, 2, 0]),
        ("?success=false", vec![2, 1], [2, 0, 2]),
        ("?event=user.connected", vec![1], [1, 1, 0]),
        ("?event=send_key.renewed", vec![3, 2, 1], [3, 1, 2]),
        (
            "?event=send_key.renewed&success=false",
            vec![2, 1],
            [2, 0, 2],
        ),
        ("?event=app.deleted", vec![], [0, 0, 0]),
        ("?limit=2", vec![1, 3], [4, 2, 2]),
        ("?limit=2&offset=1", vec![3, 2], [4, 2, 2]),
        ("?limit=1000&offset=3", vec![1], [4, 2, 2]),
        ("?offset=4", vec![], [4, 2, 2]),
        ("?offset=4294967295", vec![], [4, 2, 2]),
        ("?success=false&offset=1", vec![1], [2, 0, 2]),
    ] {
        let list = list(&caller, &webhook, query).await;
        assert_eq!(numbers(&list), (expected, totals), "{query}");
    }
    let path = format!("{}/deliveries", hook(&gateway, &webhook));
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=-1", "limit"),
        ("limit=ten", "limit"),
        ("limit=1&status=sent", "status"),
        ("Limit=1", "Limit"),
        ("limit=", "limit"),
        ("offset=-1", "offset"),
        ("offset=1.5", "offset"),
        ("offset=99999999999", "offset"),
        ("event=email.read", "event"),
        ("event=test", "event"),
        ("event=", "event"),
        ("success=yes", "success"),
        ("success=1", "success"),
        ("success=", "success"),
    ] {
        let answer = caller.get(&format!("{path}?{query}")).await;
        assert_eq!(answer.wrong_fields(), [field], "{query}");
    }
    let twice = caller.get(&format!("{path}?limit=1&limit=2")).await;
    assert_eq!(twice.problem(), (422, "invalid_request"));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delivered_again() {
    let (gateway, receiver, webhook) = third_time_lucky().await;
    let caller = Caller::owner(&gateway).await;
    let all = list(&caller, &webhook, "").await;
    let first = &all["deliveries"][2];
    let retry = |id: &str| format!("{}/deliveries/{id}/retry", hook(&gateway, &webhook));
    let answer = caller.reset(&retry(text(first, "id"))).await.success(202);
    assert_eq!(
        answer,
        json!({ "message_id": first["message_id"], "webhook_config_id": webhook["id"],
                "attempt_number": 4 })
    );
    let requests = arrived(&gateway, &receiver, 4).await;
    assert_eq!(requests[3].header("webhook-id"), text(first, "message_id"));
    assert_eq!(requests[3].body, requests[0].body);
    is_signed(&requests[3], text(&webhook, "secret"));
    settled(&gateway).await;
    let all = list(&caller, &webhook, "").await;
    assert_eq!(numbers(&all), (vec![4, 3, 2, 1], [4, 2, 2]));

    // It fails, and waits: asked again it doesn't wait any longer.
    receiver.then([Reply::Status(500, ""), Reply::Status(200, "")]);
    let newest = text(&all["deliveries"][0], "id").to_owned();
    caller.reset(&retry(&newest)).await.success(202);
    arrived(&gateway, &receiver, 5).await;
    settled(&gateway).await;
    let answer = caller.reset(&retry(&newest)).await.success(202);
    assert_eq!(answer["attempt_number"], 6);
    arrived(&gateway, &receiver, 6).await;
    settled(&gateway).await;
    let all = list(&caller, &webhook, "").await;
    assert_eq!(numbers(&all), (vec![6, 5, 4, 3, 2, 1], [6, 3, 3]));
    assert_eq!(events(&receiver.received()), [RENEWED; 6]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn not_while_it_is_under_way_and_not_without_its_body() {
    let (gateway, receiver, webhook) = third_time_lucky().await;
    let caller = Caller::owner(&gateway).await;
    let all = list(&caller, &webhook, "").await;
    let id = text(&all["deliveries"][0], "id");
    let retry = format!("{}/deliveries/{id}/retry", hook(&gateway, &webhook));
    receiver.then([Reply::Hang]);
    caller.reset(&retry).await.success(202);
    arrived(&gateway, &receiver, 4).await;
    let answer = caller.reset(&retry).await;
    assert_eq!(answer.problem(), (409, "delivery_in_flight"));
    assert_eq!(receiver.count(), 4);

    for statement in ["DELETE FROM webhook_queue", "DELETE FROM webhook_messages"] {
        sqlx::query(statement)
            .execute(&mut gateway.database().await)
            .await
            .unwrap();
    }
    let answer = caller.reset(&retry).await;
    assert_eq!(answer.problem(), (410, "delivery_expired"));
    gateway.stop().await;
}
