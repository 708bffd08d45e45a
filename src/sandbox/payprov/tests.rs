//! The provider by itself: its API's shapes, and what time and payments bring.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use chrono::TimeDelta;
use serde_json::json;
use tower::ServiceExt;

use super::*;
use crate::types::clock::MovedClock;

struct World {
    provider: PaymentProvider,
    clock: Arc<MovedClock>,
}

fn world() -> World {
    world_in(None)
}

fn world_in(file: Option<PathBuf>) -> World {
    drop(rustls::crypto::ring::default_provider().install_default());
    let clock = Arc::new(MovedClock::default());
    let provider = PaymentProvider::open(Settings {
        address: "http://127.0.0.1:8025/payprov".to_owned(),
        secret_key: SecretString::from(SECRET_KEY),
        webhook_secret: SecretString::from(WEBHOOK_SECRET),
        file,
        clock: clock.clone(),
    });
    World {
        provider: provider.unwrap(),
        clock,
    }
}

type Answer = (u16, serde_json::Value);

impl World {
    async fn call(&self, method: &str, path: &str, form: &[(&str, &str)]) -> Answer {
        self.call_with(
            method,
            path,
            form,
            &[("authorization", "Bearer sk_test_sandbox")],
        )
        .await
    }

    async fn call_with(
        &self,
        method: &str,
        path: &str,
        form: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Answer {
        let form = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let (query, body) = if method == "GET" {
            (format!("?{form}"), String::new())
        } else {
            (String::new(), form)
        };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/payprov/v1/{path}{query}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).unwrap();
        let response = self.provider.router().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    async fn good(&self, method: &str, path: &str, form: &[(&str, &str)]) -> serde_json::Value {
        let (status, answer) = self.call(method, path, form).await;
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }

    async fn customer(&self) -> String {
        let form = [
            ("email", "a@b.example"),
            ("name", "A"),
            ("metadata[k]", "v"),
        ];
        let customer = self.good("POST", "customers", &form).await;
        customer["id"].as_str().unwrap().to_owned()
    }

    /// A subscription for one mailbox; with days of trial, or paid at once with a card.
    async fn subscription(&self, customer: &str, trial_days: Option<&str>) -> String {
        let mut form = vec![
            ("customer", customer),
            ("items[0][price]", subscriptions::PRICE),
            ("items[0][quantity]", "1"),
        ];
        if let Some(days) = trial_days {
            form.extend([
                ("trial_period_days", days),
                (
                    "trial_settings[end_behavior][missing_payment_method]",
                    "cancel",
                ),
            ]);
        }
        let subscription = self.good("POST", "subscriptions", &form).await;
        subscription["id"].as_str().unwrap().to_owned()
    }

    async fn card(&self, customer: &str, card: &str) -> String {
        let path = format!("payment_methods/{card}/attach");
        let method = self.good("POST", &path, &[("customer", customer)]).await;
        let id = method["id"].as_str().unwrap().to_owned();
        let form = [("invoice_settings[default_payment_method]", id.as_str())];
        self.good("POST", &format!("customers/{customer}"), &form)
            .await;
        id
    }

    async fn status(&self, subscription: &str) -> String {
        let path = format!("subscriptions/{subscription}");
        let found = self.good("GET", &path, &[]).await;
        found["status"].as_str().unwrap().to_owned()
    }

    async fn open_invoices(&self, customer: &str) -> Vec<serde_json::Value> {
        let form = [("customer", customer), ("status", "open")];
        let list = self.good("GET", "invoices", &form).await;
        list["data"].as_array().unwrap().clone()
    }

    /// The types of the events so far, oldest first.
    fn events(&self) -> Vec<String> {
        self.provider.read(|ledger| {
            ledger
                .events
                .iter()
                .map(|event| event.kind.clone())
                .collect()
        })
    }

    fn events_since(&self, count: usize) -> Vec<String> {
        self.events().split_off(count)
    }
}

#[tokio::test]
async fn objects_have_the_providers_shape() {
    let world = world();
    let customer = world.customer().await;
    let found = world
        .good("GET", &format!("customers/{customer}"), &[])
        .await;
    assert_eq!(found["object"], "customer");
    assert_eq!(found["metadata"], json!({ "k": "v" }));
    assert!(found["created"].is_i64());
    assert!(found["invoice_settings"]["default_payment_method"].is_null());

    let id = world.subscription(&customer, Some("14")).await;
    let expand = [("expand[]", "customer")];
    let found = world
        .good("GET", &format!("subscriptions/{id}"), &expand)
        .await;
    assert_eq!(found["customer"]["id"], customer.as_str());
    assert_eq!(found["status"], "trialing");
    let (start, end) = (&found["created"], &found["trial_end"]);
    assert_eq!(end.as_i64().unwrap() - start.as_i64().unwrap(), 14 * 86_400);
    assert_eq!(
        found["current_period_end"], *end,
        "as older versions have it"
    );
    let item = &found["items"]["data"][0];
    assert_eq!(
        item["current_period_end"], *end,
        "as newer versions have it"
    );
    assert_eq!(item["quantity"], 1);
    assert_eq!(item["price"]["id"], subscriptions::PRICE);
    assert_eq!(found["items"]["object"], "list");

    let list = world
        .good("GET", "subscriptions", &[("customer", &customer)])
        .await;
    assert_eq!(list["object"], "list");
    assert_eq!(list["has_more"], false);
    assert_eq!(list["data"][0]["id"], id.as_str());

    let card = world.card(&customer, "pm_card_visa").await;
    let path = format!("customers/{customer}/payment_methods");
    let list = world.good("GET", &path, &[("limit", "100")]).await;
    assert_eq!(list["data"][0]["id"], card.as_str());
    assert_eq!(list["data"][0]["card"]["last4"], "4242");
    let found = world
        .good("DELETE", &format!("customers/{customer}"), &[])
        .await;
    assert_eq!(found["deleted"], true);
    assert_eq!(world.status(&id).await, "canceled");
    let found = world
        .good("GET", &format!("customers/{customer}"), &[])
        .await;
    assert_eq!(found["deleted"], true);
}

#[tokio::test]
async fn refusals_have_the_providers_shape() {
    let world = world();
    let customer = world.customer().await;
    let subscription = world.subscription(&customer, Some("14")).await;
    let change = format!("subscriptions/{subscription}");
    for (method, path, form, status, code) in [
        ("GET", "customers/cus_none", vec![], 404, "resource_missing"),
        (
            "GET",
            "subscriptions/sub_none",
            vec![],
            404,
            "resource_missing",
        ),
        ("POST", "subscriptions", vec![], 400, "parameter_missing"),
        (
            "POST",
            "subscriptions",
            vec![
                ("customer", customer.as_str()),
                ("items[0][price]", "price_other"),
            ],
            400,
            "resource_missing",
        ),
        (
            "POST",
            "subscriptions",
            vec![
                ("customer", customer.as_str()),
                ("items[0][price]", subscriptions::PRICE),
                ("plan", "x"),
            ],
            400,
            "parameter_unknown",
        ),
        (
            "POST",
            &change,
            vec![("items[0][quantity]", "2")],
            400,
            "parameter_missing",
        ),
        (
            "POST",
            &change,
            vec![("cancel_at_period_end", "perhaps")],
            400,
            "parameter_invalid_boolean",
        ),
        (
            "GET",
            "invoices",
            vec![("limit", "0")],
            400,
            "parameter_invalid_integer",
        ),
        (
            "POST",
            "checkout/sessions",
            vec![
                ("mode", "setup"),
                ("customer", &customer),
                ("success_url", "https://portal.example/"),
            ],
            400,
            "parameter_missing",
        ),
        (
            "POST",
            "billing_portal/sessions",
            vec![
                ("customer", &customer),
                ("return_url", "javascript:alert(1)"),
            ],
            400,
            "url_invalid",
        ),
    ] {
        let (found, answer) = world.call(method, path, &form).await;
        assert_eq!(found, status, "{method} {path} {form:?}: {answer}");
        assert_eq!(
            answer["error"]["code"], code,
            "{method} {path} {form:?}: {answer}"
        );
        assert!(answer["error"]["message"].is_string());
    }
    let (status, answer) = world.call("GET", "nothing", &[]).await;
    assert_eq!(status, 404, "{answer}");
    for key in ["Bearer sk_test_other", "Basic c2s6", "sk_test_sandbox"] {
        let headers = [("authorization", key)];
        let (status, answer) = world.call_with("GET", "events", &[], &headers).await;
        assert_eq!(status, 401, "{key}");
        assert_eq!(answer["error"]["type"], "invalid_request_error");
    }
}

#[tokio::test]
async fn an_idempotency_key_stands_for_one_request() {
    let world = world();
    let headers = [
        ("authorization", "Bearer sk_test_sandbox"),
        ("idempotency-key", "k1"),
    ];
    let form = [("email", "a@b.example")];
    let (_, first) = world.call_with("POST", "customers", &form, &headers).await;
    let (_, second) = world.call_with("POST", "customers", &form, &headers).await;
    assert_eq!(first, second);
    let (status, other) = world.call_with("POST", "customers", &[], &headers).await;
    assert_eq!(status, 400);
    assert_eq!(other["error"]["type"], "idempotency_error");
    let list = world.good("GET", "customers", &[]).await;
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    world.clock.advance(TimeDelta::hours(25));
    let (_, later) = world.call_with("POST", "customers", &form, &headers).await;
    assert_ne!(first["id"], later["id"], "a day later the key is free");
}

#[tokio::test]
async fn a_trial_is_reminded_of_and_ends_without_a_card() {
    let world = world();
    let customer = world.customer().await;
    let id = world.subscription(&customer, Some("14")).await;
    let before = world.events().len();
    world
        .clock
        .advance(TimeDelta::days(11) + TimeDelta::minutes(1));
    for _ in 0..2 {
        assert_eq!(world.status(&id).await, "trialing");
    }
    assert_eq!(
        world.events_since(before),
        ["customer.subscription.trial_will_end"]
    );
    world.clock.advance(TimeDelta::days(3));
    assert_eq!(world.status(&id).await, "canceled");
    assert_eq!(
        world.events_since(before + 1),
        ["customer.subscription.deleted"]
    );
    let (status, answer) = world
        .call(
            "POST",
            &format!("subscriptions/{id}"),
            &[("cancel_at_period_end", "true")],
        )
        .await;
    assert_eq!(status, 400, "{answer}");
}

#[tokio::test]
async fn a_trial_with_a_card_becomes_active_and_is_renewed_each_month() {
    let world = world();
    let customer = world.customer().await;
    let id = world.subscription(&customer, Some("14")).await;
    world.card(&customer, "pm_card_visa").await;
    world
        .clock
        .advance(TimeDelta::days(14) + TimeDelta::minutes(1));
    assert_eq!(world.status(&id).await, "active");
    world.clock.advance(TimeDelta::days(90));
    assert_eq!(world.status(&id).await, "active");
    let paid = [("subscription", id.as_str()), ("status", "paid")];
    let paid = world.good("GET", "invoices", &paid).await;
    let paid = paid["data"].as_array().unwrap();
    assert!((3..=4).contains(&paid.len()), "{}", paid.len());
    assert!(paid.iter().all(|invoice| invoice["amount_paid"] == 500));
}

#[tokio::test]
async fn a_payment_that_fails_waits_to_be_paid() {
    let world = world();
    let customer = world.customer().await;
    let id = world.subscription(&customer, Some("14")).await;
    for (action, event) in [
        (Action::PaymentFails, "invoice.payment_failed"),
        (
            Action::PaymentNeedsAction,
            "invoice.payment_action_required",
        ),
    ] {
        let before = world.events().len();
        assert!(world.provider.act(&id, action).await);
        assert_eq!(world.status(&id).await, "past_due");
        let events = world.events_since(before);
        assert!(events.iter().any(|kind| kind == event), "{events:?}");
    }
    let open = world.open_invoices(&customer).await;
    assert_eq!(open.len(), 2);
    let pay =
        |invoice: &serde_json::Value| format!("invoices/{}/pay", invoice["id"].as_str().unwrap());
    let (status, answer) = world.call("POST", &pay(&open[0]), &[]).await;
    assert_eq!(status, 400, "{answer}");
    assert_eq!(answer["error"]["code"], "missing_payment_method");
    world.card(&customer, "pm_card_chargeCustomerFail").await;
    let (status, answer) = world.call("POST", &pay(&open[0]), &[]).await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (402, &json!("card_declined"))
    );
    assert_eq!(answer["error"]["type"], "card_error");
    world.card(&customer, "pm_card_visa").await;
    let paid = world.good("POST", &pay(&open[1]), &[]).await;
    assert_eq!(paid["status"], "paid");
    assert_eq!(
        world.status(&id).await,
        "past_due",
        "that was not the latest one"
    );
    world.good("POST", &pay(&open[0]), &[]).await;
    assert_eq!(world.status(&id).await, "active");
    let (status, answer) = world.call("POST", &pay(&open[0]), &[]).await;
    assert_eq!(status, 400, "{answer}");
}

