//! The provider's pages in Chromium, without scripts: they can be used, and the browser lets their forms go
//! where they lead. The pictures stay in `target/test-artefacts`.

use serde_json::json;

use super::walk::{api_secret, is_now, subscription};
use crate::peers::browser::{Browser, Step};
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_walks_from_the_trial_to_active() {
    let gateway = Gateway::builder()
        .billed()
        .set("WEBHOOKS__ALLOW_PRIVATE", true)
        .start()
        .await;
    is_now(&gateway, "trialing").await;
    subscription(&gateway).await;
    let payments = gateway.sandbox.payments.url().to_owned();
    let secret = api_secret(&gateway).await;
    let answered = async |path: &str, body: serde_json::Value| -> serde_json::Value {
        let url = format!("{}{path}", gateway.daemon.base_url);
        let request = gateway.http.post(url).header("x-api-secret", &secret);
        request
            .json(&body)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    };
    let browser = Browser::phone().without_javascript();
    browser
        .run(&[
            Step::goto(payments.as_str()),
            Step::expect_text("trialing"),
            Step::screenshot("payprov-trialing"),
            Step::click("role=button[name=\"Charge the next payment now: it fails\"]"),
            Step::expect_text("past_due"),
            Step::screenshot("payprov-past-due"),
        ])
        .await;
    is_now(&gateway, "past_due").await;

    let portal_url = format!("{payments}?from=checkout");
    let checkout = answered(
        "/payprov/checkout-setup",
        json!({ "portal_url": portal_url }),
    )
    .await;
    let checkout = checkout["url"].as_str().unwrap();
    browser
        .run(&[
            Step::goto(checkout),
            Step::screenshot("payprov-checkout"),
            Step::click("role=button[name=\"A card that is declined\"]"),
            Step::expect_text("The card was declined"),
            Step::click("role=button[name=\"A card that works\"]"),
            Step::expect_url("payment=updated"),
        ])
        .await;
    let reactivated = answered("/payprov/reactivate", json!({})).await;
    assert_eq!(reactivated["status"], "active", "{reactivated}");

    let portal = answered("/payprov/portal", json!({ "return_url": payments })).await;
    let portal = portal["url"].as_str().unwrap();
    browser
        .run(&[
            Step::goto(portal),
            Step::expect_text("active"),
            Step::screenshot("payprov-portal"),
            Step::click("role=button[name=\"Cancel at the end of the period\"]"),
            Step::expect_text("at the end of the period"),
            Step::click("role=button[name=\"Keep the subscription\"]"),
            Step::expect_text("Cancel at the end of the period"),
            Step::click("role=link[name=\"Back\"]"),
            Step::expect_text("Sandbox payments"),
            Step::click("role=button[name=\"Delete the subscription now\"]"),
            Step::expect_text("canceled"),
        ])
        .await;
    is_now(&gateway, "canceled").await;
    gateway.stop().await;
}
