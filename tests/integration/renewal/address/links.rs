//! The links that are mailed to sign in, while an address is changed or claimed.

use chrono::TimeDelta;

use super::{EVE, OWNER, gateway, mail, mails, path, paths};
use crate::portal::visitor::Visitor;
use crate::support::caller::Caller;
use crate::support::gateway::create_app;

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_mailed_to_no_address_that_has_changed_meanwhile() {
    let gateway = gateway().await;
    let stranger = Visitor::new(&gateway.daemon.base_url);
    let mut other = gateway.database().await;
    let mut change = sqlx::Connection::begin(&mut other).await.unwrap();
    sqlx::query("UPDATE subscribers SET email = $1")
        .bind(EVE)
        .execute(&mut *change)
        .await
        .unwrap();
    let asked = [("email", OWNER)];
    stranger.post("/portal/sign-in-mail", &asked).await;
    gateway
        .eventually("the wait", async |gateway| {
            let waiting: i64 =
                sqlx::query_scalar("SELECT count(*) FROM pg_locks WHERE NOT granted")
                    .fetch_one(&mut gateway.database().await)
                    .await
                    .unwrap();
            waiting > 0
        })
        .await;
    change.commit().await.unwrap();
    stranger
        .post("/portal/sign-in-mail", &[("email", EVE)])
        .await;
    path(&mail(&gateway, EVE, "Sign in", 1).await);
    assert_eq!(mails(&gateway, OWNER).await.len(), 0);
    let links: i64 = sqlx::query_scalar("SELECT count(*) FROM portal_links")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap();
    assert_eq!(links, 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_claims_an_address_pushes_nobody_out_of_its_mail() {
    let gateway = gateway().await;
    let visitor = Visitor::new(&gateway.daemon.base_url);
    // The subscriber's own accounts, and those of others with its address: none is left out.
    for _ in 0..10 {
        gateway.clock.advance(TimeDelta::seconds(1));
        create_app(&gateway.daemon, "Demo").await;
    }
    visitor
        .post("/portal/sign-in-mail", &[("email", OWNER)])
        .await;
    let text = mail(&gateway, OWNER, "Sign in", 1).await;
    assert_eq!(paths(&text).len(), 11);
    // Who has come by the mail reads the address, and is before all who only claim it.
    let line = text
        .lines()
        .rfind(|line| line.starts_with("Sign in as"))
        .unwrap();
    let youngest = line.split_once('(').unwrap().1.split_once(',').unwrap().0;
    let last = paths(&text).pop().unwrap();
    assert_eq!(visitor.post(&last, &[]).await.status, 303);
    gateway.clock.advance(TimeDelta::minutes(20));
    visitor
        .post("/portal/sign-in-mail", &[("email", OWNER)])
        .await;
    let text = mail(&gateway, OWNER, "Sign in", 2).await;
    let first = text
        .lines()
        .find(|line| line.starts_with("Sign in as"))
        .unwrap();
    assert!(first.contains(youngest), "{youngest}: {text}");
    assert_eq!(paths(&text).len(), 11);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_a_former_address_lets_nobody_in() {
    let gateway = gateway().await;
    let visitor = Visitor::signed_in(&gateway).await;
    visitor
        .post("/portal/sign-in-mail", &[("email", OWNER)])
        .await;
    let link = path(&mail(&gateway, OWNER, "Sign in", 1).await);
    let secret = Caller::owner(&gateway).await.secret;
    let change = |label, email| {
        let proof = ("api_secret", secret.as_str());
        [("label", label), ("email", email), proof]
    };
    // Neither a name alone nor what isn't confirmed takes a link back.
    for (email, done) in [(OWNER, "saved"), (EVE, "email-asked")] {
        let page = visitor
            .post("/portal/settings", &change("Renamed", email))
            .await;
        assert_eq!(page.location(), format!("/portal/settings?done={done}"));
        assert_eq!(visitor.get(&link).await.status, 200);
    }
    let confirm = path(&mail(&gateway, EVE, "Confirm", 1).await);
    assert_eq!(visitor.post(&confirm, &[]).await.status, 200);
    assert_eq!(visitor.get(&link).await.status, 410);
    assert_eq!(visitor.post(&link, &[]).await.status, 410);
    gateway.stop().await;
}
