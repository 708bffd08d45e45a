//! The way as a person walks it, in Chromium, on a desk and on a phone: link, chooser, provider, and
//! back to the app's own page. The pictures stay in `target/test-artefacts`.

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::link;
use crate::peers::Provider;
use crate::peers::browser::{Browser, Step};
use crate::peers_end_to_end::{ADA, Encryption, plugins};
use crate::support::gateway::Gateway;
use crate::support::ports;

/// The app that users come from and go back to; ends with the set.
async fn app_page(servers: &mut JoinSet<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let page = "<!doctype html><title>The app</title><h1>Back in the app</h1>";
    let router = Router::new().route("/back", get(async move || Html(page)));
    servers.spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}/back")
}

async fn call_back(gateway: &Gateway, callback_url: &str) {
    sqlx::query("UPDATE apps SET callback_url = $1, multilink = true")
        .bind(callback_url)
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
}

/// What the app is told in its address.
fn told(url: &str, name: &str) -> Option<String> {
    let url = url::Url::parse(url).unwrap();
    let found = url.query_pairs().find(|(found, _)| found == name);
    found.map(|(_, value)| value.into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn through_the_sandbox_without_scripts() {
    let mut servers = JoinSet::new();
    let gateway = Gateway::start().await;
    let link = link(&gateway, &gateway.app, &[]);
    for (browser, device) in [(Browser::desktop(), "desktop"), (Browser::phone(), "phone")] {
        call_back(&gateway, "").await;
        let results = browser
            .clone()
            .without_javascript()
            .run(&[
                Step::goto(link.as_str()),
                Step::expect_text("Connect your mailbox"),
                Step::expect_text("Demo would like to send email from your mailbox"),
                Step::screenshot(&format!("connect-chooser-{device}")),
                Step::click("#connect-plugin_b"),
                Step::fill("#address", format!("{device}@sandbox.example")),
                Step::screenshot(&format!("connect-sandbox-{device}")),
                Step::click("role=button[name=\"Continue with this address\"]"),
                Step::expect_text("Your mailbox is connected"),
                Step::expect_text(format!("{device}@sandbox.example")),
                Step::screenshot(&format!("connect-success-{device}")),
                Step::goto(link.as_str()),
                Step::click("#connect-plugin_b"),
                Step::click("role=button[name=\"Deny\"]"),
                Step::expect_text("Your mailbox is not connected"),
                Step::screenshot(&format!("connect-denied-{device}")),
                Step::click("#try-again"),
                Step::expect_text("Connect your mailbox"),
                Step::click("#connect-plugin_b"),
                Step::expect_url("/oauth/authorize"),
            ])
            .await;
        assert!(
            results
                .iter()
                .all(|result| result.console_errors.is_empty() || result.status == Some(400))
        );

        let page = app_page(&mut servers).await;
        call_back(&gateway, &page).await;
        let results = browser
            .run(&[
                Step::goto(link.as_str()),
                Step::click("#connect-plugin_b"),
                Step::fill("#address", format!("{device}@sandbox.example")),
                Step::click("role=button[name=\"Continue with this address\"]"),
                Step::expect_text("Back in the app"),
            ])
            .await;
        let end = &results.last().unwrap().url;
        assert_eq!(told(end, "status").as_deref(), Some("success"), "{end}");
        let email = format!("{device}@sandbox.example");
        assert_eq!(told(end, "email"), Some(email), "{end}");
    }
    gateway.stop().await;
}

/// From a page of the app's, and back to it by the button at the end; whoever comes from nowhere is told to go back.
#[tokio::test(flavor = "multi_thread")]
async fn back_to_where_they_came_from() {
    let mut servers = JoinSet::new();
    let gateway = Gateway::start().await;
    call_back(&gateway, "").await;
    let link = link(&gateway, &gateway.app, &[]);
    let app = site_of_links(&mut servers, link.as_str()).await;
    let connect = |user: &str| {
        [
            Step::click("#connect-plugin_b"),
            Step::fill("#address", format!("{user}@sandbox.example")),
            Step::click("role=button[name=\"Continue with this address\"]"),
            Step::expect_text("Your mailbox is connected"),
        ]
    };
    let mut steps = vec![
        Step::goto(app.as_str()),
        Step::click("text=Connect"),
        Step::click("#connect-plugin_b"),
        Step::click("role=button[name=\"Deny\"]"),
        Step::expect_text("Back to Demo"),
        Step::click("#try-again"),
    ];
    steps.extend(connect("from-the-app"));
    steps.extend([
        Step::expect_text("Back to Demo"),
        Step::screenshot("connect-back"),
        Step::click("#back"),
        Step::expect_text("The app's own page"),
    ]);
    let results = Browser::phone().run(&steps).await;
    assert_eq!(results.last().unwrap().url, app);

    // What an earlier visit left is forgotten by one from nowhere.
    let mut steps = vec![
        Step::goto(app.as_str()),
        Step::click("text=Connect"),
        Step::goto(link.as_str()),
    ];
    steps.extend(connect("from-nowhere"));
    steps.push(Step::expect_text(
        "You can close this page and return to Demo",
    ));
    Browser::phone().run(&steps).await;
    gateway.stop().await;
}

/// The app's own page, with the connect link on it; ends with the set.
async fn site_of_links(servers: &mut JoinSet<()>, link: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let page = format!("<!doctype html><h1>The app's own page</h1><a href=\"{link}\">Connect</a>");
    let router = Router::new().route("/", get(async move || Html(page)));
    servers.spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}/")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_shows_what_arrives_by_itself() {
    let gateway = Gateway::start().await;
    let inbox = gateway.sandbox.url();
    let message = serde_json::json!({
        "pk": gateway.app.pushable_key.expose(),
        "to": "bob@example.com",
        "subject": "It came while you watched",
        "body": "Hello",
    });
    let key = serde_json::json!({ "x-send-key": gateway.app.send_key.expose() });
    let url = format!("{}/send", gateway.daemon.base_url);
    for scheme in ["light", "dark"] {
        let results = Browser::phone()
            .run(&[
                Step::ColorScheme(scheme),
                Step::goto(&inbox),
                Step::expect_text("Nothing has arrived yet"),
                Step::Accessible(()),
                Step::Post(url.clone(), key.clone(), message.clone()),
                Step::expect_text("It came while you watched"),
                Step::Accessible(()),
                Step::click("text=It came while you watched"),
                Step::Accessible(()),
                Step::goto(&inbox),
                Step::click("text=Payments"),
                Step::expect_text("Sandbox payments"),
                Step::Accessible(()),
            ])
            .await;
        assert_eq!(results[6].loads, results[1].loads, "it was loaded again");
        gateway
            .http
            .delete(format!("{inbox}/messages"))
            .send()
            .await
            .unwrap();
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn through_oidc_provider() {
    let mut servers = JoinSet::new();
    let [port] = ports::reserve();
    let provider = Provider::start(&format!("http://127.0.0.1:{port}/oauth/callback")).await;
    let gateway = Gateway::builder()
        .plugins(plugins(&provider, Encryption::StartTls))
        .set("HTTP__LISTEN", format!("127.0.0.1:{port}"))
        .start()
        .await;
    let page = app_page(&mut servers).await;
    call_back(&gateway, &page).await;
    for (hint, status, name) in [
        (ADA, "success", "connect-oidc-success"),
        ("deny@provider.test", "error", "connect-oidc-denied"),
    ] {
        let link = link(&gateway, &gateway.app, &[("login_hint", hint)]);
        let results = Browser::desktop()
            .run(&[
                Step::goto(link.as_str()),
                Step::screenshot("connect-oidc-chooser"),
                Step::click("#connect-plugin_b"),
                Step::expect_text("Back in the app"),
                Step::screenshot(name),
            ])
            .await;
        let end = &results.last().unwrap().url;
        assert_eq!(told(end, "status").as_deref(), Some(status), "{end}");
        assert_eq!(told(end, "plugin").as_deref(), Some("plugin_b"), "{end}");
    }
    let (status, answer) = gateway
        .send(serde_json::json!({
            "to": "bob@provider.test", "subject": "Hello", "body": "Hi.", "plugin": "plugin_b",
        }))
        .await;
    assert_eq!(status, 200, "{answer}");
    provider.wait_for_messages("bob@provider.test", 1).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn for_everybody_by_day_and_by_night() {
    let gateway = Gateway::start().await;
    call_back(&gateway, "").await;
    let link = link(&gateway, &gateway.app, &[]);
    let base = &gateway.daemon.base_url;
    for (browser, device) in [(Browser::desktop(), "desktop"), (Browser::phone(), "phone")] {
        for scheme in ["light", "dark"] {
            let picture = |page: &str| Step::screenshot(&format!("{page}-{device}-{scheme}"));
            let at = [
                Step::ColorScheme(scheme),
                Step::goto(base),
                Step::Accessible(()),
                Step::goto(format!("{base}/nothing")),
                Step::Accessible(()),
                Step::goto(link.as_str()),
                Step::Accessible(()),
                picture("connect-chooser"),
                Step::click("#connect-plugin_b"),
                Step::Accessible(()),
                picture("connect-sandbox"),
                Step::click("role=button[name=\"Deny\"]"),
                Step::expect_text("Your mailbox is not connected"),
                Step::Accessible(()),
                picture("connect-denied"),
                Step::click("#try-again"),
                Step::click("#connect-plugin_b"),
                Step::fill("#address", format!("{device}-{scheme}@sandbox.example")),
                Step::click("role=button[name=\"Continue with this address\"]"),
                Step::expect_text("Your mailbox is connected"),
                Step::Accessible(()),
                picture("connect-success"),
            ];
            browser.run(&at).await;
        }
    }
    gateway.stop().await;
}
