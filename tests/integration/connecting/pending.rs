//! Authorizations under way: a short `state` at the provider, and the rest in cookies of the browser that began.

use chrono::TimeDelta;
use mailgate_types::clock::Clock as _;
use mailgate_types::seal::SealKeys;
use mailgate_types::sealed_text;
use reqwest::header::{COOKIE, HeaderMap, SET_COOKIE};
use serde_json::json;
use url::Url;

use super::{
    BROWSER, Visit, active, browser, cookies_at, execute, link, session, until_callback, used_links,
};
use crate::support::gateway::{Gateway, MAILBOX, SEAL_KEY};

const OTHER: &str = "mailgate_browser=YW5vdGhlciBicm93c2VyLCB3aGljaCBkaWRuJ3QgYmU";

/// The cookies of authorizations that a response sets, or drops.
fn pending(headers: &HeaderMap) -> Vec<String> {
    let cookies = headers.get_all(SET_COOKIE).iter();
    let cookies = cookies.map(|cookie| cookie.to_str().unwrap().to_owned());
    cookies
        .filter(|cookie| cookie.starts_with("mailgate_pending_"))
        .collect()
}

/// What comes of an address with these cookies.
async fn open(url: &Url, cookies: &str) -> Visit {
    Visit::by(browser().get(url.clone()).header(COOKIE, cookies)).await
}

