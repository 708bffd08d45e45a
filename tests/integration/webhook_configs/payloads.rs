//! What deliveries sent, in lists and alone, and deliveries to an app's own address made again.

use serde_json::{Value, json};

use super::{arrived, builder, create, hook, post, renew, settled};
use crate::support::caller::{Caller, text};
use crate::support::gateway::Gateway;
use crate::support::receiver::{Receiver, Reply};

const RENEWED: &str = "send_key.renewed";

async fn execute(gateway: &Gateway, statement: &'static str) {
    sqlx::query(statement)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_shows_what_was_sent_as_long_as_it_is_kept() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    let webhook = create(&caller, &receiver.url("/"), &[RENEWED]).await;
    renew(&caller).await;
    let sent = arrived(&gateway, &receiver, 1).await[0].json();
    settled(&gateway).await;
    let path = format!("{}/deliveries", hook(&gateway, &webhook));
    let list = caller.get(&path).await.success(200);
    let item = &list["deliveries"][0];
    assert_eq!(item["payload"], sent);
    let one = format!("{path}/{}", text(item, "id"));
    assert_eq!(&caller.get(&one).await.success(200), item);

    // A test's body isn't kept.
    let test = format!("{}/test", hook(&gateway, &webhook));
    post(&caller, &test).await.success(200);
    let list = caller.get(&path).await.success(200);
    assert_eq!(list["deliveries"][0]["test"], true);
    assert_eq!(list["deliveries"][0]["payload"], Value::Null);
    assert_eq!(list["deliveries"][1]["payload"], sent);

    // Bodies that are large together are shown one by one.
    execute(
        &gateway,
        "UPDATE webhook_messages SET body = jsonb_set(body::jsonb, '{data,name}', to_jsonb(repeat('x', 5000000)))::text",
    )
    .await;
    let list = caller.get(&path).await.success(200);
    assert_eq!(list["deliveries"][1]["payload"], Value::Null);
    let alone = caller.get(&one).await.success(200);
    assert_eq!(text(&alone["payload"]["data"], "name").len(), 5_000_000);
    execute(&gateway, "DELETE FROM webhook_messages").await;
    let alone = caller.get(&one).await.success(200);
    assert_eq!(alone["payload"], Value::Null);

    for (delivery, code) in [
        ("wdel_01h2xcejqtf2nbrexx3vqjhp41", "delivery_not_found"),
        ("nonsense", "delivery_not_found"),
    ] {
        let answer = caller.get(&format!("{path}/{delivery}")).await;
        assert_eq!(answer.problem(), (404, code));
    }
    let stranger = Caller::another(&gateway, "Stranger").await;
    let answer = stranger.get(&one).await;
    assert_eq!(answer.problem(), (404, "app_not_found"));
    // Nor by another endpoint of the same app.
    let own = format!(
        "/apps/{}/deliveries/{}",
        gateway.app.pushable_key.expose(),
        text(item, "id")
    );
    let answer = caller.get(&own).await;
    assert_eq!(answer.problem(), (404, "delivery_not_found"));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_to_the_apps_own_address_is_shown_and_made_again() {
    let gateway = builder().start().await;
    let caller = Caller::owner(&gateway).await;
    let receiver = Receiver::start().await;
    receiver.then([Reply::Status(410, "")]);
    let body = json!({ "name": "Told", "webhook_url": receiver.url("/") });
    let app = caller.post("/apps", &body).await.success(201);
    let path = format!("/apps/{}", text(&app, "pushable_key"));
    let sent = arrived(&gateway, &receiver, 1).await[0].clone();
    settled(&gateway).await;
    let list = caller.get(&format!("{path}/deliveries")).await.success(200);
    let item = &list["deliveries"][0];
    assert_eq!(item["payload"], sent.json());
    let one = format!("{path}/deliveries/{}", text(item, "id"));
    assert_eq!(&caller.get(&one).await.success(200), item);

    let retried = post(&caller, &format!("{one}/retry")).await.success(202);
    assert_eq!(
        retried,
        json!({ "message_id": item["message_id"], "webhook_config_id": null, "attempt_number": 2 })
    );
    let again = arrived(&gateway, &receiver, 2).await[1].clone();
    assert_eq!(again.header("webhook-id"), sent.header("webhook-id"));
    assert_eq!(again.body, sent.body);
    settled(&gateway).await;
    let list = caller.get(&format!("{path}/deliveries")).await.success(200);
    assert_eq!(list["success_count"], 1);

    let emptied = caller.put(&path, &json!({ "webhook_url": "" })).await;
    emptied.success(200);
    let answer = post(&caller, &format!("{one}/retry")).await;
    assert_eq!(answer.problem(), (409, "webhook_inactive"));
    let stranger = Caller::another(&gateway, "Stranger").await;
    let answer = post(&stranger, &format!("{one}/retry")).await;
    assert_eq!(answer.problem(), (404, "app_not_found"));
    gateway.stop().await;
}
