//! What comes to the webhook: who is believed, and that nobody's word counts but the provider's.

use chrono::{TimeDelta, Utc};
use mailgate_sandbox::payprov::{Action, WEBHOOK_SECRET, signature};
use mailgate_types::clock::Clock;
use serde_json::{Value, json};

use super::Billed;
use crate::support::gateway::{Builder, Gateway};

async fn post(gateway: &Gateway, body: &str, signature: Option<&str>) -> (u16, Value) {
    let url = format!("{}/payprov/webhook", gateway.daemon.base_url);
    let mut request = gateway.http.post(url).body(body.to_owned());
    if let Some(signature) = signature {
        request = request.header("stripe-signature", signature);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

fn event(id: &str, kind: &str, object: &Value) -> String {
    json!({ "id": id, "type": kind, "data": { "object": object } }).to_string()
}

/// Events are taken from anybody.
fn unsigned() -> Builder {
    Gateway::builder()
        .set("PAYPROV__WEBHOOK_SECRET", "")
        .set("PAYPROV__ACCEPT_UNSIGNED", true)
}

async fn stored(billed: &Billed) -> i64 {
    billed.count("SELECT count(*) FROM payprov_events").await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_the_provider_signed_just_now_is_taken() {
    let billed = Billed::start().await;
    billed.by_hand();
    let gateway = &billed.gateway;
    billed
        .gateway
        .eventually("the events", async |_| billed.waiting().await == 0)
        .await;
    let before = stored(&billed).await;
    let now = gateway.clock.now().timestamp();
    let customer = billed.get("/me").await["payprov_customer_id"].clone();
    let body = event(
        "evt_new",
        "customer.subscription.deleted",
        &json!({ "id": "sub_1", "customer": customer }),
    );
    let good = signature(WEBHOOK_SECRET, now, &body);
    let changed = body.replacen("sub_1", "sub_2", 1);
    for (body, header, code) in [
        (&changed, Some(good.clone()), "invalid_signature"),
        (&body, None, "invalid_signature"),
        (&body, Some(String::new()), "invalid_signature"),
        (
            &body,
            Some(signature("whsec_other", now, &body)),
            "invalid_signature",
        ),
        (
            &body,
            Some(signature(WEBHOOK_SECRET, now - 400, &body)),
            "invalid_signature",
        ),
        (
            &body,
            Some(signature(WEBHOOK_SECRET, now + 400, &body)),
            "invalid_signature",
        ),
        (
            &"{}x".to_owned(),
            Some(signature(WEBHOOK_SECRET, now, "{}x")),
            "malformed_json",
        ),
        (
            &"{}".to_owned(),
            Some(signature(WEBHOOK_SECRET, now, "{}")),
            "invalid_event",
        ),
    ] {
        let (status, answer) = post(gateway, body, header.as_deref()).await;
        assert_eq!(
            (status, answer["code"].as_str()),
            (400, Some(code)),
            "{header:?}"
        );
    }
    let large = "x".repeat((1 << 20) + 1);
    assert_eq!(post(gateway, &large, Some(&good)).await.0, 413);
    assert_eq!(stored(&billed).await, before, "nothing is stored");
    for _ in 0..2 {
        let rotated = format!("{good},v1={}", "0".repeat(64));
        assert_eq!(
            post(gateway, &body, Some(&rotated)).await,
            (200, json!({ "received": true }))
        );
    }
    assert_eq!(stored(&billed).await, before + 1, "once");
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forgeries_change_nothing_where_nobody_is_verified() {
    let billed = Billed::of(unsigned()).await;
    billed.provisioned().await;
    let customer = billed.get("/me").await["payprov_customer_id"].clone();
    let subscription = billed.subscription().await;
    let of_subscription = json!({ "id": subscription, "customer": customer, "status": "canceled" });
    let of_invoice = json!({ "id": "in_none", "customer": customer, "subscription": subscription });
    let of_nobody = json!({ "id": "sub_x", "customer": "cus_x" });
    let others = json!({ "id": "sub_x", "customer": customer, "status": "active" });
    for (id, kind, object) in [
        ("evt_f1", "customer.subscription.deleted", &of_subscription),
        ("evt_f2", "customer.subscription.updated", &others),
        ("evt_f3", "invoice.payment_failed", &of_invoice),
        ("evt_f4", "invoice.payment_action_required", &of_invoice),
        ("evt_f5", "customer.subscription.deleted", &of_nobody),
        ("evt_f6", "charge.refunded", &of_nobody),
        ("evt_f7", "customer.subscription.created", &json!({})),
    ] {
        let (status, answer) = post(&billed.gateway, &event(id, kind, object), None).await;
        assert_eq!(status, 200, "{answer}");
    }
    billed
        .gateway
        .eventually("the events", async |_| billed.waiting().await == 0)
        .await;
    assert_eq!(billed.status().await.as_deref(), Some("trialing"));
    assert_eq!(
        billed.count("SELECT count(*) FROM billing_notices").await,
        0
    );
    let ignored: Vec<String> = sqlx::query_scalar(
        "SELECT id FROM payprov_events WHERE state = 'ignored' AND id LIKE 'evt\\_f%' ORDER BY id",
    )
    .fetch_all(&mut billed.gateway.database().await)
    .await
    .unwrap();
    assert_eq!(
        ignored,
        ["evt_f2"],
        "only what names a known customer is stored"
    );
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_leave_nothing_behind() {
    for builder in [unsigned(), Gateway::builder()] {
        let billed = Billed::of(builder).await;
        billed.provisioned().await;
        billed.by_hand();
        let gateway = &billed.gateway;
        gateway
            .eventually("the events", async |_| billed.waiting().await == 0)
            .await;
        let before = stored(&billed).await;
        for number in 0..100 {
            let (kind, customer) = match number % 3 {
                0 => ("charge.refunded".to_owned(), "cus_1".to_owned()),
                1 => (format!("made.up.{number}"), format!("cus_{number}")),
                _ => (
                    "customer.subscription.updated".to_owned(),
                    format!("cus_{number}"),
                ),
            };
            let object = json!({ "id": format!("sub_{number}"), "customer": customer });
            post(
                gateway,
                &event(&format!("evt_{number}"), &kind, &object),
                None,
            )
            .await;
        }
        // The provider's own, of a kind that nothing follows from.
        let body = event("evt_own", "charge.refunded", &json!({ "id": "ch_1" }));
        let now = gateway.clock.now().timestamp();
        let header = signature(WEBHOOK_SECRET, now, &body);
        let answer = post(gateway, &body, Some(&header)).await;
        assert_eq!(answer, (200, json!({ "received": true })));
        assert_eq!(stored(&billed).await, before);
        billed.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_settled_before_its_event_came_is_told_to_nobody() {
    let billed = Billed::start().await;
    billed.enter_card("works").await;
    assert_eq!(billed.reactivate().await.0, 200);
    billed.by_hand();
    billed.act(Action::PaymentFails).await;
    billed.act(Action::PayOpenInvoices).await;
    let payments = &billed.gateway.sandbox.payments;
    for id in payments.waiting_events() {
        payments.deliver(&id).await.unwrap();
    }
    billed
        .gateway
        .eventually("the events", async |_| billed.waiting().await == 0)
        .await;
    assert_eq!(billed.status().await.as_deref(), Some("active"));
    assert_eq!(billed.notices("payment_failed").await, 0);
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_events_are_forgotten() {
    let billed = Billed::start().await;
    sqlx::query(
        "INSERT INTO payprov_events (id, type, received_at, state, due_at)
         VALUES ('evt_old', 'a', $1, 'applied', $1), ('evt_kept', 'a', $1, 'waiting', $2)",
    )
    .bind(Utc::now() - TimeDelta::days(91))
    .bind(Utc::now() + TimeDelta::days(1))
    .execute(&mut billed.gateway.database().await)
    .await
    .unwrap();
    billed.gateway.daemon.billing.forget_events().await.unwrap();
    let left = billed
        .count("SELECT count(*) FROM payprov_events WHERE id IN ('evt_old', 'evt_kept')")
        .await;
    assert_eq!(left, 1);
    billed.stop().await;
}
