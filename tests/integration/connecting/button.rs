//! The page comes first, its button leads on, and the way ends in the browser in which it was pressed.

use reqwest::header::{COOKIE, SET_COOKIE};

use super::{
    BROWSER, Visit, active, browser, complete, execute, grants, link, until_callback, used_links,
};
use crate::support::gateway::{Gateway, MAILBOX};

const EVE: &str = "eve@sandbox.example";

#[tokio::test(flavor = "multi_thread")]
async fn opening_the_link_leads_nowhere_and_changes_nothing() {
    let gateway = Gateway::start().await;
    for parameters in [
        &[][..],
        &[("plugin", "plugin_a")],
        &[("plugin", "plugin_a"), ("login_hint", EVE)],
        &[
            ("plugin", "plugin_b"),
            ("user_id", "u"),
            ("login_hint", EVE),
        ],
    ] {
        let page = Visit::to(link(&gateway, &gateway.app, parameters)).await;
        assert_eq!(page.status, 200, "{}", page.body);
        page.is_page();
        assert!(!page.headers.contains_key(SET_COOKIE));
        let buttons = if parameters.is_empty() { 2 } else { 1 };
        assert_eq!(page.body.matches("<button").count(), buttons);
    }
    assert_eq!(used_links(&gateway).await, 0);
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_ends_in_the_browser_that_began_alone() {
    let gateway = Gateway::start().await;
    execute(&gateway, "UPDATE apps SET multilink = true").await;
    let parameters = [("plugin", "plugin_a"), ("login_hint", EVE)];
    let callback = until_callback(&gateway, &gateway.app, &parameters).await;
    let other = "mailgate_browser=YW5vdGhlciBicm93c2VyLCB3aGljaCBkaWRuJ3QgYmU";
    for cookie in ["", other, "mailgate_browser=", "a=b"] {
        let request = browser().get(callback.clone()).header(COOKIE, cookie);
        let page = Visit::by(request).await;
        page.is_failure(403, "another_browser");
        assert_eq!(page.title(), "Continue in the browser where you started");
    }
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX]);
    assert_eq!(used_links(&gateway).await, 0);
    // Nor did a stranger use it up.
    assert_eq!(complete(callback).await.status, 200);
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX, EVE]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_given_its_cookie_once() {
    let public = "https://gateway.example";
    let gateway = Gateway::builder()
        .set("HTTP__BASE_URL", public)
        .start()
        .await;
    let address = gateway.daemon.http_address;
    let key = gateway.app.pushable_key.expose();
    let link = format!("http://{address}/connect/{key}?plugin=plugin_a");
    let first = Visit::by(browser().post(&link)).await;
    let cookie = first.headers[SET_COOKIE].to_str().unwrap();
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert!(pair.starts_with("__Host-mailgate_browser="), "{cookie}");
    assert_eq!(
        attributes,
        "Path=/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure"
    );
    let again = Visit::by(browser().post(&link).header(COOKIE, pair)).await;
    assert_eq!(again.headers[SET_COOKIE], cookie, "two ways at once go on");
    let third = Visit::by(browser().post(&link).header(COOKIE, BROWSER)).await;
    assert_ne!(third.headers[SET_COOKIE], cookie);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_sites_page_presses_it() {
    let gateway = Gateway::start().await;
    let base = gateway.daemon.base_url.clone();
    let before = grants(&gateway);
    let address = link(&gateway, &gateway.app, &[("plugin", "plugin_a")]);
    for (name, value, expected) in [
        ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-site", 403),
        ("sec-fetch-site", "same-origin", 303),
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("origin", base.as_str(), 303),
    ] {
        let request = browser().post(address.clone()).header(name, value);
        let visit = Visit::by(request).await;
        assert_eq!(visit.status, expected, "{name}: {value}");
        if expected == 403 {
            visit.is_failure(403, "another_site");
            assert!(!visit.headers.contains_key(SET_COOKIE));
        }
    }
    assert_eq!(grants(&gateway), before);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_provider_is_asked_to_prompt_whoever_is_expected() {
    for (kind, prompt) in [
        ("google", "consent"),
        ("microsoft", "select_account"),
        ("generic", "consent"),
    ] {
        let gateway = Gateway::builder()
            .set("PLUGINS__PLUGIN_B__KIND", kind)
            .start()
            .await;
        for parameters in [
            &[("plugin", "plugin_b")][..],
            &[("plugin", "plugin_b"), ("login_hint", EVE)],
        ] {
            let begun = Visit::press(link(&gateway, &gateway.app, parameters)).await;
            let found = begun.parameter("prompt");
            assert_eq!(found.as_deref(), Some(prompt), "{kind} {parameters:?}");
        }
        gateway.stop().await;
    }
}
