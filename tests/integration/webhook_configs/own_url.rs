//! `GET /apps/{pushable_key}/deliveries`: what went to an app's own `webhook_url`.

use serde_json::{Value, json};

use super::{arrived, builder, settled};
use crate::support::caller::{Caller, text};
use crate::support::receiver::{Receiver, Reply};

#[tokio::test(flavor = "multi_thread")]
async fn what_went_to_the_apps_own_address_is_listed() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let body = json!({ "name": "Told", "webhook_url": receiver.url("/") });
    let app = caller.post("/apps", &body).await.success(201);
    let path = format!("/apps/{}", text(&app, "pushable_key"));
    arrived(&gateway, &receiver, 1).await;
    receiver.then([Reply::Status(500, "broken")]);
    let renewed = caller.reset(&format!("{path}/reset-send-key")).await;
    renewed.success(200);
    arrived(&gateway, &receiver, 2).await;
    let list = async |query: &str| {
        let path = format!("{path}/deliveries{query}");
        caller.get(&path).await.success(200)
    };
    gateway
        .eventually("both are recorded", async |_| list("").await["total"] == 2)
        .await;

    let listed = list("").await;
    let told = |index: usize| receiver.received()[index].header("webhook-id").to_owned();
    let fields = [
        "webhook_config_id",
        "message_id",
        "event",
        "test",
        "success",
    ];
    let shown: Vec<[Value; 5]> = (listed["deliveries"].as_array().unwrap().iter())
        .map(|item| fields.map(|field| item[field].clone()))
        .collect();
    let expected = |index, event: &str, success| {
        [
            Value::Null,
            json!(told(index)),
            json!(event),
            json!(false),
            json!(success),
        ]
    };
    assert_eq!(
        shown,
        [
            expected(1, "send_key.renewed", false),
            expected(0, "app.created", true)
        ]
    );
    assert_eq!(list("?success=false").await["total"], 1);
    assert_eq!(list("?event=app.created&limit=1").await["total"], 1);
    let wrong = caller.get(&format!("{path}/deliveries?limit=0")).await;
    assert_eq!(wrong.wrong_fields(), ["limit"]);

    // Nobody else's, and nothing of the demo's.
    let stranger = Caller::another(&gateway, "Stranger").await;
    let answer = stranger.get(&format!("{path}/deliveries")).await;
    assert_eq!(answer.problem(), (404, "app_not_found"));
    let own = format!("/apps/{}/deliveries", gateway.app.pushable_key.expose());
    assert_eq!(caller.get(&own).await.success(200)["total"], 0);
    settled(&gateway).await;
    gateway.stop().await;
}
