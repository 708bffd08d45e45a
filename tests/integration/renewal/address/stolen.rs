//! Whoever has a stolen secret moves the address, or renews without end: the owner comes in again.

use chrono::TimeDelta;
use serde_json::json;

use super::{EVE, OWNER, change, email, gateway, mail, mails, path, paths, replica};
use crate::portal::visitor::Visitor;
use crate::support::caller::{Caller, text};

#[tokio::test(flavor = "multi_thread")]
async fn who_moved_the_address_by_a_stolen_secret_sees_nothing_of_the_next() {
    let gateway = gateway().await;
    let other = replica(&gateway).await;
    let stolen = Caller::owner(&gateway).await;
    let answer = change(&stolen, EVE).await.success(200);
    assert_eq!(
        (&answer["email"], &answer["pending_email"]),
        (&json!(OWNER), &json!(EVE))
    );
    let told = mail(&gateway, OWNER, "about to change", 1).await;
    assert!(
        told.contains(EVE) && told.contains("from 127.0.0.1"),
        "{told}"
    );
    let mut eve = Visitor::new(&other.daemon.base_url);
    let confirm = path(&mail(&gateway, EVE, "Confirm", 1).await);
    let page = eve.post(&confirm, &[]).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(eve.post(&confirm, &[]).await.status, 410);
    assert_eq!(email(&Caller::owner(&gateway).await).await, EVE);
    let undo = path(&mail(&gateway, OWNER, "has changed", 1).await);

    // The owner renews the secret, is shown the change, and both addresses hear of the renewal.
    let owner = Caller::owner(&gateway).await;
    let renewed = owner.reset("/me/reset-api-secret").await.success(200);
    let minted = &renewed["minted_since"]["email_change"];
    assert_eq!(
        (
            &minted["former_email"],
            &minted["email"],
            &minted["undoable"]
        ),
        (&json!(OWNER), &json!(EVE), &json!(true))
    );
    mail(&gateway, OWNER, "API secret of", 1).await;
    mail(&gateway, EVE, "API secret of", 1).await;
    assert_eq!(change(&stolen, EVE).await.status, 401);

    // By mail the thief comes in, but not to the secret.
    let asked = [("email", EVE)];
    eve.post("/portal/sign-in-mail", &asked).await;
    let link = path(&mail(&gateway, EVE, "Sign in", 1).await);
    let page = eve.post(&link, &[]).await;
    assert_eq!(page.status, 303);
    eve.keep_cookie(&page);
    let reveal = "/portal/settings/api-secret/reveal";
    assert_eq!(eve.post(reveal, &[]).await.status, 403);

    // Until the owner takes the address back.
    let mut ada = Visitor::new(&gateway.daemon.base_url);
    let page = ada.get(&undo).await;
    assert!(page.text.contains("Restore the address"), "{}", page.text);
    let page = ada.post(&undo, &[]).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(ada.post(&undo, &[]).await.status, 410);
    assert_eq!(eve.get("/portal/settings").await.status, 303);
    let told = mail(&gateway, EVE, "former one again", 1).await;
    assert_eq!(paths(&told).len(), 0, "{told}");
    eve.post("/portal/sign-in-mail", &asked).await;
    ada.post("/portal/sign-in-mail", &[("email", OWNER)]).await;
    // The replica's demo has this address too, but nobody has confirmed it.
    let link = paths(&mail(&gateway, OWNER, "Sign in", 1).await).remove(0);
    assert_eq!(
        mails(&gateway, EVE)
            .await
            .iter()
            .filter(|(it, _)| it.contains("Sign in"))
            .count(),
        1
    );
    let page = ada.post(&link, &[]).await;
    ada.keep_cookie(&page);
    assert_eq!(ada.post(reveal, &[]).await.status, 200);

    let trail = Caller::owner(&gateway)
        .await
        .get("/audit")
        .await
        .success(200);
    let actions = trail["entries"].as_array().unwrap().iter();
    let actions: Vec<&str> = actions.map(|entry| text(entry, "action")).rev().collect();
    assert_eq!(
        actions
            .into_iter()
            .filter(|it| !it.starts_with("app.") && *it != "user.connected")
            .collect::<Vec<_>>(),
        [
            "email_change.requested",
            "subscriber.changed",
            "api_secret.renewed",
            "portal.signed_in",
            "subscriber.changed",
            "portal.signed_in",
            "api_secret.revealed",
        ]
    );
    other.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_renews_without_end_keeps_no_owner_out() {
    let gateway = gateway().await;
    for _ in 0..60 {
        let thief = Caller::owner(&gateway).await;
        thief.reset("/me/reset-api-secret").await.success(200);
    }
    let thief = Caller::owner(&gateway).await;
    let again = thief.reset("/me/reset-api-secret").await;
    assert_eq!(again.problem(), (429, "too_many_renewals"));
    let mut owner = Visitor::new(&gateway.daemon.base_url);
    owner
        .post("/portal/sign-in-mail", &[("email", OWNER)])
        .await;
    let link = path(&mail(&gateway, OWNER, "Sign in", 1).await);
    let page = owner.post(&link, &[]).await;
    owner.keep_cookie(&page);
    let form = "/portal/settings/api-secret/renew";
    let last = owner.get(form).await.field("last");
    let page = owner
        .post(form, &[("last", &last), ("revoke", "all")])
        .await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(thief.get("/me").await.status, 401);
    // Ten mails say enough.
    mail(&gateway, OWNER, "API secret of", 10).await;
    gateway.clock.advance(TimeDelta::hours(24));
    let owner = Caller::owner(&gateway).await;
    owner.reset("/me/reset-api-secret").await.success(200);
    gateway.stop().await;
}
