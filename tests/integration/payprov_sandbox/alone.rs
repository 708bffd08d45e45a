//! Without a gateway.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use chrono::{TimeDelta, Utc};
use hmac::{Hmac, KeyInit, Mac};
use mailgate_sandbox::payprov::WEBHOOK_SECRET;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::Alone;
use crate::support::patience;

/// Takes events, or doesn't.
#[derive(Clone, Default)]
struct Receiver {
    taken: Arc<Mutex<Vec<Value>>>,
    refusals: Arc<Mutex<usize>>,
}

impl Receiver {
    async fn start(&self, servers: &mut JoinSet<()>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let receiver = self.clone();
        let take = async move |headers: HeaderMap, body: String| receiver.take(&headers, &body);
        let router = Router::new().route("/hook", post(take));
        servers.spawn(async move { axum::serve(listener, router).await.unwrap() });
        format!("http://{address}/hook")
    }

    /// Checks the signature as the real provider's documents say.
    fn take(&self, headers: &HeaderMap, body: &str) -> StatusCode {
        let signature = headers["stripe-signature"].to_str().unwrap();
        let (time, digest) = signature.split_once(",v1=").unwrap();
        let time: i64 = time.strip_prefix("t=").unwrap().parse().unwrap();
        assert!((Utc::now().timestamp() - time).abs() < 100, "{signature}");
        let mut mac = Hmac::<Sha256>::new_from_slice(WEBHOOK_SECRET.as_bytes()).unwrap();
        mac.update(format!("{time}.{body}").as_bytes());
        let pairs = digest.as_bytes().chunks(2);
        let digest: Vec<u8> = pairs
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
        mac.verify_slice(&digest).unwrap();
        let mut refusals = self.refusals.lock().unwrap();
        if *refusals > 0 {
            *refusals -= 1;
            return StatusCode::INTERNAL_SERVER_ERROR;
        }
        let event = serde_json::from_str(body).unwrap();
        self.taken.lock().unwrap().push(event);
        StatusCode::OK
    }

    fn kinds(&self) -> Vec<String> {
        let taken = self.taken.lock().unwrap();
        let kinds = taken
            .iter()
            .map(|event| event["type"].as_str().unwrap().to_owned());
        kinds.collect()
    }

