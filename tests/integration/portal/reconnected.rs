//! A mailbox whose user has withdrawn the grant, until it is connected again by its link, in Chromium.

use super::visitor::api_secret;
use crate::peers::browser::{Browser, Step};
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn its_link_brings_it_back_under_the_same_id() {
    let gateway = Gateway::start().await;
    let secret = api_secret(&gateway).await;
    let base = &gateway.daemon.base_url;
    let address = "ada@sandbox.example";
    gateway
        .sandbox
        .authorization
        .withdraw(address)
        .await
        .unwrap();
    gateway.send_to("bob@example.com").await;
    let path = format!("/portal/mailboxes/{}", gateway.mailbox.credential);
    let sign_in = [
        Step::goto(format!("{base}{path}")),
        Step::fill("#api-secret", &secret),
        Step::click("role=button[name=\"Sign in\"]"),
        Step::expect_url(format!("{path}$")),
    ];
    let mut steps = sign_in.to_vec();
    steps.extend([
        Step::expect_text("Disconnected"),
        Step::expect_text("it was withdrawn"),
        Step::screenshot("portal-mailbox-withdrawn"),
        Step::click("role=button[name=\"Create reconnect link\"]"),
        Step::Read("#link".to_owned()),
    ]);
    let results = Browser::desktop().run(&steps).await;
    let link = results.last().unwrap().text.clone().unwrap();

    // Its user, elsewhere.
    Browser::phone()
        .run(&[
            Step::goto(link),
            Step::click("#connect-plugin_a"),
            Step::expect_text("Your mailbox is connected"),
        ])
        .await;

    let mut steps = sign_in.to_vec();
    steps.push(Step::Read("main".to_owned()));
    let results = Browser::desktop().run(&steps).await;
    let page = results.last().unwrap().text.clone().unwrap();
    assert!(
        page.contains("Connected") && !page.contains("withdrawn"),
        "{page}"
    );
    let (status, answer) = gateway.send_to("bob@example.com").await;
    assert_eq!(status, 200, "{answer}");
    gateway.stop().await;
}
