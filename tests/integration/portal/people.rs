//! The portal as people use it: in Chromium, at a desk and on a phone, light and dark, with and without scripts.

use super::visitor::{Visitor, api_secret};
use super::webhooks::{add, gateway};
use crate::peers::browser::{Browser, Step};
use crate::support::gateway::Gateway;
use crate::support::receiver::Receiver;

#[tokio::test]
async fn every_page_suits_everybody() {
    let gateway = gateway().await;
    let base = &gateway.daemon.base_url;
    let (_, sent) = gateway.send_to("bob@example.com").await;
    let message = format!(
        "{base}/portal/messages/{}",
        sent["log_id"].as_str().unwrap()
    );
    let visitor = Visitor::signed_in(&gateway).await;
    let receiver = Receiver::start().await;
    let hook = add(&gateway, &visitor, &receiver.url("/hook")).await;
    assert_eq!(visitor.post(&format!("{hook}/test"), &[]).await.status, 303);
    let pages = [
        ("overview", format!("{base}/portal")),
        ("apps", format!("{base}/portal/apps")),
        ("app", format!("{base}/portal/apps/{}", gateway.app.slug)),
        ("billing", format!("{base}/portal/billing")),
        ("messages", format!("{base}/portal/messages")),
        ("message", message),
        ("mailboxes", format!("{base}/portal/mailboxes")),
        (
            "mailbox",
            format!("{base}/portal/mailboxes/{}", gateway.mailbox.credential),
        ),
        ("webhooks", format!("{base}/portal/webhooks")),
        ("webhook", format!("{base}{hook}")),
        ("webhook-form", format!("{base}/portal/webhooks/new")),
        ("webhook-replay", format!("{base}{hook}/replay")),
        ("settings", format!("{base}/portal/settings")),
        (
            "send-key-form",
            format!("{base}/portal/apps/{}/send-keys/new", gateway.app.slug),
        ),
        (
            "api-secret-form",
            format!("{base}/portal/settings/api-secrets/new"),
        ),
    ];
    let secret = api_secret(&gateway).await;
    for (device, browser) in [("desk", Browser::desktop()), ("phone", Browser::phone())] {
        for scheme in ["light", "dark"] {
            let mut steps = vec![
                Step::ColorScheme(scheme),
                Step::goto(format!("{base}/portal")),
                Step::Accessible(()),
                Step::screenshot(&format!("portal-sign-in-{device}-{scheme}")),
                Step::Fits(()),
                // The field has the focus.
                Step::Type(secret.clone()),
                Step::Press(vec!["Enter"]),
                Step::expect_url("/portal$"),
            ];
            for (name, address) in &pages {
                steps.push(Step::goto(address));
                steps.push(Step::Accessible(()));
                steps.push(Step::Fits(()));
                steps.push(Step::screenshot(&format!(
                    "portal-{name}-{device}-{scheme}"
                )));
            }
            let results = browser.run(&steps).await;
            for result in results {
                assert!(result.console_errors.is_empty(), "{result:?}");
            }
        }
    }
    gateway.stop().await;
}

#[tokio::test]
async fn all_of_it_works_without_scripts() {
    let gateway = Gateway::start().await;
    let base = &gateway.daemon.base_url;
    gateway.send_to("bob@example.com").await;
    gateway.send_to("eve@example.com").await;
    let secret = api_secret(&gateway).await;
    for browser in [Browser::desktop().without_javascript(), Browser::desktop()] {
        browser
            .run(&[
                Step::goto(format!("{base}/portal/messages")),
                Step::fill("#api-secret", &secret),
                Step::click("role=button[name=\"Sign in\"]"),
                Step::expect_url("/portal/messages$"),
                Step::expect_text("eve@example.com"),
                Step::fill("#q", "bob@example.com"),
                Step::click("role=button[name=\"Search\"]"),
                Step::expect_url("q=bob%40example.com"),
                Step::click("css=#results tbody a"),
                Step::expect_text("Timeline"),
                Step::expect_text("Accepted by the gateway (REST)"),
                Step::click("role=button[name=\"Sign out\"]"),
                Step::expect_url("/portal/sign-in$"),
            ])
            .await;
    }
    gateway.stop().await;
}
