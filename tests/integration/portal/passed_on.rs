//! What people pass on: a delivery as a command, a delivery of an endpoint that is gone, a link on one line.

use std::process::Command;

use super::visitor::{Page, Visitor, api_secret};
use super::webhooks::gateway;
use crate::peers::browser::{Browser, Step};
use crate::support::gateway::Gateway;
use crate::support::receiver::Receiver;
use crate::webhook_configs::is_signed;

/// A page's text as people see it.
fn unescaped(text: &str) -> String {
    let mut text = text.to_owned();
    for (entity, letter) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
    ] {
        text = text.replace(entity, letter);
    }
    for (entity, letter) in [
        ("&#34;", "\""),
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#38;", "&"),
        ("&amp;", "&"),
    ] {
        text = text.replace(entity, letter);
    }
    text
}

fn between<'a>(page: &'a Page, begin: &str, end: &str) -> &'a str {
    let (_, rest) = page.text.split_once(begin).expect(begin);
    rest.split_once(end).unwrap().0
}

/// An endpoint's path and secret, and the path of the delivery of one message to it.
async fn delivered(gateway: &Gateway, visitor: &Visitor, url: &str) -> (String, String, String) {
    let key = gateway.app.pushable_key.expose();
    let fields = [("app", key), ("url", url), ("events", "email.sent")];
    let page = visitor.post("/portal/webhooks/new", &fields).await;
    let secret = between(&page, "id=\"secret\">", "</code>").to_owned();
    let hook = format!(
        "/portal/webhooks/{}",
        between(&page, "href=\"/portal/webhooks/", "\"")
    );
    assert_eq!(gateway.send_to("bob@example.com").await.0, 200);
    gateway
        .eventually("it is delivered", async |_| {
            visitor.get(&hook).await.text.contains("/deliveries/")
        })
        .await;
    let page = visitor.get(&hook).await;
    let delivery = format!("{hook}/deliveries/{}", between(&page, "/deliveries/", "\""));
    (hook, secret, delivery)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_repeated_by_curl() {
    let gateway = gateway().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let receiver = Receiver::start().await;
    let url = receiver.url("/hook?name=it's&list[]={1}");
    let (_, secret, delivery) = delivered(&gateway, &visitor, &url).await;
    let page = visitor.get(&delivery).await;
    assert!(!page.text.contains(&secret), "{}", page.text);
    let first = receiver.received().remove(0);
    for name in [
        "content-type",
        "user-agent",
        "webhook-id",
        "webhook-timestamp",
    ] {
        let line = format!(
            "<code>{name}</code></dt><dd><code>{}</code>",
            first.header(name)
        );
        assert!(page.text.contains(&line), "{line}: {}", page.text);
    }
    page.says(&["not stored"]);
    let (_, command) = page.text.split_once("id=\"curl\"").unwrap();
    let command = command
        .split_once('>')
        .unwrap()
        .1
        .split_once("</pre>")
        .unwrap()
        .0;
    let ran = Command::new("sh")
        .args(["-c", &unescaped(command)])
        .output();
    assert!(
        ran.as_ref().is_ok_and(|ran| ran.status.success()),
        "{ran:?}"
    );
    let all = receiver.received();
    assert_eq!(all.len(), 2);
    let second = &all[1];
    is_signed(second, &secret);
    assert_eq!((&second.body, &second.path), (&first.body, &first.path));
    for name in ["content-type", "user-agent", "webhook-id"] {
        assert_eq!(second.header(name), first.header(name), "{name}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_stays_reachable_after_its_endpoint() {
    let gateway = gateway().await;
    let visitor = Visitor::signed_in(&gateway).await;
    let receiver = Receiver::start().await;
    let (hook, _, delivery) = delivered(&gateway, &visitor, &receiver.url("/hook")).await;
    assert_eq!(
        visitor.post(&format!("{hook}/delete"), &[]).await.status,
        303
    );
    assert_eq!(visitor.get(&hook).await.status, 404);
    let log = gateway.log_id().await;
    let message = visitor.get(&format!("/portal/messages/{log}")).await;
    message.says(&[&format!("href=\"{delivery}\"")]);
    let page = visitor.get(&delivery).await;
    assert_eq!(page.status, 200, "{}", page.text);
    page.says(&["Deleted endpoint", "Attempt 1", "email.sent"]);
    for wrong in [&format!("href=\"{hook}\""), "/replay\"", "id=\"curl\""] {
        assert!(!page.text.contains(wrong), "{wrong}: {}", page.text);
    }
    let (_, other) = crate::support::gateway::create_app(&gateway.daemon, "Other").await;
    let other = gateway.daemon.accounts.app_credentials(other.id).await;
    let other = other.unwrap().unwrap();
    let mut stranger = Visitor::new(&gateway.daemon.base_url);
    stranger.sign_in(other.api_secret.expose()).await;
    assert_eq!(stranger.get(&delivery).await.status, 404);
    gateway.stop().await;
}

/// The height of the link's field, and whether its QR code is seen.
const SEEN: &str = "document.getElementById('connect-link').offsetHeight + ' '
    + document.querySelector('.qr').checkVisibility()";

#[tokio::test(flavor = "multi_thread")]
async fn a_connect_link_takes_one_line() {
    let gateway = Gateway::start().await;
    let app = format!(
        "{}/portal/apps/{}",
        gateway.daemon.base_url, gateway.app.slug
    );
    let secret = api_secret(&gateway).await;
    for (browser, height) in [(Browser::desktop(), 36), (Browser::phone(), 44)] {
        let steps = [
            Step::goto(&app),
            Step::fill("#api-secret", &secret),
            Step::click("role=button[name=\"Sign in\"]"),
            Step::expect_url(format!("/apps/{}$", gateway.app.slug)),
            Step::goto(format!("{app}#connect")),
            Step::click("role=button[name=\"Create link\"]"),
            Step::expect_text("Connects one mailbox"),
            Step::read("#connect-link"),
            Step::Fits(()),
            Step::Accessible(()),
            Step::Measure(SEEN),
        ];
        let results = browser.run(&steps).await;
        let link = results[7].text.clone().unwrap();
        assert!(
            link.contains("/connect/") && link.contains("?session="),
            "{link}"
        );
        assert_eq!(results[10].text, Some(format!("{height} false")));
    }
    gateway.stop().await;
}
