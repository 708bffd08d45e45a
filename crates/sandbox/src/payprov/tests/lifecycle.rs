//! The effects of time and payments.

use chrono::TimeDelta;
use serde_json::json;

use super::*;

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
