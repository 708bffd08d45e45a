//! The API's responses.

use chrono::TimeDelta;
use serde_json::json;

use super::*;

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
    let price = &item["price"];
    assert_eq!(
        (&price["unit_amount"], &price["currency"]),
        (&json!(500), &json!("eur"))
    );
    assert_eq!(price["billing_scheme"], "per_unit");
    assert_eq!(
        price["recurring"],
        json!({ "interval": "month", "interval_count": 1, "usage_type": "licensed" })
    );
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
    let expand = [(
        "expand[]",
        "customer.invoice_settings.default_payment_method",
    )];
    let path = format!("subscriptions/{id}");
    let expand = [("expand[]", "customer"), expand[0]];
    let found = world.good("GET", &path, &expand).await;
    let default = &found["customer"]["invoice_settings"]["default_payment_method"];
    assert_eq!(
        (&default["type"], &default["card"]["exp_year"]),
        (&json!("card"), &json!(2099))
    );
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