#[tokio::test]
async fn attempts_can_be_over() {
    let world = world();
    let customer = world.customer().await;
    let id = world.subscription(&customer, Some("14")).await;
    assert!(
        !world.provider.act(&id, Action::GiveUp).await,
        "nothing is due"
    );
    assert!(world.provider.act(&id, Action::PaymentFails).await);
    assert!(world.provider.act(&id, Action::GiveUp).await);
    assert_eq!(world.status(&id).await, "unpaid");
    assert!(world.provider.act(&id, Action::PayOpenInvoices).await);
    assert_eq!(world.status(&id).await, "active");
    assert!(world.provider.act(&id, Action::Delete).await);
    assert!(!world.provider.act(&id, Action::Delete).await);
}

#[tokio::test]
async fn a_subscription_without_a_trial_is_paid_at_once_or_not_made() {
    let world = world();
    let customer = world.customer().await;
    let form = [
        ("customer", customer.as_str()),
        ("items[0][price]", subscriptions::PRICE),
        ("items[0][quantity]", "2"),
        ("payment_behavior", "error_if_incomplete"),
    ];
    let (status, answer) = world.call("POST", "subscriptions", &form).await;
    assert_eq!(status, 400, "{answer}");
    world.card(&customer, "pm_card_chargeCustomerFail").await;
    let (status, answer) = world.call("POST", "subscriptions", &form).await;
    assert_eq!(status, 402, "{answer}");
    let all = [("customer", customer.as_str()), ("status", "all")];
    let list = world.good("GET", "subscriptions", &all).await;
    assert_eq!(list["data"], json!([]));
    world.card(&customer, "pm_card_visa").await;
    let made = world.good("POST", "subscriptions", &form).await;
    assert_eq!(made["status"], "active");
    let invoice = made["latest_invoice"].as_str().unwrap();
    let invoice = world.good("GET", &format!("invoices/{invoice}"), &[]).await;
    assert_eq!(invoice["amount_paid"], 1_000);
    assert_eq!(invoice["subscription"], made["id"]);
    let newer = &invoice["parent"]["subscription_details"]["subscription"];
    assert_eq!(*newer, made["id"]);
}

