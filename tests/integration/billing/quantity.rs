//! The billed quantity follows the active mailboxes, whatever becomes of the provider meanwhile.

use chrono::TimeDelta;
use mailgate_sandbox::payprov::{Action, Fault, FaultKind, SECRET_KEY};
use mailgate_types::clock::Clock as _;
use mailgate_types::plugin::Plugin;
use serde_json::json;

use super::Billed;
use crate::support::gateway::{Gateway, connect, create_app};

fn fault(kind: FaultKind, method: Option<&str>, path: &str, times: u32) -> Fault {
    Fault {
        kind,
        method: method.map(str::to_owned),
        path: Some(path.to_owned()),
        times,
    }
}

impl Billed {
    async fn bills(&self, quantity: i64) {
        let what = format!("a quantity of {quantity}");
        self.gateway
            .eventually(&what, async |_| {
                self.quantity().await == Some(quantity) && self.jobs().await == 0
            })
            .await;
    }

    /// Lets several mailboxes be connected, and connects some.
    async fn connect_more(&self, names: &[&str]) -> Vec<String> {
        let path = format!("/apps/{}", self.gateway.app.pushable_key.expose());
        let (status, _) = self
            .call("PUT", &path, Some(json!({ "multilink": true })))
            .await;
        assert_eq!(status, 200);
        let mut ids = Vec::new();
        for name in names {
            let email = format!("{name}@sandbox.example");
            let connected = self.gateway.connect(None, Plugin::A, &email).await;
            ids.push(connected.credential.to_string());
        }
        ids
    }

