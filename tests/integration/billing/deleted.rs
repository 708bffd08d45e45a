//! The end of a subscriber's subscriptions, whatever was on its way to the provider when it was deleted.

use chrono::TimeDelta;
use mailgate_sandbox::payprov::Action;
use mailgate_types::clock::Clock as _;

use mailgate_domain::accounts::Deleted;
use serde_json::json;

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

impl Billed {
    /// The operator deletes it, and may restore it.
    async fn delete_restorably(&self) {
        let accounts = &self.gateway.daemon.accounts;
        let deleted = accounts.delete_restorably(self.gateway.subscriber, OPERATOR);
        assert!(matches!(deleted.await.unwrap(), Deleted::Until(_)));
    }

    async fn restore(&self) {
        let accounts = &self.gateway.daemon.accounts;
        let restored = accounts.restore(self.gateway.subscriber, OPERATOR).await;
        assert_eq!(restored.unwrap(), Some(true));
    }

    /// Waits until its only subscription ends with the period, or renews.
    async fn ends_with_the_period(&self, ends: bool) {
        self.gateway
            .eventually("what becomes of the period", async |_| {
                let subscriptions = self.subscriptions().await;
                subscriptions.len() == 1 && subscriptions[0]["cancel_at_period_end"] == ends
            })
            .await;
        self.rests().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_restored_does_not_renew_until_it_is() {
    let billed = Billed::start().await;
    billed.enter_card("works").await;
    billed.delete_restorably().await;
    billed.ends_with_the_period(true).await;
    assert_eq!(billed.living().await, 1);
    billed.restore().await;
    billed.ends_with_the_period(false).await;
    let stopped = "SELECT count(*) FROM subscribers WHERE renewal_stopped";
    assert_eq!(billed.count(stopped).await, 0);
    assert_eq!(billed.reactivate().await.0, 200, "it is used as before");

    // What its owner has canceled stays so.
    assert_eq!(
        billed
            .post("/payprov/cancel-subscription", json!({}))
            .await
            .0,
        200
    );
    billed.ends_with_the_period(true).await;
    billed.delete_restorably().await;
    billed.rests().await;
    billed.restore().await;
    billed.rests().await;
    billed.ends_with_the_period(true).await;

    // What can't be restored any more is ended.
    billed.delete_restorably().await;
    billed.gateway.clock.advance(TimeDelta::days(7));
    billed
        .gateway
        .eventually("the end", async |_| billed.living().await == 0)
        .await;
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_nobody_stopped_is_found_by_the_hourly_look() {
    let billed = Billed::start().await;
    billed.enter_card("works").await;
    billed.rests().await;
    // As if a gateway of the release before had done the job.
    for (due_at, ends) in [("now() + interval '7 days'", true), ("NULL", false)] {
        let statement = format!("UPDATE subscribers SET deletion_due_at = {due_at}");
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .execute(&mut billed.gateway.database().await)
            .await
            .unwrap();
        billed.gateway.clock.advance(TimeDelta::minutes(61));
        billed.ends_with_the_period(ends).await;
    }
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