#[tokio::test]
async fn nothing_to_pay_needs_no_card() {
    let world = world();
    let customer = world.customer().await;
    let form = [
        ("customer", customer.as_str()),
        ("items[0][price]", subscriptions::PRICE),
        ("items[0][quantity]", "0"),
    ];
    let made = world.good("POST", "subscriptions", &form).await;
    assert_eq!(made["status"], "active");
    let id = made["id"].as_str().unwrap();
    assert!(!world.provider.act(id, Action::PaymentFails).await);
}

#[tokio::test]
async fn a_cancellation_waits_for_the_end_of_the_period() {
    let world = world();
    let customer = world.customer().await;
    world.card(&customer, "pm_card_visa").await;
    let id = world.subscription(&customer, None).await;
    let path = format!("subscriptions/{id}");
    let changed = world
        .good("POST", &path, &[("cancel_at_period_end", "true")])
        .await;
    assert_eq!(changed["cancel_at_period_end"], true);
    assert_eq!(changed["cancel_at"], changed["current_period_end"]);
    world.clock.advance(TimeDelta::days(27));
    assert_eq!(world.status(&id).await, "active");
    world.clock.advance(TimeDelta::days(5));
    assert_eq!(world.status(&id).await, "canceled");
}

#[tokio::test]
async fn a_quantity_is_set_and_told_with_what_was_before() {
    let world = world();
    let customer = world.customer().await;
    let id = world.subscription(&customer, Some("14")).await;
    let path = format!("subscriptions/{id}");
    let found = world.good("GET", &path, &[]).await;
    let item = found["items"]["data"][0]["id"].as_str().unwrap();
    let before = world.events().len();
    let form = [
        ("items[0][id]", item),
        ("items[0][quantity]", "3"),
        ("proration_behavior", "create_prorations"),
    ];
    for _ in 0..2 {
        let changed = world.good("POST", &path, &form).await;
        assert_eq!(changed["items"]["data"][0]["quantity"], 3);
    }
    assert_eq!(
        world.events_since(before),
        ["customer.subscription.updated"]
    );
    let events = world.good("GET", "events", &[("limit", "1")]).await;
    let data = &events["data"][0]["data"];
    assert_eq!(data["object"]["items"]["data"][0]["quantity"], 3);
    assert_eq!(
        data["previous_attributes"]["items"]["data"][0]["quantity"],
        1
    );
}