    async fn disconnect(&self, id: &str) {
        let pushable_key = self.gateway.app.pushable_key.expose();
        let url = format!(
            "{}/apps/{pushable_key}/credentials/{id}",
            self.gateway.daemon.base_url
        );
        let request = self
            .gateway
            .http
            .delete(url)
            .header("x-api-secret", &self.api_secret);
        assert!(request.send().await.unwrap().status().is_success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_follows_connections_disconnections_and_deletions() {
    let billed = Billed::start().await;
    let ids = billed.connect_more(&["bea", "cyd", "dan"]).await;
    billed.bills(4).await;
    billed.disconnect(&ids[0]).await;
    billed.disconnect(&ids[1]).await;
    billed.bills(2).await;
    // A replacement is one less and one more.
    let path = format!("/apps/{}", billed.gateway.app.pushable_key.expose());
    billed.disconnect(&ids[2]).await;
    billed.bills(1).await;
    let (status, _) = billed
        .call("PUT", &path, Some(json!({ "multilink": false })))
        .await;
    assert_eq!(status, 200);
    billed
        .gateway
        .connect(None, Plugin::A, "eve@sandbox.example")
        .await;
    billed.bills(1).await;
    let (status, _) = billed.call("DELETE", &path, None).await;
    assert_eq!(status, 200);
    billed.bills(0).await;
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_without_the_provider_loses_nothing() {
    let billed = Billed::start().await;
    billed.enter_card("works").await;
    assert_eq!(billed.reactivate().await.0, 200);
    let payments = &billed.gateway.sandbox.payments;
    billed.act(Action::PaymentFails).await;
    assert!(payments.add_fault(fault(FaultKind::Down, None, "/v1", 0)));
    let ids = billed.connect_more(&["bea", "cyd", "dan"]).await;
    for _ in 0..12 {
        billed.gateway.clock.advance(TimeDelta::minutes(5));
        let now = billed.gateway.clock.now();
        let due = "SELECT count(*) FROM billing_jobs WHERE due_at <= $1";
        // Each attempt puts itself off.
        billed
            .gateway
            .eventually("attempt", async |gateway| {
                let due = sqlx::query_scalar::<_, i64>(due).bind(now);
                due.fetch_one(&mut gateway.database().await).await.unwrap() == 0
            })
            .await;
    }
    billed.disconnect(&ids[1]).await;
    // What asks the provider says so; what doesn't goes on.
    assert!(billed.get("/payprov/status").await["status"].is_string());
    let (status, body) = billed.call("GET", "/payprov/subscription", None).await;
    assert_eq!(
        (status, body["code"].as_str()),
        (503, Some("payprov_unavailable"))
    );
    let sign_up = billed
        .gateway
        .daemon
        .accounts
        .subscribers()
        .await
        .unwrap()
        .len();
    create_app(&billed.gateway.daemon, "Meanwhile").await;
    payments.clear_faults();
    billed.gateway.clock.advance(TimeDelta::minutes(6));
    billed
        .gateway
        .eventually("both subscriptions", async |_| {
            billed.subscriptions().await.len() == sign_up + 1 && billed.jobs().await == 0
        })
        .await;
    billed.comes_to("past_due").await;
    let mine = billed.get("/me").await["payprov_customer_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let list = billed.ask(&format!("subscriptions?customer={mine}")).await;
    assert_eq!(list["data"][0]["items"]["data"][0]["quantity"], 3);
    billed
        .gateway
        .eventually("the events", async |_| billed.waiting().await == 0)
        .await;
    assert_eq!(billed.notices("payment_failed").await, 1, "told once");
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_make_no_second_customer_and_no_second_subscription() {
    let billed = Billed::start().await;
    let payments = &billed.gateway.sandbox.payments;
    for path in ["/v1/customers", "/v1/subscriptions"] {
        // Longer than one call tries.
        assert!(payments.add_fault(fault(FaultKind::LostAnswer, Some("POST"), path, 4)));
    }
    create_app(&billed.gateway.daemon, "Second").await;
    billed
        .gateway
        .eventually("the second subscription", async |gateway| {
            gateway.clock.advance(TimeDelta::seconds(10));
            billed.jobs().await == 0
                && billed
                    .count("SELECT count(*) FROM subscribers WHERE payprov_subscription_id IS NOT NULL")
                    .await
                    == 2
        })
        .await;
    assert_eq!(billed.subscriptions().await.len(), 2);
    let customers = billed.ask("customers?limit=100").await;
    assert_eq!(customers["data"].as_array().unwrap().len(), 2);
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_found_and_mended() {
    let billed = Billed::start().await;
    billed.by_hand();
    let subscription = billed.subscriptions().await[0].clone();
    let id = subscription["id"].as_str().unwrap();
    let item = subscription["items"]["data"][0]["id"].as_str().unwrap();
    let url = format!(
        "{}/v1/subscriptions/{id}",
        billed.gateway.sandbox.payments.url()
    );
    let request = billed.gateway.http.post(url);
    let form = [("items[0][id]", item), ("items[0][quantity]", "7")];
    let response = request
        .bearer_auth(SECRET_KEY)
        .form(&form)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(billed.quantity().await, Some(7));
    billed.gateway.clock.advance(TimeDelta::minutes(61));
    billed.bills(1).await;
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signed_up_unbilled_is_billed_once_there_is_a_provider() {
    let unbilled = Gateway::start().await;
    assert!(!unbilled.daemon.billing.is_configured());
    let around = Billed::around(unbilled).await;
    assert_eq!(
        around.get("/payprov/status").await,
        json!({ "allowed": true, "status": "active", "show_banner": false })
    );
    assert_eq!(
        around.get("/payprov/subscription").await,
        json!({ "has_payprov": false, "subscription": null })
    );
    let (status, body) = around.reactivate().await;
    assert_eq!(
        (status, body["code"].as_str()),
        (409, Some("billing_not_configured"))
    );
    around.gateway.stop_daemon().await;
    let second = Billed::of(around.gateway.replica()).await;
    second
        .gateway
        .eventually("both subscriptions", async |_| {
            second.subscriptions().await.len() == 2 && second.jobs().await == 0
        })
        .await;
    let statuses = second
        .count("SELECT count(*) FROM subscribers WHERE subscription_status = 'trialing'")
        .await;
    assert_eq!(statuses, 2);
    let app = second.gateway.app.id;
    let sandbox = &second.gateway.sandbox;
    connect(
        &second.gateway.daemon,
        sandbox,
        app,
        None,
        Plugin::B,
        "fay@sandbox.example",
    )
    .await;
    second
        .gateway
        .eventually("the quantity", async |_| {
            let subscriptions = second.subscriptions().await;
            let quantities = subscriptions
                .iter()
                .map(|it| &it["items"]["data"][0]["quantity"]);
            quantities.into_iter().any(|quantity| *quantity == 2)
        })
        .await;
    second.stop().await;
    around.gateway.stop().await;
}
