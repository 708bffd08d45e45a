//! A customer with more than one living subscription is charged twice: the operator hears of it.

use chrono::{TimeDelta, Utc};
use mailgate_domain::reports::queues::Queues;
use mailgate_sandbox::payprov::SECRET_KEY;
use mailgate_storage::spool::usage::Most;
use serde_json::{Value, json};

use super::Billed;
use crate::command_line::process::certificates;
use crate::operator::troubles::check;

impl Billed {
    /// Subscribes the customer once more, at the provider; returns the subscription's id.
    async fn subscribe_by_hand(&self) -> String {
        let customers = self.ask("customers").await;
        let customer = customers["data"][0]["id"].as_str().unwrap();
        let url = format!("{}/v1/subscriptions", self.gateway.sandbox.payments.url());
        let price = self.gateway.sandbox.payments.section()["price"].clone();
        let form = [
            ("customer", customer),
            ("items[0][price]", price.as_str().unwrap()),
            ("trial_period_days", "30"),
        ];
        let request = self.gateway.http.post(url).bearer_auth(SECRET_KEY);
        let response = request.form(&form).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let created: Value = response.json().await.unwrap();
        created["id"].as_str().unwrap().to_owned()
    }

    async fn end_by_hand(&self, id: &str) {
        let url = format!(
            "{}/v1/subscriptions/{id}",
            self.gateway.sandbox.payments.url()
        );
        let request = self.gateway.http.delete(url).bearer_auth(SECRET_KEY);
        assert_eq!(request.send().await.unwrap().status(), 200);
    }

    /// What the gauge shows.
    async fn doubly_charged(&self) -> u32 {
        let most = Most {
            messages: 1,
            bytes: 1,
            least_bytes: 1,
        };
        let queues = Queues::measure(&self.gateway.daemon.pool, true, &most, Utc::now()).await;
        queues.unwrap().billing.unwrap().doubly_charged
    }

    async fn comes_to_doubly_charged(&self, number: u32) {
        self.gateway
            .eventually("the gauge", async |gateway| {
                let is_there = self.doubly_charged().await == number;
                if !is_there {
                    gateway.clock.advance(TimeDelta::minutes(61));
                }
                is_there
            })
            .await;
    }

    /// What `mailgate check` says of it.
    async fn checked(&self) -> Value {
        let (_folder, files) = certificates();
        let mut check = check(&self.gateway, &["--json"])
            .set("TLS__CERTIFICATE", &files.certificate)
            .set("TLS__KEY", &files.key);
        for (name, value) in self.gateway.sandbox.payments.section() {
            let name = format!("PAYPROV__{}", name.to_uppercase());
            check = check.set(&name, value.as_str().unwrap());
        }
        let finished = check.finish().await;
        let answer: Value = serde_json::from_str(&finished.stdout).unwrap();
        let mut checks = answer["checks"].as_array().unwrap().iter();
        let found = checks.find(|it| it["check"] == "subscriptions");
        found.unwrap_or_else(|| panic!("{answer}")).clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_living_subscription_is_reported_until_it_ends() {
    let billed = Billed::start().await;
    let known = billed.subscription().await;
    assert_eq!(billed.doubly_charged().await, 0);
    let fine = billed.checked().await;
    assert_eq!(fine["ok"], true, "{fine}");

    let second = billed.subscribe_by_hand().await;
    assert_ne!(known, second);
    billed.comes_to_doubly_charged(1).await;
    let told = billed.checked().await;
    assert_eq!(told["ok"], false, "{told}");
    let detail = told["detail"].as_str().unwrap();
    let subscriber = billed.gateway.subscriber.to_string();
    assert!(detail.contains(&subscriber), "{detail}");
    // The one that counts is still the first one.
    let live = billed.get("/payprov/subscription").await;
    assert_eq!(
        live["subscription"]["payprov_subscription_id"],
        json!(known)
    );
    let others: Vec<String> =
        sqlx::query_scalar("SELECT unnest(payprov_other_subscription_ids) FROM subscribers")
            .fetch_all(&mut billed.gateway.database().await)
            .await
            .unwrap();
    assert_eq!(others, [second.as_str()]);

    billed.end_by_hand(&second).await;
    billed.comes_to_doubly_charged(0).await;
    let fine = billed.checked().await;
    assert_eq!(fine["ok"], true, "{fine}");
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_a_second_one_is_enough() {
    let billed = Billed::start().await;
    billed.subscribe_by_hand().await;
    billed
        .gateway
        .eventually("the gauge", async |_| billed.doubly_charged().await == 1)
        .await;
    billed.stop().await;
}

/// The one that counts has ended, and another one took its place: there is one, and nothing to report.
#[tokio::test(flavor = "multi_thread")]
async fn a_successor_is_not_a_second_one() {
    let billed = Billed::start().await;
    let known = billed.subscription().await;
    billed.subscribe_by_hand().await;
    billed.comes_to_doubly_charged(1).await;
    billed.end_by_hand(&known).await;
    billed.comes_to_doubly_charged(0).await;
    assert_eq!(billed.living().await, 1);
    billed.stop().await;
}
