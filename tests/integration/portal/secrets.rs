//! What a browser keeps of secrets and sessions, in Chromium.

use super::visitor::{Visitor, api_secret};
use crate::peers::browser::{Browser, Step};
use crate::support::gateway::{Gateway, OPERATOR};

#[tokio::test]
async fn after_signing_out_the_back_button_shows_nothing() {
    let gateway = Gateway::start().await;
    let secret = api_secret(&gateway).await;
    let base = &gateway.daemon.base_url;
    let results = Browser::desktop()
        .run(&[
            Step::goto(format!("{base}/portal")),
            Step::Type(secret.clone()),
            Step::Press(vec!["Enter"]),
            Step::expect_url("/portal$"),
            Step::goto(format!("{base}/portal/apps/{}", gateway.app.slug)),
            Step::fill("#api-secret", &secret),
            Step::click("role=button[name=\"Reveal the send key\"]"),
            Step::expect_text(gateway.app.send_key.expose()),
            Step::click("role=button[name=\"Sign out\"]"),
            Step::expect_url("/portal/sign-in$"),
            Step::Back(()),
            Step::Read("body".to_owned()),
            Step::Back(()),
            Step::Read("body".to_owned()),
        ])
        .await;
    for text in results.iter().filter_map(|result| result.text.as_deref()) {
        assert!(!text.contains(gateway.app.send_key.expose()), "{text}");
        assert!(!text.contains("Demo"), "{text}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn a_renewed_secret_is_shown_and_ends_other_browsers() {
    let gateway = Gateway::start().await;
    let other = Visitor::signed_in(&gateway).await;
    let secret = api_secret(&gateway).await;
    let base = &gateway.daemon.base_url;
    let results = Browser::phone()
        .run(&[
            Step::goto(format!("{base}/portal")),
            Step::Type(secret.clone()),
            Step::Press(vec!["Enter"]),
            Step::expect_url("/portal$"),
            Step::goto(format!("{base}/portal/settings/api-secret/renew")),
            Step::fill("#api-secret", &secret),
            Step::click("role=button[name=\"Rotate API secret\"]"),
            Step::Read("main".to_owned()),
            Step::goto(format!("{base}/portal/settings")),
            Step::expect_text("API secret rotated"),
            Step::expect_text("127.0.0.1"),
        ])
        .await;
    let new = api_secret(&gateway).await;
    assert_ne!(new, secret);
    let shown = results.iter().find_map(|result| result.text.as_deref());
    assert!(shown.unwrap().contains(&new), "{shown:?}");
    let page = other.get("/portal/settings").await;
    assert_eq!(page.status, 303);
    assert!(page.location().starts_with("/portal/sign-in"), "{page:?}");
    assert_eq!(other.post("/portal/settings", &[]).await.status, 401);
    gateway.stop().await;
}

#[tokio::test]
async fn a_form_that_is_sent_again_renews_no_api_secret() {
    let gateway = Gateway::start().await;
    let accounts = &gateway.daemon.accounts;
    let life = chrono::TimeDelta::minutes(5);
    let (link, _) = accounts
        .mint_portal_link(gateway.subscriber, life, OPERATOR)
        .await
        .unwrap();
    let mut visitor = Visitor::new(&gateway.daemon.base_url);
    let page = visitor
        .post(&format!("/portal/sign-in/{}", link.expose()), &[])
        .await;
    visitor.keep_cookie(&page);
    let form = "/portal/settings/api-secret/renew";
    let page = visitor.get(form).await;
    let last = page.field("last");
    let fields = [("last", last.as_str())];
    assert_eq!(visitor.post(form, &fields).await.status, 200);
    let renewed = api_secret(&gateway).await;
    let page = visitor.post(form, &fields).await;
    assert_eq!(page.location(), "/portal/settings?done=renewed-before");
    assert_eq!(api_secret(&gateway).await, renewed);
    gateway.stop().await;
}
