//! Test deliveries: sent at once and signed as any other, to receivers of every kind.

use serde_json::{Value, json};

use super::{arrived, builder, create, hook, hooks, is_signed, post};
use crate::support::caller::{Caller, has_just, is_moment, text};
use crate::support::gateway::Gateway;
use crate::support::receiver::{Receiver, Reply};

async fn test(caller: &Caller<'_>, webhook: &Value) -> Value {
    let path = format!("{}/test", hook(caller.gateway, webhook));
    let result = post(caller, &path).await.success(200);
    has_just(
        &result,
        vec![
            "success",
            "http_status",
            "response_body",
            "duration_ms",
            "error_message",
            "payload_sent",
        ],
    );
    assert!(result["duration_ms"].as_u64().is_some(), "{result}");
    result
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_takes_it() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let created = create(&caller, &receiver.url("/hook"), &["email.sent"]).await;
    // One that is paused can be tried too.
    let path = hook(&gateway, &created);
    caller
        .put(&path, &json!({ "is_active": false }))
        .await
        .success(200);
    let result = test(&caller, &created).await;
    assert_eq!(result["success"], true);
    assert_eq!(result["http_status"], 200);
    assert_eq!(result["response_body"], "thanks");
    assert_eq!(result["error_message"], Value::Null);
    let payload = &result["payload_sent"];
    has_just(payload, vec!["event", "app_id", "timestamp", "data"]);
    assert_eq!(payload["event"], "test");
    assert_eq!(payload["app_id"], gateway.app.id.to_string());
    is_moment(text(payload, "timestamp"));
    has_just(&payload["data"], vec!["message"]);
    assert!(!text(&payload["data"], "message").is_empty());

    let requests = arrived(&gateway, &receiver, 1).await;
    is_signed(&requests[0], text(&created, "secret"));
    assert_eq!(requests[0].path, "/hook");
    assert_eq!(&requests[0].json(), payload);
    // Each one is another message.
    test(&caller, &created).await;
    let requests = receiver.received();
    assert_ne!(
        requests[0].header("webhook-id"),
        requests[1].header("webhook-id")
    );
    // They are listed, the newest first, and one that fails too.
    receiver.then([Reply::Status(500, "broken")]);
    test(&caller, &created).await;
    let list = caller.get(&format!("{path}/deliveries")).await.success(200);
    let totals = ["total", "success_count", "failure_count"].map(|name| list[name].as_i64());
    assert_eq!(totals, [Some(3), Some(2), Some(1)]);
    let items = list["deliveries"].as_array().unwrap();
    let told = |index: usize| receiver.received()[index].header("webhook-id").to_owned();
    for (place, item) in items.iter().enumerate() {
        assert_eq!(
            (&item["event"], &item["test"]),
            (&json!("test"), &json!(true))
        );
        assert_eq!(item["message_id"], told(2 - place));
        assert_eq!(item["webhook_config_id"], created["id"]);
        assert_eq!(item["attempt_number"], 1);
    }
    assert_eq!(
        (&items[0]["success"], &items[0]["response_body"]),
        (&json!(false), &json!("broken"))
    );
    // But it is no event: the rate is that of events, and it isn't told again.
    let shown = caller.get(&hooks(&gateway)).await.success(200);
    let shown = &shown["webhooks"][0];
    assert_eq!(shown["success_rate_7d"], 1.0, "{shown}");
    assert_eq!(shown["last_triggered_at"], Value::Null);
    let again = format!("{path}/deliveries/{}/retry", text(&items[0], "id"));
    let again = post(&caller, &again).await;
    assert_eq!(again.problem(), (410, "delivery_expired"));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn receivers_that_fail() {
    let gateway = builder().set("WEBHOOKS__EXCHANGE_SECONDS", 1).start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let created = create(&caller, &receiver.url("/"), &["email.sent"]).await;
    for (reply, status, body) in [
        (Reply::Status(500, "broken"), Some(500), "broken"),
        (Reply::Status(404, ""), Some(404), ""),
        (Reply::Status(410, "gone"), Some(410), "gone"),
        (
            Reply::Header(302, "location", receiver.url("/elsewhere")),
            Some(302),
            "",
        ),
        (Reply::Hang, None, ""),
    ] {
        receiver.then([reply.clone()]);
        let result = test(&caller, &created).await;
        assert_eq!(result["success"], false, "{reply:?}");
        assert_eq!(result["http_status"], json!(status), "{reply:?}");
        assert_eq!(result["response_body"], body, "{reply:?}");
        let error = text(&result, "error_message");
        let names_status = status.is_none_or(|status| error.contains(&status.to_string()));
        assert!(names_status, "{error}");
    }
    let asked = receiver.count();
    assert_eq!(asked, 5, "neither repeated nor redirected");

    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let closed = create(&caller, &format!("http://{address}/"), &["email.sent"]).await;
    let result = test(&caller, &closed).await;
    assert_eq!(
        (&result["success"], &result["http_status"]),
        (&json!(false), &Value::Null)
    );
    assert!(!text(&result, "error_message").is_empty());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn none_goes_to_a_private_address() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let created = create(&caller, "https://app.example/", &["email.sent"]).await;
    // As a name would lead there that looked harmless when it was given.
    sqlx::query("UPDATE webhook_configs SET url = $1")
        .bind(format!("https://{}/", receiver.address))
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let result = test(&caller, &created).await;
    assert_eq!(
        (&result["success"], &result["http_status"]),
        (&json!(false), &Value::Null)
    );
    let error = text(&result, "error_message");
    assert!(error.contains("public"), "{error}");
    assert_eq!(receiver.count(), 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_at_a_time_for_an_app() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let (slow, quick) = (Receiver::start().await, Receiver::start().await);
    slow.always(Reply::Hang);
    let hanging = create(&caller, &slow.url("/"), &["email.sent"]).await;
    let other = create(&caller, &quick.url("/"), &["email.sent"]).await;
    let path = |webhook: &Value| format!("{}/test", hook(&gateway, webhook));
    let first = path(&hanging);
    {
        let first = std::pin::pin!(post(&caller, &first));
        let second = async {
            arrived(&gateway, &slow, 1).await;
            for webhook in [&hanging, &other] {
                let refused = post(&caller, &path(webhook)).await;
                assert_eq!(refused.problem(), (429, "test_under_way"));
            }
            // Another app isn't held up.
            let app = caller.create("Another").await;
            let hooks = format!("/apps/{}/webhooks", text(&app, "pushable_key"));
            let body = json!({ "url": quick.url("/"), "events": ["email.sent"] });
            let webhook = caller.post(&hooks, &body).await.success(201);
            let path = format!("{hooks}/{}/test", text(&webhook, "id"));
            assert_eq!(post(&caller, &path).await.success(200)["success"], true);
        };
        tokio::select! {
            answer = first => panic!("it hangs: {answer:?}"),
            () = second => {}
        }
    }
    // Whoever hangs up gives the place back.
    gateway
        .eventually("a free place", async |_| {
            let answer = post(&caller, &path(&other)).await;
            answer.status == 200
        })
        .await;
    assert_eq!((slow.count(), quick.count()), (1, 2));
    gateway.stop().await;
}
