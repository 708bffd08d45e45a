//! Events in every order, repeated, and from several connections at once; answers that come late. In the
//! end what the provider says is what is known.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use mailgate_sandbox::payprov::Action;

use super::Billed;
use crate::support::gateway::Gateway;
use crate::support::payprov_proxy::PayprovProxy;

const CONNECTIONS: usize = 4;

/// All orders of these.
fn permutations(items: &[String]) -> Vec<Vec<String>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (place, first) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(place);
        for mut order in permutations(&rest) {
            order.insert(0, first.clone());
            all.push(order);
        }
    }
    all
}

impl Billed {
    /// The newest event of a kind, with its id.
    fn newest_event(&self, kind: &str) -> String {
        let snapshot = self.gateway.sandbox.payments.snapshot();
        let events = snapshot["events"].as_array().unwrap();
        let event = events.iter().rev().find(|event| event["type"] == kind);
        let event = event.unwrap_or_else(|| panic!("no {kind}"));
        event["id"].as_str().unwrap().to_owned()
    }

    /// Knows nothing of what the events tell any more: of no subscription, or of the first one.
    async fn forget(&self, first: Option<&str>) {
        for query in ["DELETE FROM payprov_events", "DELETE FROM billing_notices"] {
            sqlx::query(query)
                .execute(&mut self.gateway.database().await)
                .await
                .unwrap();
        }
        sqlx::query(
            "UPDATE subscribers
             SET payprov_subscription_id = $1, payprov_subscription_created_at = NULL,
                 subscription_status = CASE WHEN $1 IS NULL THEN 'trialing' ELSE 'active' END,
                 failed_invoice_id = NULL, cancel_at_period_end = false",
        )
        .bind(first)
        .execute(&mut self.gateway.database().await)
        .await
        .unwrap();
    }

    async fn known(&self) -> (Option<String>, Option<String>) {
        sqlx::query_as("SELECT payprov_subscription_id, subscription_status FROM subscribers")
            .fetch_one(&mut self.gateway.database().await)
            .await
            .unwrap()
    }

    /// Delivers these events twice each, from several connections at once, and waits until all have been
    /// looked into.
    async fn deliver(&self, events: &[String]) {
        let payments = &self.gateway.sandbox.payments;
        let twice: Vec<&String> = events.iter().chain(events).collect();
        let connections = (0..CONNECTIONS).map(|connection| {
            let of_connection = twice.iter().skip(connection).step_by(CONNECTIONS);
            async move {
                for event in of_connection {
                    payments.deliver(event).await.unwrap();
                }
            }
        });
        join_all(connections).await;
        self.gateway
            .eventually("all events", async |_| self.waiting().await == 0)
            .await;
    }

    async fn try_all(&self, events: &[String], first: &str, expected: (&str, &str)) {
        for (number, order) in permutations(events).iter().enumerate() {
            self.forget((number % 2 == 0).then_some(first)).await;
            self.deliver(order).await;
            let (id, status) = self.known().await;
            assert_eq!(
                (id.as_deref(), status.as_deref()),
                (Some(expected.0), Some(expected.1)),
                "{order:?}"
            );
            assert_eq!(self.count("SELECT count(*) FROM billing_notices").await, 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_in_any_order_end_in_what_the_provider_says() {
    let billed = Billed::start().await;
    billed.enter_card("works").await;
    assert_eq!(billed.reactivate().await.0, 200);
    let first = billed.subscription().await;
    billed
        .gateway
        .eventually("the events so far", async |_| {
            billed.gateway.sandbox.payments.waiting_events().is_empty()
                && billed.waiting().await == 0
        })
        .await;
    billed.by_hand();
    let created = billed.newest_event("customer.subscription.created");
    billed.act(Action::PaymentFails).await;
    let past_due = billed.newest_event("customer.subscription.updated");
    billed.act(Action::PayOpenInvoices).await;
    let active = billed.newest_event("customer.subscription.updated");
    billed.act(Action::Delete).await;
    let deleted = billed.newest_event("customer.subscription.deleted");
    let mut events = vec![created, past_due, active, deleted];
    let distinct: BTreeSet<&String> = events.iter().collect();
    assert_eq!(distinct.len(), 4);
    billed.try_all(&events, &first, (&first, "canceled")).await;

    let (status, body) = billed.reactivate().await;
    assert_eq!((status, body["status"].as_str()), (200, Some("active")));
    let second = billed.subscription().await;
    assert_ne!(first, second);
    events.push(billed.newest_event("customer.subscription.created"));
    billed.try_all(&events, &first, (&second, "active")).await;
    assert_eq!(billed.subscriptions().await.len(), 2);
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_doesnt_overwrite_a_newer_one() {
    let proxy = PayprovProxy::start(false).await;
    let builder = Gateway::builder().set("PAYPROV__BASE_URL", &proxy.url);
    let billed = Billed::of(builder).await;
    proxy.forward_to(billed.gateway.sandbox.payments.url());
    billed.gateway.clock.advance(chrono::TimeDelta::minutes(5));
    billed.provisioned().await;
    billed.enter_card("works").await;
    assert_eq!(billed.reactivate().await.0, 200);
    billed
        .gateway
        .eventually("the events so far", async |_| {
            billed.gateway.sandbox.payments.waiting_events().is_empty()
                && billed.waiting().await == 0
        })
        .await;
    billed.by_hand();
    billed.act(Action::PaymentFails).await;
    let payments = &billed.gateway.sandbox.payments;
    let held = proxy.hold_next_look();
    let late = billed.newest_event("customer.subscription.updated");
    payments.deliver(&late).await.unwrap();
    held.reached().await;
    billed.act(Action::PayOpenInvoices).await;
    let newer = billed.newest_event("customer.subscription.updated");
    assert_ne!(late, newer);
    payments.deliver(&newer).await.unwrap();
    billed
        .gateway
        .eventually("the newer event", async |_| billed.waiting().await == 1)
        .await;
    assert_eq!(billed.status().await.as_deref(), Some("active"));
    held.release();
    billed
        .gateway
        .eventually("the late answer", async |_| billed.waiting().await == 0)
        .await;
    assert_eq!(billed.status().await.as_deref(), Some("active"));
    billed.stop().await;
}
