//! From the trial to the end and back, as the provider and a subscriber bring it about.

use chrono::TimeDelta;
use mailgate_sandbox::payprov::Action;
use mailgate_types::plugin::Plugin;
use serde_json::json;

use super::Billed;
use crate::support::contracts::Contract;
use crate::support::gateway::Gateway;
use crate::support::payprov_proxy::PayprovProxy;
use crate::support::smtp_client::SmtpClient;

/// The first words of the reply to a message by SMTP, and the status of one by REST.
async fn doors(gateway: &Gateway) -> (String, u16) {
    let (status, _) = gateway.send_to("bob@example.com").await;
    let mut client = SmtpClient::authenticated(gateway).await;
    let message = "From: ada@sandbox.example\r\nSubject: x\r\n\r\nx\r\n";
    let reply = client.submit("bob@example.com", message.as_bytes()).await;
    (reply[..9].to_owned(), status)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_a_card_a_failed_payment_an_end_and_a_new_beginning() {
    let versions = Contract::stripe_versions();
    // The one that is spoken unless a setting says otherwise, and the newest.
    assert_eq!(versions.len(), 2, "{versions:?}");
    assert_eq!(versions[0], "2026-08-26.dahlia");
    for version in versions {
        walk(&version).await;
    }
}

/// Every request is held against that version of the interface, as Stripe's own library has it.
#[expect(clippy::too_many_lines, reason = "one walk, step by step")]
async fn walk(version: &str) {
    let proxy = PayprovProxy::holding(version).await;
    let builder = Gateway::builder()
        .set("PAYPROV__BASE_URL", &proxy.url)
        .set("PAYPROV__API_VERSION", version);
    let billed = Billed::of(builder).await;
    proxy.forward_to(billed.gateway.sandbox.payments.url());
    billed.comes_to("trialing").await;
    billed
        .gateway
        .eventually("the quantity", async |gateway| {
            gateway.clock.advance(TimeDelta::seconds(1));
            billed.quantity().await == Some(1)
        })
        .await;
    let second = (Plugin::B, "second@sandbox.example");
    billed.gateway.connect(None, second.0, second.1).await;
    billed
        .gateway
        .eventually("another quantity", async |_| {
            billed.quantity().await == Some(2)
        })
        .await;
    let request = json!({ "return_url": "https://portal.example/" });
    assert_eq!(billed.post("/payprov/portal", request).await.0, 200);
    assert_eq!(billed.status().await.as_deref(), Some("trialing"));
    let me = billed.get("/me").await;
    assert_eq!(me["subscription_status"], "trialing");
    let customer = me["payprov_customer_id"].as_str().unwrap().to_owned();
    assert_eq!(billed.ask("customers").await["data"][0]["id"], customer);
    let change = json!({ "label": "Ada's new shop", "email": "new@example.com" });
    assert_eq!(billed.call("PATCH", "/me", Some(change)).await.0, 200);
    billed
        .gateway
        .eventually("the customer's new name", async |gateway| {
            gateway.clock.advance(TimeDelta::seconds(1));
            let customer = &billed.ask("customers").await["data"][0];
            customer["name"] == "Ada's new shop" && customer["email"] == "new@example.com"
        })
        .await;
    assert_eq!(doors(&billed.gateway).await, ("250 2.0.0".to_owned(), 200));

    // A card within the trial: it goes on by itself, and nothing is charged before it ends.
    let back = billed.enter_card("works").await;
    assert_eq!(
        back,
        "https://portal.example/billing?tab=1&payment=updated#card"
    );
    billed.comes_to("active").await;
    assert_eq!(billed.subscriptions().await[0]["status"], "trialing");
    let (_, again) = billed.reactivate().await;
    assert_eq!(again, json!({ "reactivated": false, "status": "active" }));

    billed.act(Action::EndTrial).await;
    billed.act(Action::PaymentFails).await;
    billed.comes_to("past_due").await;
    assert_eq!(doors(&billed.gateway).await, ("451 4.7.1".to_owned(), 402));
    billed
        .gateway
        .eventually("the notice", async |_| {
            billed.notices("payment_failed").await == 1
        })
        .await;
    billed
        .gateway
        .eventually("the mail", async |gateway| {
            let arrived = gateway.arrived().await;
            arrived
                .iter()
                .any(|mail| String::from_utf8_lossy(mail).contains("new@example.com"))
        })
        .await;

    // Another card that pays nothing, and one that does.
    billed.gateway.clock.advance(TimeDelta::seconds(2));
    billed.enter_card("declined_later").await;
    let (status, body) = billed.reactivate().await;
    assert_eq!(
        (status, body["code"].as_str()),
        (402, Some("payment_declined")),
        "{body}"
    );
    assert_eq!(billed.status().await.as_deref(), Some("past_due"));
    billed.gateway.clock.advance(TimeDelta::seconds(2));
    billed.enter_card("works").await;
    let (status, body) = billed.reactivate().await;
    assert_eq!(
        (status, body),
        (200, json!({ "reactivated": true, "status": "active" }))
    );
    let open = billed.ask("invoices?status=open").await;
    assert_eq!(open["data"], json!([]));
    assert_eq!(doors(&billed.gateway).await, ("250 2.0.0".to_owned(), 200));

    // It ends with its period, and not before.
    let (status, body) = billed
        .call("POST", "/payprov/cancel-subscription", None)
        .await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(
        (&body["cancelled"], &body["cancel_at_period_end"]),
        (&json!(true), &json!(true))
    );
    let standing = billed.get("/payprov/status").await;
    assert_eq!(
        standing,
        json!({ "allowed": true, "status": "active", "show_banner": true })
    );
    let live = billed.get("/payprov/subscription").await;
    assert_eq!(live["has_payprov"], true);
    let subscription = &live["subscription"];
    assert_eq!(subscription["cancel_at_period_end"], true);
    assert_eq!(
        subscription["current_period_end"],
        body["current_period_end"]
    );
    let first = billed.subscription().await;
    assert_eq!(subscription["payprov_subscription_id"], first);
    billed.gateway.clock.advance(TimeDelta::days(32));
    billed.comes_to("canceled").await;
    assert_eq!(doors(&billed.gateway).await, ("550 5.7.1".to_owned(), 402));

    // A new subscription, paid at once.
    let (status, body) = billed.reactivate().await;
    assert_eq!(
        (status, body),
        (200, json!({ "reactivated": true, "status": "active" }))
    );
    let all = billed.subscriptions().await;
    assert_eq!((all.len(), &all[0]["status"]), (2, &json!("active")));
    assert_ne!(all[0]["id"], first);
    assert_eq!(doors(&billed.gateway).await, ("250 2.0.0".to_owned(), 200));
    billed.stop().await;
    proxy.assert_kept(20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_entered_in_the_trial_pays_whether_or_not_anybody_tells() {
    for told in [true, false] {
        let billed = Billed::start().await;
        if !told {
            billed.by_hand();
        }
        billed.enter_card("works").await;
        if told {
            billed.comes_to("active").await;
        } else {
            // A look is enough.
            let live = billed.get("/payprov/subscription").await;
            assert_eq!(live["subscription"]["status"], "active");
        }
        let customers = billed.ask("customers").await;
        let default = &customers["data"][0]["invoice_settings"]["default_payment_method"];
        assert!(default.is_string(), "{customers}");

        // The trial goes over into what is paid, without a reactivation.
        billed.act(Action::EndTrial).await;
        billed.gateway.clock.advance(TimeDelta::hours(2));
        billed
            .gateway
            .eventually("the first payment", async |_| {
                billed.subscriptions().await[0]["status"] == "active"
            })
            .await;
        assert_eq!(billed.status().await.as_deref(), Some("active"));

        // One that was said to pay is not replaced by whatever is entered later.
        billed.gateway.clock.advance(TimeDelta::seconds(2));
        billed.enter_card("works").await;
        billed.get("/payprov/subscription").await;
        let later = billed.ask("customers").await;
        assert_eq!(
            &later["data"][0]["invoice_settings"]["default_payment_method"],
            default
        );
        billed.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn days_of_grace_begin_with_a_failed_payment_and_end() {
    let builder = Gateway::builder().set("PAYPROV__PAST_DUE_GRACE_DAYS", 3);
    let billed = Billed::of(builder).await;
    billed.provisioned().await;
    billed.enter_card("works").await;
    assert_eq!(billed.reactivate().await.0, 200);
    let allowed = |is: bool| json!({ "allowed": is, "status": "past_due", "show_banner": true });
    for _ in 0..2 {
        billed.act(Action::PaymentFails).await;
        billed.comes_to("past_due").await;
        billed
            .gateway
            .eventually("the notice", async |_| {
                billed.notices("payment_failed").await >= 1
            })
            .await;
        assert_eq!(billed.get("/payprov/status").await, allowed(true));
        assert_eq!(doors(&billed.gateway).await, ("250 2.0.0".to_owned(), 200));
        billed.gateway.clock.advance(TimeDelta::hours(71));
        // The next attempt to be paid doesn't begin them anew.
        billed.act(Action::PaymentFails).await;
        billed.get("/payprov/subscription").await;
        assert_eq!(doors(&billed.gateway).await, ("250 2.0.0".to_owned(), 200));
        billed.gateway.clock.advance(TimeDelta::hours(2));
        assert_eq!(billed.get("/payprov/status").await, allowed(false));
        assert_eq!(doors(&billed.gateway).await, ("451 4.7.1".to_owned(), 402));
        let (status, body) = billed.reactivate().await;
        assert_eq!(status, 200, "{body}");
        assert_eq!(doors(&billed.gateway).await, ("250 2.0.0".to_owned(), 200));
    }
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_trial_the_first_invoice_waits_for_a_card() {
    // The mailbox is connected before the provider can be asked.
    let proxy = PayprovProxy::start(false).await;
    let builder = Gateway::builder()
        .set("PAYPROV__BASE_URL", &proxy.url)
        // Nothing has been paid yet that grace could follow.
        .set("PAYPROV__PAST_DUE_GRACE_DAYS", 3)
        .set("PAYPROV__TRIAL_DAYS", 0);
    let billed = Billed::of(builder).await;
    proxy.forward_to(billed.gateway.sandbox.payments.url());
    billed.comes_to("past_due").await;
    assert_eq!(billed.quantity().await, Some(1));
    assert_eq!(billed.subscriptions().await[0]["status"], "incomplete");
    assert_eq!(
        billed.get("/payprov/status").await,
        json!({ "allowed": false, "status": "past_due", "show_banner": true })
    );
    assert_eq!(doors(&billed.gateway).await, ("451 4.7.1".to_owned(), 402));

    let (status, body) = billed.reactivate().await;
    assert_eq!(
        (status, body["code"].as_str()),
        (409, Some("payment_method_missing")),
        "{body}"
    );
    billed.enter_card("works").await;
    let (status, body) = billed.reactivate().await;
    assert_eq!(
        (status, body),
        (200, json!({ "reactivated": true, "status": "active" }))
    );
    assert_eq!(doors(&billed.gateway).await, ("250 2.0.0".to_owned(), 200));
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_without_a_card_ends_whether_or_not_anybody_tells() {
    for told in [true, false] {
        let billed = Billed::start().await;
        if !told {
            billed.by_hand();
        }
        billed.gateway.clock.advance(TimeDelta::days(12));
        if told {
            billed
                .gateway
                .eventually("the reminder", async |_| {
                    billed.notices("trial_will_end").await == 1
                })
                .await;
        }
        let standing = billed.get("/payprov/status").await;
        assert_eq!(
            standing,
            json!({ "allowed": true, "status": "trialing", "show_banner": true })
        );
        billed.gateway.clock.advance(TimeDelta::days(3));
        billed.comes_to("canceled").await;
        assert_eq!(billed.gateway.send_to("bob@example.com").await.0, 402);
        // Without a card there is nothing to pay a new subscription with.
        let (status, body) = billed.reactivate().await;
        assert_eq!(
            (status, body["code"].as_str()),
            (409, Some("payment_method_missing"))
        );
        assert_eq!(billed.subscriptions().await.len(), 1);
        billed.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_to_be_confirmed_is_told_with_its_page() {
    let billed = Billed::start().await;
    billed.enter_card("works").await;
    assert_eq!(billed.reactivate().await.0, 200);
    billed.act(Action::PaymentNeedsAction).await;
    billed.comes_to("past_due").await;
    billed
        .gateway
        .eventually("the notice", async |_| {
            billed.notices("payment_action_required").await == 1
        })
        .await;
    let url: Option<String> =
        sqlx::query_scalar("SELECT data ->> 'payment_url' FROM billing_notices")
            .fetch_one(&mut billed.gateway.database().await)
            .await
            .unwrap();
    let page = billed.gateway.sandbox.payments.url().to_owned() + "/invoices/";
    assert!(
        url.as_ref().is_some_and(|url| url.starts_with(&page)),
        "{url:?}"
    );
    billed.act(Action::PayOpenInvoices).await;
    billed.comes_to("active").await;
    billed.act(Action::PaymentFails).await;
    billed.act(Action::GiveUp).await;
    billed.comes_to("unpaid").await;
    let (status, body) = billed.reactivate().await;
    assert_eq!(
        (status, body),
        (200, json!({ "reactivated": true, "status": "active" }))
    );
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_reactivations_at_once_make_one_subscription() {
    let billed = Billed::start().await;
    billed.enter_card("works").await;
    billed.act(Action::Delete).await;
    billed.comes_to("canceled").await;
    let (first, second, third) = tokio::join!(
        billed.reactivate(),
        billed.reactivate(),
        billed.reactivate()
    );
    let answers = [first, second, third];
    assert!(
        answers.iter().any(|(status, _)| *status == 200),
        "{answers:?}"
    );
    for (status, body) in &answers {
        assert!(
            *status == 200 || body["code"] == "reactivation_in_flight",
            "{answers:?}"
        );
    }
    assert_eq!(billed.subscriptions().await.len(), 2);
    assert_eq!(billed.status().await.as_deref(), Some("active"));
    billed.stop().await;
}
