//! An API secret that is renewed while the provider is asked on behalf of the old one: nothing is changed there any more.

use mailgate_domain::accounts::Renewal;
use mailgate_sandbox::payprov::Action;

use super::Billed;
use crate::support::gateway::OPERATOR;
use crate::support::payprov_proxy::{Held, PayprovProxy};

impl Billed {
    /// Until nothing but what the test does asks the provider.
    async fn quiet(&self) {
        self.gateway
            .eventually("the events so far", async |_| {
                self.gateway.sandbox.payments.waiting_events().is_empty()
                    && self.waiting().await == 0
                    && self.jobs().await == 0
            })
            .await;
        self.by_hand();
    }

    /// The owner renews the API secret once the provider has answered how the subscription is.
    async fn renewed_during(&self, proxy: &PayprovProxy, path: &str) {
        self.quiet().await;
        self.renewed_while(&proxy.hold_next_look(), path).await;
    }

    async fn renewed_while(&self, held: &Held, path: &str) {
        let renewing = async {
            held.reached().await;
            let accounts = &self.gateway.daemon.accounts;
            let renewal = Renewal::default();
            let renewed = accounts.renew_api_secret(self.gateway.subscriber, renewal, OPERATOR);
            renewed.await.unwrap();
            held.release();
        };
        let (answer, ()) = tokio::join!(self.call("POST", path, None), renewing);
        let (status, problem) = answer;
        let problem = problem["code"].as_str();
        assert_eq!((status, problem), (401, Some("invalid_api_secret")));
    }
}

/// With an invoice that couldn't be paid.
async fn past_due() -> (PayprovProxy, Billed) {
    let (proxy, billed) = Billed::behind_proxy().await;
    billed.enter_card("works").await;
    assert_eq!(billed.reactivate().await.0, 200);
    billed.act(Action::PaymentFails).await;
    billed.comes_to("past_due").await;
    (proxy, billed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_isnt_cancelled_any_more() {
    let (proxy, billed) = Billed::behind_proxy().await;
    billed.enter_card("works").await;
    assert_eq!(billed.reactivate().await.0, 200);
    billed
        .renewed_during(&proxy, "/payprov/cancel-subscription")
        .await;
    let subscription = &billed.subscriptions().await[0];
    assert_eq!(subscription["cancel_at_period_end"], false);
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_an_invoice_nor_a_new_subscription_is_paid_any_more() {
    let (proxy, billed) = past_due().await;
    billed.renewed_during(&proxy, "/payprov/reactivate").await;
    assert_eq!(billed.subscriptions().await[0]["status"], "past_due");
    billed.stop().await;

    let (proxy, billed) = Billed::behind_proxy().await;
    billed.enter_card("works").await;
    billed.act(Action::Delete).await;
    billed.comes_to("canceled").await;
    billed.renewed_during(&proxy, "/payprov/reactivate").await;
    assert_eq!(billed.living().await, 0);
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_before_stands_in_the_trail() {
    let (proxy, billed) = past_due().await;
    billed.act(Action::PaymentFails).await;
    billed.quiet().await;
    let reactivations =
        "SELECT count(*) FROM audit_entries WHERE action = 'subscription.reactivated'";
    let before = billed.count(reactivations).await;
    let held = proxy.hold_next_payment();
    billed.renewed_while(&held, "/payprov/reactivate").await;
    let invoices = billed.ask("invoices?limit=100").await;
    let invoices = invoices["data"].as_array().unwrap();
    let open = invoices.iter().filter(|it| it["status"] == "open");
    assert_eq!(open.count(), 1, "{invoices:?}");
    assert_eq!(billed.count(reactivations).await, before + 1);
    billed.stop().await;
}
