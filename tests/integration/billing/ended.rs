//! An API secret that is renewed while the provider is asked on behalf of the old one: nothing is changed there any more.

use mailgate::accounts::Renewal;
use mailgate_sandbox::payprov::Action;

use super::Billed;
use crate::support::gateway::OPERATOR;
use crate::support::payprov_proxy::PayprovProxy;

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
        let held = proxy.hold_next_look();
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
    let (proxy, billed) = Billed::behind_proxy().await;
    billed.enter_card("works").await;
    assert_eq!(billed.reactivate().await.0, 200);
    billed.act(Action::PaymentFails).await;
    billed.comes_to("past_due").await;
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
