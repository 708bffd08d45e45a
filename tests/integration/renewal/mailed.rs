//! Renewing the API secret by a mailed link, in the same step as what the link is for: who has the old one, and renews
//! it as soon as somebody signs in, doesn't come in between.

use chrono::TimeDelta;
use reqwest::Method;
use serde_json::json;

use super::address::{EVE, OWNER, change, email, gateway, mail, moved, path};
use crate::portal::visitor::{Page, Visitor};
use crate::support::caller::{Answer, Caller};
use crate::support::gateway::{Gateway, OPERATOR};

const RENEW: [(&str, &str); 2] = [("then", "renew"), ("revoke", "all")];
const FORM: &str = "/portal/settings/api-secret/renew";

/// The page has the secret that counts now, which is another one.
async fn shows_new_secret(gateway: &Gateway, page: &Page, before: &str) {
    assert_eq!(page.status, 200, "{}", page.text);
    let now = Caller::owner(gateway).await.secret;
    assert_ne!(now, before);
    assert!(page.text.contains(&now), "{}", page.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_link_renews_in_the_same_step() {
    let gateway = gateway().await;
    let owner = Caller::owner(&gateway).await;
    let additional = owner.request(Method::POST, "/me/api-secrets");
    let additional = additional.json(&json!({ "name": "CI", "scopes": ["apps:read"] }));
    Answer::to(additional).await.success(201);
    let mut visitor = Visitor::new(&gateway.daemon.base_url);
    let asked = [("email", OWNER)];
    visitor.post("/portal/sign-in-mail", &asked).await;
    let link = path(&mail(&gateway, OWNER, "Sign in", 1).await);
    let page = visitor.get(&link).await;
    let offer = "Sign in and rotate the API secret";
    assert!(page.text.contains(offer), "{}", page.text);
    // Both or nothing: what fails leaves the link as it was.
    let mut database = gateway.database().await;
    sqlx::raw_sql(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'on purpose'; END $$;
         CREATE TRIGGER fails BEFORE INSERT ON audit_entries FOR EACH ROW
             WHEN (NEW.action = 'api_secret.renewed') EXECUTE FUNCTION fail()",
    )
    .execute(&mut database)
    .await
    .unwrap();
    let page = visitor.post(&link, &RENEW).await;
    assert!(page.status >= 500, "{}", page.text);
    assert!(page.headers.get("set-cookie").is_none());
    sqlx::raw_sql("DROP TRIGGER fails ON audit_entries")
        .execute(&mut database)
        .await
        .unwrap();
    let page = visitor.post(&link, &RENEW).await;
    shows_new_secret(&gateway, &page, &owner.secret).await;
    visitor.keep_cookie(&page);
    assert_eq!(visitor.get("/portal/settings").await.status, 200);
    assert_eq!(owner.get("/me").await.status, 401);
    let left = Caller::owner(&gateway).await.get("/me/api-secrets").await;
    assert_eq!(left.success(200)["api_secrets"], json!([]));
    let told = mail(&gateway, OWNER, "API secret of", 1).await;
    assert!(told.contains("/portal/sign-in"), "{told}");

    // A link that was minted by the secret is its holder's.
    let accounts = &gateway.daemon.accounts;
    let life = TimeDelta::minutes(5);
    let minted = accounts.mint_portal_link(gateway.subscriber, life, OPERATOR);
    let (minted, _) = minted.await.unwrap();
    let link = format!("/portal/sign-in/{}", minted.expose());
    let before = Caller::owner(&gateway).await.secret;
    assert!(!visitor.get(&link).await.text.contains(offer));
    assert_eq!(visitor.post(&link, &RENEW).await.location(), FORM);
    assert_eq!(Caller::owner(&gateway).await.secret, before);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_taken_back_and_the_secret_renewed_in_one_step() {
    let gateway = gateway().await;
    let stolen = Caller::owner(&gateway).await;
    let undo = path(&moved(&gateway, OWNER, EVE, 1).await);
    // By a link to the new address nobody renews.
    let eve = Visitor::new(&gateway.daemon.base_url);
    eve.post("/portal/sign-in-mail", &[("email", EVE)]).await;
    let link = path(&mail(&gateway, EVE, "Sign in", 1).await);
    let page = eve.get(&link).await;
    assert!(!page.text.contains("renew"), "{}", page.text);
    assert_eq!(eve.post(&link, &RENEW).await.location(), FORM);
    assert_eq!(Caller::owner(&gateway).await.secret, stolen.secret);

    let ada = Visitor::new(&gateway.daemon.base_url);
    let page = ada.get(&undo).await;
    let offer = "Restore the address and rotate the API secret";
    assert!(page.text.contains(offer), "{}", page.text);
    let page = ada.post(&undo, &RENEW).await;
    shows_new_secret(&gateway, &page, &stolen.secret).await;
    assert!(page.text.contains(OWNER), "{}", page.text);
    assert_eq!(change(&stolen, EVE).await.status, 401);
    let owner = Caller::owner(&gateway).await;
    assert_eq!(email(&owner).await, OWNER);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_box_takes_back_only_the_address_beside_it() {
    let gateway = gateway().await;
    moved(&gateway, OWNER, EVE, 1).await;
    let before = Caller::owner(&gateway).await.secret;
    let ada = Visitor::signed_in(&gateway).await;
    let page = ada.get(FORM).await;
    assert_eq!(page.field("restored_email"), OWNER);
    let (last, secret) = (page.field("last"), before.as_str());
    let fields = |email| {
        let proof = ("api_secret", secret);
        [("last", last.as_str()), proof, ("restored_email", email)]
    };
    let refused = ada.post(FORM, &fields("other@example.com")).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    let owner = Caller::owner(&gateway).await;
    assert_eq!((&owner.secret, email(&owner).await), (&before, EVE.into()));
    let page = ada.post(FORM, &fields(OWNER)).await;
    shows_new_secret(&gateway, &page, &before).await;
    assert_eq!(email(&Caller::owner(&gateway).await).await, OWNER);
    gateway.stop().await;
}
