//! Pages that follow what happens, and what people do on them, in Chromium.

use std::process::Command;

use serde_json::json;

use super::visitor::{Visitor, api_secret};
use super::webhooks::{add, gateway};
use crate::peers::browser::{Browser, Step};
use crate::support::gateway::Gateway;
use crate::support::receiver::Receiver;

/// Signs in and opens a page, by its path.
fn arrive(gateway: &Gateway, secret: &str, path: &str) -> Vec<Step> {
    vec![
        Step::goto(format!("{}{path}", gateway.daemon.base_url)),
        Step::fill("#api-secret", secret),
        Step::click("role=button[name=\"Sign in\"]"),
        Step::expect_url(format!("{path}$")),
    ]
}

/// A message of the app's, sent while a browser looks on.
fn sends(gateway: &Gateway, subject: &str) -> Step {
    let keys = json!({ "x-send-key": gateway.app.send_key.expose() });
    let message = json!({
        "pk": gateway.app.pushable_key.expose(), "to": "bob@example.com",
        "subject": subject, "body": "Hello",
    });
    Step::Post(format!("{}/send", gateway.daemon.base_url), keys, message)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_copied_line_sends_a_message_that_shows_up() {
    let gateway = Gateway::start().await;
    let secret = api_secret(&gateway).await;
    let mut steps = arrive(
        &gateway,
        &secret,
        &format!("/portal/apps/{}", gateway.app.slug),
    );
    steps.extend([
        Step::fill("#api-secret", &secret),
        Step::click("role=button[name=\"Reveal the send key\"]"),
        Step::Read("#code-curl".to_owned()),
    ]);
    let results = Browser::desktop().run(&steps).await;
    let line = results.last().unwrap().text.clone().unwrap();
    let ran = Command::new("sh").args(["-c", &line]).output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(answer["status"], "sent", "{line}");
    let path = format!("/portal/messages/{}", answer["log_id"].as_str().unwrap());

    let mut steps = arrive(&gateway, &secret, "/portal/messages");
    let before = steps.len();
    steps.extend([
        Step::expect_text("bob@example.com"),
        sends(&gateway, "The second"),
        Step::expect_text("The second"),
        Step::expect_text("Updated"),
    ]);
    let after = steps.len();
    // Further down nothing moves by itself.
    steps.extend([
        Step::TabTo("#results tbody a".to_owned()),
        sends(&gateway, "The third"),
        Step::click("role=button[name=\"Show what is new\"]"),
        Step::expect_text("The third"),
        Step::goto(format!("{}{path}", gateway.daemon.base_url)),
        Step::expect_text("Attempt 1"),
    ]);
    let results = Browser::desktop().run(&steps).await;
    assert_eq!(
        results[after - 1].loads,
        results[before - 1].loads,
        "the page wasn't loaded again"
    );
    for result in results {
        assert!(result.console_errors.is_empty(), "{result:?}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_message_is_tried_now_and_cancelled() {
    let gateway = gateway().await;
    let secret = api_secret(&gateway).await;
    let receiver = Receiver::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    add(&gateway, &visitor, &receiver.url("/hook")).await;
    let (status, sent) = gateway.send_to("tempfail@example.com").await;
    assert_eq!(status, 202, "{sent}");
    let path = format!("/portal/messages/{}", sent["log_id"].as_str().unwrap());
    let mut steps = arrive(&gateway, &secret, &path);
    steps.extend([
        Step::expect_text("Retrying"),
        Step::expect_text("Next attempt"),
        Step::click("role=button[name=\"Retry now\"]"),
        // By itself, once it has taken place.
        Step::expect_text("Attempt 2"),
        Step::click("role=link[name=\"Cancel sending…\"]"),
        Step::expect_text("It will never be sent."),
        Step::click("role=button[name=\"Cancel the message\"]"),
        Step::expect_text("The message is cancelled."),
        Step::expect_text("Cancelled"),
    ]);
    let results = Browser::phone().run(&steps).await;
    for result in results {
        assert!(result.console_errors.is_empty(), "{result:?}");
    }
    assert_eq!(gateway.spooled().await, 0);
    gateway
        .eventually("the event arrives", async |_| receiver.count() == 1)
        .await;
    let event = &receiver.received()[0];
    assert_eq!(event.json()["event"], "email.failed_perm", "{event:?}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyboard_is_enough() {
    let gateway = Gateway::start().await;
    let secret = api_secret(&gateway).await;
    assert_eq!(gateway.send_to("tempfail@example.com").await.0, 202);
    let base = &gateway.daemon.base_url;
    let on = |name: &'static str| Step::TabTo(name.to_owned());
    Browser::desktop()
        .run(&[
            Step::goto(format!("{base}/portal/messages")),
            // The field has the focus.
            Step::Type(secret),
            Step::Press(vec!["Enter"]),
            Step::expect_url("/portal/messages$"),
            on("#q"),
            Step::Type("tempfail@example.com".to_owned()),
            Step::Press(vec!["Enter"]),
            Step::expect_url("q=tempfail"),
            on("#results tbody a"),
            Step::Press(vec!["Enter"]),
            Step::expect_text("Timeline"),
            on("form[action$=\"/retry\"] button"),
            Step::Press(vec!["Enter"]),
            Step::expect_text("Attempt 2"),
            on("form[action=\"/portal/sign-out\"] button"),
            Step::Press(vec!["Enter"]),
            Step::expect_url("/portal/sign-in$"),
        ])
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_signed_in_stays_so_at_another_replica() {
    let gateway = Gateway::start().await;
    let replica = gateway.replica().start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    gateway.stop_daemon().await;
    let there = visitor.at(&replica.daemon.base_url);
    let page = there.get("/portal/settings").await;
    assert_eq!(page.status, 200, "{}", page.text);
    replica.stop().await;
}
