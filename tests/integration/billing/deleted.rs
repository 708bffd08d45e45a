//! The end of a subscriber's subscriptions, whatever was on its way to the provider when it was deleted.

use chrono::TimeDelta;
use mailgate_sandbox::payprov::Action;
use mailgate_types::clock::Clock as _;

use super::Billed;
use crate::support::gateway::OPERATOR;
use crate::support::payprov_proxy::PayprovProxy;

/// With a card, and a subscription that has ended.
async fn ended() -> (PayprovProxy, Billed) {
    let (proxy, billed) = Billed::behind_proxy().await;
    billed.enter_card("works").await;
    billed.act(Action::Delete).await;
    billed.comes_to("canceled").await;
    (proxy, billed)
}

impl Billed {
    async fn delete_subscriber(&self) {
        let mailboxes = &self.gateway.daemon.mailboxes;
        let deleted = mailboxes.delete_subscriber(self.gateway.subscriber, OPERATOR);
        assert!(deleted.await.unwrap());
    }

    /// Waits until no job is due or being done.
    async fn rests(&self) {
        self.gateway
            .eventually("rest", async |gateway| {
                let busy = "SELECT count(*) FROM billing_jobs
                            WHERE due_at <= $1 OR lease_until IS NOT NULL";
                let busy = sqlx::query_scalar::<_, i64>(busy).bind(gateway.clock.now());
                busy.fetch_one(&mut gateway.database().await).await.unwrap() == 0
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_subscriber_is_billed_no_more() {
    let billed = Billed::start().await;
    billed.delete_subscriber().await;
    billed
        .gateway
        .eventually("the end", async |_| billed.living().await == 0)
        .await;
    billed.rests().await;
    billed.gateway.clock.advance(TimeDelta::minutes(61));
    billed
        .gateway
        .eventually("nothing to be done", async |_| billed.jobs().await == 0)
        .await;
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_a_reactivation_creates_meanwhile_ends_too() {
    let (proxy, billed) = ended().await;
    let held = proxy.hold_next_creation();
    let (answer, ()) = tokio::join!(billed.reactivate(), async {
        held.reached().await;
        billed.delete_subscriber().await;
        billed.rests().await;
        held.release();
    });
    assert_ne!(answer.0, 200, "{answer:?}");
    assert_eq!(billed.subscriptions().await.len(), 2);
    // Within moments, not only when the job runs again.
    billed
        .gateway
        .eventually("the end", async |_| billed.living().await == 0)
        .await;
    let trail = billed
        .count("SELECT count(*) FROM audit_entries WHERE action <> 'subscriber.deleted'")
        .await;
    assert_eq!(trail, 0);
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_nobody_knows_of_ends_within_the_hour() {
    let (proxy, billed) = ended().await;
    proxy.detain_creations();
    assert_eq!(billed.reactivate().await.0, 503);
    let late = proxy.pass_creations();
    billed.delete_subscriber().await;
    billed.rests().await;
    for request in late {
        assert_eq!(proxy.arrive(request).await, 200);
    }
    assert_eq!(billed.living().await, 1);
    billed.gateway.clock.advance(TimeDelta::minutes(61));
    billed
        .gateway
        .eventually("the end", async |_| billed.living().await == 0)
        .await;
    billed
        .gateway
        .eventually("nothing to be done", async |_| billed.jobs().await == 0)
        .await;
    billed.stop().await;
}
