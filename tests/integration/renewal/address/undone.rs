//! A change that is confirmed is undone: by the address before, by changing it back, and by a renewal.

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{EVE, OWNER, change, email, gateway, mail, moved, path, paths};
use crate::portal::visitor::Visitor;
use crate::support::caller::Caller;
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_undone_for_three_days_however_often_it_is_changed_again() {
    let gateway = gateway().await;
    let stranger = Visitor::new(&gateway.daemon.base_url);
    let owner = Caller::owner(&gateway).await;
    let first = path(&moved(&gateway, OWNER, "b@example.com", 1).await);
    gateway.clock.advance(TimeDelta::hours(71));
    // Who had it for a short time has no say.
    let told = moved(&gateway, "b@example.com", "c@example.com", 1).await;
    assert_eq!(paths(&told).len(), 0, "{told}");
    // A third waits for its confirmation.
    change(&owner, "d@example.com").await.success(200);
    let third = path(&mail(&gateway, "d@example.com", "Confirm", 1).await);
    let stop = path(&mail(&gateway, "c@example.com", "about to change", 1).await);
    // So long after the last change, and not after the first.
    gateway.clock.advance(TimeDelta::hours(71));
    assert_eq!(stranger.post(&first, &[]).await.status, 200);
    assert_eq!(email(&owner).await, OWNER);
    mail(&gateway, "c@example.com", "former one again", 1).await;
    for path in [&stop, &third, &first] {
        assert_eq!(stranger.get(path).await.status, 410);
        assert_eq!(stranger.post(path, &[]).await.status, 410);
    }
    assert_eq!(email(&owner).await, OWNER);

    let late = path(&moved(&gateway, OWNER, "e@example.com", 2).await);
    gateway.clock.advance(TimeDelta::hours(73));
    assert_eq!(stranger.get(&late).await.status, 410);
    assert_eq!(stranger.post(&late, &[]).await.status, 410);
    assert_eq!(email(&owner).await, "e@example.com");
    // And who comes by the mail is as good as who has the secret again.
    assert_eq!(reveal_by_mail(&gateway, "e@example.com", 1).await, 200);
    gateway.stop().await;
}

/// Signs in by a mailed link, the `number`th to this address, and asks for the API secret; returns the answer's status.
async fn reveal_by_mail(gateway: &Gateway, address: &str, number: usize) -> u16 {
    let mut visitor = Visitor::new(&gateway.daemon.base_url);
    let asked = [("email", address)];
    visitor.post("/portal/sign-in-mail", &asked).await;
    let link = path(&mail(gateway, address, "Sign in", number).await);
    let page = visitor.post(&link, &[]).await;
    visitor.keep_cookie(&page);
    let reveal = "/portal/settings/api-secret/reveal";
    visitor.post(reveal, &[]).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_before_comes_back_at_once() {
    let gateway = gateway().await;
    let stranger = Visitor::new(&gateway.daemon.base_url);
    let owner = Caller::owner(&gateway).await;
    let undo = path(&moved(&gateway, OWNER, EVE, 1).await);
    let back = change(&owner, "Owner@example.com").await.success(200);
    assert_eq!(back["email"], OWNER);
    assert!(back.get("pending_email").is_none(), "{back}");
    // Who had it in between is told, and can do nothing about it.
    let told = mail(&gateway, EVE, "former one again", 1).await;
    assert_eq!(paths(&told).len(), 0, "{told}");
    assert_eq!(stranger.post(&undo, &[]).await.status, 410);
    let renewed = owner.reset("/me/reset-api-secret?revoke=all").await;
    let minted = &renewed.success(200)["minted_since"];
    assert_eq!(minted["email_change"], Value::Null);
    let owner = Caller::owner(&gateway).await;
    assert_eq!(email(&owner).await, OWNER);
    assert_eq!(reveal_by_mail(&gateway, OWNER, 1).await, 200);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_stops_a_change_and_undoes_it_on_request() {
    let gateway = gateway().await;
    let stranger = Visitor::new(&gateway.daemon.base_url);
    let owner = Caller::owner(&gateway).await;
    change(&owner, EVE).await.success(200);
    let confirm = path(&mail(&gateway, EVE, "Confirm", 1).await);
    let stop = path(&mail(&gateway, OWNER, "about to change", 1).await);
    owner.reset("/me/reset-api-secret").await.success(200);
    for path in [&confirm, &stop] {
        assert_eq!(stranger.post(path, &[]).await.status, 410);
    }
    let owner = Caller::owner(&gateway).await;
    let me = owner.get("/me").await.success(200);
    assert!(me.get("pending_email").is_none(), "{me}");

    moved(&gateway, OWNER, "b@example.com", 1).await;
    moved(&gateway, "b@example.com", "c@example.com", 1).await;
    for (wrong, field) in [
        ("revoke=some", "revoke"),
        ("revoke=all&keep_email=1", "keep_email"),
        ("keep_email=true", "keep_email"),
    ] {
        let renewed = owner.reset(&format!("/me/reset-api-secret?{wrong}")).await;
        assert_eq!(renewed.wrong_fields(), [field]);
    }
    let renewed = owner.reset("/me/reset-api-secret?revoke=all").await;
    let listed = renewed.success(200)["minted_since"]["email_change"].clone();
    assert_eq!(listed["former_email"], OWNER);
    assert_eq!(listed["email"], "c@example.com");
    assert_eq!(
        (&listed["undoable"], &listed["restored"]),
        (&json!(true), &json!(true))
    );
    let owner = Caller::owner(&gateway).await;
    assert_eq!(email(&owner).await, OWNER);
    // Nobody has shown to read it.
    let confirmed: Option<String> = sqlx::query_scalar("SELECT confirmed_email FROM subscribers")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(confirmed, None);
    // Had a thief moved it, and renewed: its owner gets in by mail as before.
    assert_eq!(reveal_by_mail(&gateway, OWNER, 1).await, 200);
    mail(&gateway, OWNER, "API secret of", 2).await;
    mail(&gateway, "c@example.com", "former one again", 1).await;

    // Whoever moved it keeps it; the address before can still undo that.
    let undo = path(&moved(&gateway, OWNER, "f@example.com", 2).await);
    let keeping = "/me/reset-api-secret?revoke=all&keep_email=true";
    let renewed = owner.reset(keeping).await.success(200);
    let listed = &renewed["minted_since"]["email_change"];
    assert_eq!(
        (&listed["undoable"], &listed["restored"]),
        (&json!(true), &json!(false))
    );
    let owner = Caller::owner(&gateway).await;
    assert_eq!(email(&owner).await, "f@example.com");
    assert_eq!(stranger.post(&undo, &[]).await.status, 200);
    assert_eq!(email(&owner).await, OWNER);
    let renewed = owner.reset("/me/reset-api-secret").await.success(200);
    assert_eq!(renewed["minted_since"]["email_change"], Value::Null);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_mail_a_new_address_counts_immediately_and_renewing_takes_it_back() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await;
    for address in [EVE, "other@example.com"] {
        let answer = change(&owner, address).await.success(200);
        assert_eq!(
            (&answer["email"], &answer["pending_email"]),
            (&json!(address), &Value::Null)
        );
    }
    let renewed = owner
        .reset("/me/reset-api-secret?revoke=all")
        .await
        .success(200);
    let listed = &renewed["minted_since"]["email_change"];
    assert_eq!(
        (&listed["former_email"], &listed["email"]),
        (&json!(OWNER), &json!("other@example.com"))
    );
    assert_eq!(email(&Caller::owner(&gateway).await).await, OWNER);
    gateway.stop().await;
}
