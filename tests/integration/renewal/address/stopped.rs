//! A change that waits for its confirmation is stopped.

use chrono::TimeDelta;

use super::{EVE, OWNER, change, email, gateway, mail, path, replica};
use crate::portal::visitor::Visitor;
use crate::support::caller::Caller;

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_stopped_by_its_owner_and_nobody_is_flooded() {
    let gateway = gateway().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let owner = Caller::owner(&gateway).await;
    change(&owner, EVE).await.success(200);
    let settings = visitor.get("/portal/settings").await;
    assert!(settings.text.contains(EVE), "{}", settings.text);
    let confirm = path(&mail(&gateway, EVE, "Confirm", 1).await);
    let page = visitor
        .post("/portal/settings/email-change/stop", &[])
        .await;
    assert_eq!(page.status, 303);
    assert_eq!(visitor.post(&confirm, &[]).await.status, 410);

    // By asking for the present one, and by the former address' link.
    change(&owner, EVE).await.success(200);
    assert_eq!(
        change(&owner, OWNER)
            .await
            .success(200)
            .get("pending_email"),
        None
    );
    let confirm = path(&mail(&gateway, EVE, "Confirm", 2).await);
    assert_eq!(visitor.post(&confirm, &[]).await.status, 410);
    change(&owner, EVE).await.success(200);
    let stop = path(&mail(&gateway, OWNER, "about to change", 3).await);
    assert!(visitor.get(&stop).await.text.contains("Stop the change"));
    assert_eq!(visitor.post(&stop, &[]).await.status, 200);
    let confirm = path(&mail(&gateway, EVE, "Confirm", 3).await);
    assert_eq!(visitor.post(&confirm, &[]).await.status, 410);

    // A later one replaces an earlier one, and nobody gets more than five.
    change(&owner, EVE).await.success(200);
    let confirm = path(&mail(&gateway, EVE, "Confirm", 4).await);
    change(&owner, "new@example.com").await.success(200);
    assert_eq!(visitor.post(&confirm, &[]).await.status, 410);
    assert_eq!(
        change(&owner, EVE).await.problem(),
        (429, "too_many_email_changes")
    );
    let fields = [
        ("label", "New"),
        ("email", EVE),
        ("api_secret", &owner.secret),
    ];
    let page = visitor.post("/portal/settings", &fields).await;
    assert_eq!(page.status, 429, "{}", page.text);
    let me = owner.get("/me").await.success(200);
    assert_eq!(me["pending_email"], "new@example.com");
    assert_ne!(me["label"], "New");
    // Whoever renews the secret can change the address all the same.
    owner.reset("/me/reset-api-secret").await.success(200);
    let owner = Caller::owner(&gateway).await;
    change(&owner, EVE).await.success(200);
    let confirm = path(&mail(&gateway, EVE, "Confirm", 5).await);
    gateway.clock.advance(TimeDelta::hours(24));
    assert_eq!(visitor.post(&confirm, &[]).await.status, 410);
    assert_eq!(email(&owner).await, OWNER);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_confirming_and_stopping_one_wins() {
    let gateway = gateway().await;
    let other = replica(&gateway).await;
    let here = Visitor::new(&gateway.daemon.base_url);
    let there = Visitor::new(&other.daemon.base_url);
    for round in 1..=4 {
        gateway.clock.advance(TimeDelta::hours(80));
        other.clock.advance(TimeDelta::hours(80));
        let owner = Caller::owner(&gateway).await;
        change(&owner, EVE).await.success(200);
        let confirm = path(&mail(&gateway, EVE, "Confirm", round).await);
        let stop = path(&mail(&gateway, OWNER, "about to change", round).await);
        let (confirmed, stopped) = tokio::join!(here.post(&confirm, &[]), there.post(&stop, &[]));
        // Who stops it after its confirmation takes it back.
        assert_eq!(stopped.status, 200, "{round}");
        assert!([200, 410].contains(&confirmed.status), "{round}");
        assert_eq!(email(&owner).await, OWNER, "{round}");
    }
    other.stop().await;
    gateway.stop().await;
}