    async fn wait_for(&self, count: usize) {
        let what = format!("{count} events");
        patience::until(&what, async || self.taken.lock().unwrap().len() >= count).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_signed_until_they_are_taken() {
    let mut servers = JoinSet::new();
    let alone = Alone::start().await;
    let receiver = Receiver::default();
    *receiver.refusals.lock().unwrap() = 2;
    // Nobody has been there before.
    alone.subscriber().await;
    alone.provider.tell(&receiver.start(&mut servers).await);
    receiver.wait_for(2).await;
    let mut kinds = receiver.kinds();
    kinds.sort_unstable();
    assert_eq!(kinds, ["customer.created", "customer.subscription.created"]);
    let event = receiver.taken.lock().unwrap()[0].clone();
    assert_eq!(event["object"], "event");
    assert!(event["created"].is_i64() && event["data"]["object"].is_object());
    let id = event["id"].as_str().unwrap();
    let found = alone.good("GET", &format!("events/{id}"), &[]).await;
    assert_eq!(found, event);
    // The provider hears of the last answer after the receiver has given it.
    let all_taken = async || alone.provider.waiting_events().is_empty();
    patience::until("no event that waits", all_taken).await;
    alone.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_can_be_held_back_and_come_in_any_order() {
    let mut servers = JoinSet::new();
    let alone = Alone::start().await;
    let receiver = Receiver::default();
    assert_eq!(
        alone
            .steer("PUT", "delivery", json!({ "mode": "by_hand" }))
            .await,
        204
    );
    alone.provider.tell(&receiver.start(&mut servers).await);
    let (_, subscription) = alone.subscriber().await;
    let path = format!("subscriptions/{subscription}");
    assert_eq!(
        alone
            .steer("POST", &path, json!({ "action": "remind" }))
            .await,
        204
    );
    assert_eq!(
        alone
            .steer("POST", &path, json!({ "action": "give_up" }))
            .await,
        409
    );
    let waiting = alone.provider.waiting_events();
    assert_eq!(waiting.len(), 3);
    for id in waiting.iter().rev() {
        // Twice: the real one does so too.
        for _ in 0..2 {
            assert_eq!(
                alone
                    .steer("POST", &format!("events/{id}"), Value::Null)
                    .await,
                204
            );
        }
    }
    let kinds = receiver.kinds();
    assert_eq!(kinds.len(), 6);
    assert_eq!(kinds[0], "customer.subscription.trial_will_end");
    assert_eq!(kinds[5], "customer.created");
    assert_eq!(
        alone.steer("POST", "events/evt_none", Value::Null).await,
        404
    );
    alone.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_wrong_as_it_is_told() {
    let alone = Alone::start().await;
    let form = [("email", "a@b.example")];
    let create = || alone.call("POST", "customers", &form);
    for (kind, status) in [
        ("internal_error", 500),
        ("unavailable", 503),
        ("rate_limited", 429),
        ("unauthorized", 401),
    ] {
        let fault = json!({ "kind": kind, "path": "/v1/customers" });
        assert_eq!(alone.steer("POST", "faults", fault).await, 204);
        let response = create().send().await.unwrap();
        assert_eq!(response.status().as_u16(), status);
        let answer: Value = response.json().await.unwrap();
        assert!(answer["error"]["message"].is_string(), "{answer}");
    }
    assert_eq!(
        alone
            .steer("POST", "faults", json!({ "kind": "down" }))
            .await,
        204
    );
    assert!(create().send().await.is_err());
    let none = alone.good("GET", "customers", &[]).await;
    assert_eq!(none["data"], json!([]), "nothing was done");

    assert_eq!(
        alone
            .steer("POST", "faults", json!({ "kind": "lost_answer" }))
            .await,
        204
    );
    let keyed = || create().header("idempotency-key", "k1");
    assert!(keyed().send().await.is_err());
    let again = keyed().send().await.unwrap();
    assert_eq!(again.headers()["idempotent-replayed"], "true");
    let again: Value = again.json().await.unwrap();
    let all = alone.good("GET", "customers", &[]).await;
    assert_eq!(all["data"], json!([again]), "it was done once");

    assert_eq!(
        alone
            .steer(
                "POST",
                "faults",
                json!({ "kind": { "slow": 60_000 }, "times": 0 })
            )
            .await,
        204
    );
    let slow = create().timeout(std::time::Duration::from_millis(300));
    assert!(slow.send().await.unwrap_err().is_timeout());
    assert_eq!(alone.steer("DELETE", "faults", Value::Null).await, 204);
    assert_eq!(create().send().await.unwrap().status(), 200);
    alone.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn time_passes_by_the_clock() {
    let alone = Alone::start().await;
    let (_, subscription) = alone.subscriber().await;
    alone.clock.advance(TimeDelta::days(15));
    let path = format!("subscriptions/{subscription}");
    let found = alone.good("GET", &path, &[]).await;
    assert_eq!(found["status"], "canceled");
    alone.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_is_entered_on_a_page_that_other_sites_cannot_use() {
    let alone = Alone::start().await;
    let (customer, subscription) = alone.subscriber().await;
    let form = [
        ("mode", "setup"),
        ("customer", customer.as_str()),
        ("allowed_payment_method_types[0]", "card"),
        (
            "success_url",
            "http://127.0.0.1:9/portal?payment=updated&s={CHECKOUT_SESSION_ID}",
        ),
        ("cancel_url", "http://127.0.0.1:9/portal"),
    ];
    let session = alone.good("POST", "checkout/sessions", &form).await;
    let (id, url) = (
        session["id"].as_str().unwrap(),
        session["url"].as_str().unwrap(),
    );
    let page = alone.http.get(url).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let page = page.text().await.unwrap();
    assert!(
        page.contains("&lt;b&gt;ACME&lt;/b&gt;") && !page.contains("<b>ACME"),
        "{page}"
    );
    let press = |card: &'static str| alone.http.post(url).form(&[("card", card)]);
    for site in ["cross-site", "same-site"] {
        let foreign = press("works").header("sec-fetch-site", site);
        assert_eq!(foreign.send().await.unwrap().status(), 403);
    }
    let foreign = press("works").header("origin", "https://evil.example");
    assert_eq!(foreign.send().await.unwrap().status(), 403);
    let declined = press("declined").send().await.unwrap();
    assert_eq!(declined.status(), 200);
    assert!(
        declined
            .text()
            .await
            .unwrap()
            .contains("The card was declined")
    );
    let path = format!("customers/{customer}/payment_methods");
    assert_eq!(alone.good("GET", &path, &[]).await["data"], json!([]));

    let done = press("works").header("sec-fetch-site", "same-origin");
    let done = done.send().await.unwrap();
    assert_eq!(done.status(), 303);
    let back = format!("http://127.0.0.1:9/portal?payment=updated&s={id}");
    assert_eq!(done.headers()["location"], back.as_str());
    assert_eq!(
        press("works").send().await.unwrap().status(),
        404,
        "a page that says so"
    );
    let cards = alone.good("GET", &path, &[]).await;
    assert_eq!(cards["data"].as_array().unwrap().len(), 1, "once");
    let expand = [("expand[]", "setup_intent")];
    let session = alone
        .good("GET", &format!("checkout/sessions/{id}"), &expand)
        .await;
    assert_eq!(session["status"], "complete");
    assert_eq!(
        session["setup_intent"]["payment_method"],
        cards["data"][0]["id"]
    );

    let overview = format!("{}/payprov", alone.origin);
    let page = alone
        .http
        .get(&overview)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(
        page.contains("End the trial now") && page.contains("trialing"),
        "{page}"
    );
    let button = format!("{overview}/subscriptions/{subscription}");
    let button = alone.http.post(button).form(&[("action", "payment_fails")]);
    assert_eq!(button.send().await.unwrap().status(), 303);
    let page = alone
        .http
        .get(&overview)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(
        page.contains("past_due") && page.contains("Pay the open invoices"),
        "{page}"
    );
    alone.stop().await;
}