#[tokio::test]
async fn a_restart_forgets_nothing() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("sandbox").join("payments.json");
    let first = world_in(Some(file.clone()));
    let customer = first.customer().await;
    let id = first.subscription(&customer, Some("14")).await;
    let again = world_in(Some(file.clone()));
    assert_eq!(again.status(&id).await, "trialing");
    assert_eq!(
        again.provider.waiting_events(),
        first.provider.waiting_events()
    );
    std::fs::write(&file, "{").unwrap();
    let settings = again.provider.shared.settings.clone();
    assert!(
        PaymentProvider::open(settings).is_err(),
        "what it can't read it doesn't write over"
    );
}

#[tokio::test]
async fn lists_come_in_pages() {
    let world = world();
    let mut made = Vec::new();
    for _ in 0..5 {
        made.insert(0, world.customer().await);
    }
    let mut found = Vec::new();
    loop {
        let after: String = found.last().cloned().unwrap_or_default();
        let mut form = vec![("limit", "2")];
        if !after.is_empty() {
            form.push(("starting_after", &after));
        }
        let page = world.good("GET", "customers", &form).await;
        let ids = page["data"].as_array().unwrap().iter();
        found.extend(ids.map(|customer| customer["id"].as_str().unwrap().to_owned()));
        if page["has_more"] == false {
            break;
        }
    }
    assert_eq!(found, made, "newest first");
}
