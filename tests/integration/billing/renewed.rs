//! A reactivation whose outcome isn't known never becomes a second subscription, and one whose outcome is known
//! keeps nobody from the next.

use chrono::TimeDelta;
use mailgate_sandbox::payprov::Action;
use mailgate_types::plugin::Plugin;
use serde_json::{Value, json};

use super::Billed;
use crate::support::payprov_proxy::PayprovProxy;

/// With a card, and a subscription that has ended.
async fn ended() -> (PayprovProxy, Billed) {
    let (proxy, billed) = Billed::behind_proxy().await;
    billed.enter_card("works").await;
    billed.act(Action::Delete).await;
    billed.comes_to("canceled").await;
    (proxy, billed)
}

fn is_active(answer: &(u16, Value)) -> bool {
    *answer == (200, json!({ "reactivated": true, "status": "active" }))
}

fn is_away((status, body): &(u16, Value)) -> bool {
    (*status, body["code"].as_str()) == (503, Some("payprov_unavailable"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_arrives_late_is_not_a_second_one() {
    let (proxy, billed) = ended().await;
    proxy.detain_creations();
    let unknown = billed.reactivate().await;
    assert!(is_away(&unknown), "{unknown:?}");
    let late = proxy.pass_creations();
    assert!(!late.is_empty());
    // The provider ties a key to one request: the number of mailboxes in it stays, and is corrected afterwards.
    billed
        .gateway
        .connect(None, Plugin::B, "second@sandbox.example")
        .await;
    let known = billed.reactivate().await;
    assert!(is_active(&known), "{known:?}");
    for request in late {
        assert_eq!(proxy.arrive(request).await, 200);
    }
    assert_eq!(billed.living().await, 1);
    billed
        .gateway
        .eventually("the quantity", async |gateway| {
            gateway.clock.advance(TimeDelta::seconds(1));
            billed.quantity().await == Some(2)
        })
        .await;
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_refusal_the_next_request_is_another_one() {
    let (_proxy, billed) = ended().await;
    billed.gateway.clock.advance(TimeDelta::seconds(2));
    billed.enter_card("declined_later").await;
    let (status, body) = billed.reactivate().await;
    assert_eq!(
        (status, body["code"].as_str()),
        (402, Some("payment_declined")),
        "{body}"
    );
    let recorded = "SELECT count(*) FROM audit_entries WHERE action = 'subscription.reactivated'";
    assert_eq!(billed.count(recorded).await, 0, "nothing was paid");
    billed.gateway.clock.advance(TimeDelta::seconds(2));
    billed.enter_card("works").await;
    let answer = billed.reactivate().await;
    assert!(is_active(&answer), "{answer:?}");
    assert_eq!(billed.living().await, 1);
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_the_provider_keeps_passes_after_half_an_hour() {
    let (proxy, billed) = ended().await;
    proxy.break_creations();
    let broken = billed.reactivate().await;
    assert!(is_away(&broken), "{broken:?}");
    proxy.pass_creations();
    // Nothing says that it was not created.
    let kept = billed.reactivate().await;
    assert!(is_away(&kept), "{kept:?}");
    billed.gateway.clock.advance(TimeDelta::minutes(31));
    let answer = billed.reactivate().await;
    assert!(is_active(&answer), "{answer:?}");
    assert_eq!(billed.living().await, 1);
    billed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_end_has_a_new_beginning() {
    let (_proxy, billed) = ended().await;
    for count in 2..=3 {
        let answer = billed.reactivate().await;
        assert!(is_active(&answer), "{answer:?}");
        assert_eq!(billed.subscriptions().await.len(), count);
        billed.act(Action::Delete).await;
        billed.comes_to("canceled").await;
    }
    billed.stop().await;
}