// supabase/auth#2340, casdoor/casdoor#2498: providers take a state of 250 to 1,024 characters.
#[tokio::test(flavor = "multi_thread")]
async fn the_state_is_short_whatever_the_link_says() {
    let gateway = Gateway::start().await;
    execute(
        &gateway,
        "UPDATE apps SET callback_url = 'https://app.example/'",
    )
    .await;
    let long = |length: usize| "\u{1F600}".repeat(length);
    let of_session = async |asked| session(&gateway, &gateway.app, asked).await;
    let small = of_session(json!({ "plugin": "plugin_a" })).await;
    let large = of_session(json!({
        "plugin": "plugin_a", "user_id": long(255), "login_hint": long(320),
        "callback_url": format!("https://app.example/{}", "a".repeat(2_000)),
    }))
    .await;
    let (user_id, hint) = (long(255), long(320));
    for parameters in [
        &[("plugin", "plugin_a")][..],
        &[("plugin", "plugin_b"), ("user_id", "u 1"), ("locale", "de")],
        &[
            ("plugin", "plugin_a"),
            ("login_hint", "ada@sandbox.example"),
        ],
        &[
            ("plugin", "plugin_a"),
            ("user_id", &user_id),
            ("login_hint", &hint),
        ],
        &[("plugin", "plugin_a"), ("session", &small)],
        &[
            ("plugin", "plugin_a"),
            ("session", &large),
            ("locale", "ja"),
        ],
    ] {
        let begun = Visit::press(link(&gateway, &gateway.app, parameters)).await;
        let state = begun.parameter("state").unwrap();
        assert!(state.len() <= 128, "{}: {state}", state.len());
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        assert!(state.bytes().all(is_plain), "{state}");
        let kept = pending(&begun.headers);
        assert!(!kept.is_empty());
        for cookie in &kept {
            let (pair, attributes) = cookie.split_once("; ").unwrap();
            assert!(pair.len() <= 4_096, "{}", pair.len());
            assert_eq!(attributes, "Path=/; Max-Age=600; HttpOnly; SameSite=Lax");
        }
        // It is whole: the end knows what the link said.
        let base = &gateway.daemon.base_url;
        let callback = format!("{base}/oauth/callback?state={state}&error=access_denied");
        let end = Visit::to(callback).await;
        assert_eq!(end.status, 302, "{}", end.body);
        if parameters.contains(&("session", large.as_str())) {
            assert!(
                end.location()
                    .as_str()
                    .starts_with("https://app.example/aaa")
            );
            assert_eq!(end.parameter("user_id"), Some(long(255)));
        }
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_tabs_go_their_ways_at_once_over_any_replica() {
    let gateway = Gateway::start().await;
    execute(
        &gateway,
        "UPDATE apps SET multilink = true, callback_url = 'https://app.example/'",
    )
    .await;
    let mut plugins = gateway.sandbox.plugins(&gateway.ca_file);
    plugins.remove("plugin_a");
    let replica = gateway.replica().plugins(plugins).start().await;
    let mut jar: Vec<String> = vec![BROWSER.to_owned()];
    let mut callbacks = Vec::new();
    for number in 0..4 {
        let hint = format!("tab-{number}@sandbox.example");
        let parameters = [("plugin", "plugin_b"), ("login_hint", hint.as_str())];
        let address = link(&gateway, &gateway.app, &parameters);
        let request = browser().post(address).header(COOKIE, jar.join("; "));
        let begun = Visit::by(request).await;
        let kept = pending(&begun.headers);
        assert_eq!(kept.len(), 1, "{kept:?}");
        jar.push(kept[0].split(';').next().unwrap().to_owned());
        callbacks.push(Visit::to(begun.location()).await.location());
    }
    assert_eq!(
        used_links(&gateway).await,
        0,
        "nothing is stored before the end"
    );
    let elsewhere: Url = replica.daemon.base_url.parse().unwrap();
    for (number, callback) in callbacks.iter().enumerate().rev() {
        let mut callback = callback.clone();
        if number % 2 == 0 {
            callback.set_port(elsewhere.port()).unwrap();
        }
        let end = open(&callback, &jar.join("; ")).await;
        assert_eq!(end.status, 302, "{number}: {}", end.body);
        assert_eq!(end.parameter("status").as_deref(), Some("success"));
        let dropped = pending(&end.headers);
        assert_eq!(dropped.len(), 1, "{dropped:?}");
        let (name, rest) = dropped[0].split_once('=').unwrap();
        assert_eq!(rest, "; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
        assert!(jar[number + 1].starts_with(name), "{name}");
        // With its cookie and without it.
        let again = open(&callback, &jar.join("; ")).await;
        again.is_failure(410, "link_expired");
        open(&callback, BROWSER)
            .await
            .is_failure(410, "link_expired");
    }
    assert_eq!(active(&gateway, &gateway.app).await.len(), 5);
    replica.stop().await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_parts_belong_together_and_to_their_browser() {
    let gateway = Gateway::start().await;
    let parameters = [
        ("plugin", "plugin_b"),
        ("login_hint", "eve@sandbox.example"),
    ];
    let callback = until_callback(&gateway, &gateway.app, &parameters).await;
    let another = until_callback(&gateway, &gateway.app, &parameters).await;
    let pair = |callback: &Url| {
        let cookies = cookies_at(callback.as_str());
        cookies.split_once("; ").unwrap().1.to_owned()
    };
    let (own, foreign) = (pair(&callback), pair(&another));
    let (name, value) = own.split_once('=').unwrap();
    let swapped = format!("{name}={}", foreign.split_once('=').unwrap().1);
    let cut = format!("{name}={}", &value[..value.len() - 1]);
    for (cookies, status, word) in [
        // The browser takes no cookies, or is another one, which somebody gave the rest.
        (String::new(), 403, "another_browser"),
        (own.clone(), 403, "another_browser"),
        (format!("{OTHER}; {own}"), 403, "another_browser"),
        (OTHER.to_owned(), 403, "another_browser"),
        // The rest is gone, or another one's.
        (BROWSER.to_owned(), 410, "link_expired"),
        (format!("{BROWSER}; {foreign}"), 410, "link_expired"),
        (format!("{BROWSER}; {swapped}"), 410, "link_expired"),
        (format!("{BROWSER}; {cut}"), 410, "link_expired"),
        (format!("{BROWSER}; {name}="), 410, "link_expired"),
        (
            format!("{BROWSER}; {}", own.replacen("_0=", "_1=", 1)),
            410,
            "link_expired",
        ),
    ] {
        let page = open(&callback, &cookies).await;
        assert_eq!(page.status, status, "{cookies}");
        page.is_failure(status, word);
    }
    assert_eq!(active(&gateway, &gateway.app).await, [MAILBOX]);
    assert_eq!(used_links(&gateway).await, 0, "nobody used it up");
    // The rest is no state, and a state made up by somebody else none of ours.
    let base = &gateway.daemon.base_url;
    for state in [value, "x", &"A".repeat(100)] {
        let address = format!("{base}/oauth/callback?state={state}&code=c")
            .parse()
            .unwrap();
        let page = open(&address, &format!("{BROWSER}; {own}")).await;
        page.is_failure(410, "link_expired");
    }
    // Too late, whichever cookies come along.
    gateway.clock.advance(TimeDelta::minutes(10));
    let page = open(&callback, &format!("{BROWSER}; {own}")).await;
    page.is_failure(410, "link_expired");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_keeps_a_bounded_number_of_them() {
    let gateway = Gateway::start().await;
    let mut jar: Vec<(String, String)> = Vec::new();
    let mut callbacks = Vec::new();
    for number in 0..20 {
        let user_id = "u".repeat(40 * (number % 7));
        let parameters = [("plugin", "plugin_b"), ("user_id", user_id.as_str())];
        let address = link(&gateway, &gateway.app, &parameters);
        let pairs = jar.iter().map(|(name, value)| format!("{name}={value}"));
        let mut cookies = vec![BROWSER.to_owned()];
        cookies.extend(pairs);
        let cookies = cookies.join("; ");
        assert!(cookies.len() < 7_200, "{}", cookies.len());
        let begun = Visit::by(browser().post(address).header(COOKIE, cookies)).await;
        for cookie in pending(&begun.headers) {
            let pair = cookie.split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            jar.retain(|(known, _)| known != name);
            if !value.is_empty() {
                jar.push((name.to_owned(), value.to_owned()));
            }
        }
        let state = begun.parameter("state").unwrap();
        let base = &gateway.daemon.base_url;
        let callback = format!("{base}/oauth/callback?error=access_denied&state={state}");
        callbacks.push(callback.parse::<Url>().unwrap());
        // Cookies are dropped by the age that their names say.
        gateway.clock.advance(TimeDelta::seconds(1));
    }
    assert!((4..=8).contains(&jar.len()), "{}", jar.len());
    let pairs = jar.iter().map(|(name, value)| format!("{name}={value}"));
    let pairs = pairs.collect::<Vec<_>>().join("; ");
    let cookies = format!("{BROWSER}; {pairs}");
    for callback in callbacks.iter().rev().take(4) {
        assert_eq!(open(callback, &cookies).await.status, 302);
    }
    let page = open(&callbacks[0], &cookies).await;
    page.is_failure(410, "link_expired");
    gateway.stop().await;
}

/// During an upgrade, users come back with states of the release before, which held all.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_of_the_release_before_is_taken() {
    let gateway = Gateway::start().await;
    let digest = {
        use base64::Engine as _;
        use sha2::Digest as _;
        let secret = BROWSER.split_once('=').unwrap().1;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(sha2::Sha256::digest(secret))
    };
    let base = &gateway.daemon.base_url;
    let state = |minutes| {
        let authorization = json!({
            "id": uuid::Uuid::new_v4(), "app": gateway.app.id.0,
            "pushable_key": gateway.app.pushable_key.expose(),
            "link": {
                "plugin": "plugin_b",
                "origin": { "Bare": { "user_id": null, "login_hint": null } },
            },
            "redirect_uri": format!("{base}/oauth/callback"), "code_verifier": "v",
            "browser": digest, "expires_at": gateway.clock.now() + TimeDelta::minutes(minutes),
        });
        let keys = SealKeys::parse([SEAL_KEY]).unwrap();
        let state = sealed_text::seal(&keys, "connect state", &authorization).unwrap();
        let address = format!("{base}/oauth/callback?error=access_denied&state={state}");
        address.parse::<Url>().unwrap()
    };
    let live = state(5);
    open(&live, OTHER).await.is_failure(403, "another_browser");
    open(&live, "").await.is_failure(403, "another_browser");
    assert_eq!(open(&live, BROWSER).await.status, 302);
    open(&live, BROWSER).await.is_failure(410, "link_expired");
    open(&state(0), BROWSER)
        .await
        .is_failure(410, "link_expired");
    gateway.stop().await;
}
