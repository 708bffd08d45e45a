//! Visits that nobody has shown a key for: how many there may be, and what they leave behind.

use futures_util::stream::{self, StreamExt as _};
use serde_json::json;

use super::{Visit, browser, link, session, used_links};
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn an_address_and_an_apps_links_have_their_minute() {
    for (setting, code) in [
        ("LIMITS__CONNECT_VISITS_PER_MINUTE", 410),
        ("LIMITS__CONNECT_VISITS_PER_MINUTE_PER_APP", 410),
    ] {
        let gateway = Gateway::builder().set(setting, 3).start().await;
        let address = link(&gateway, &gateway.app, &[("plugin", "plugin_a")]);
        assert_eq!(Visit::to(address.clone()).await.status, 200);
        assert_eq!(Visit::press(address.clone()).await.status, 303);
        assert_eq!(Visit::to(address.clone()).await.status, 200);
        let refused = Visit::to(address.clone()).await;
        refused.is_failure(429, "rate_limited");
        let seconds: u32 = refused.headers["retry-after"]
            .to_str()
            .unwrap()
            .parse()
            .unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
        Visit::press(address).await.is_failure(429, "rate_limited");
        let callback = format!("{}/oauth/callback?state=x&code=y", gateway.daemon.base_url);
        let is_of_address = setting.ends_with("MINUTE");
        // Strangers keep nobody out to whom the app has given a session.
        let token = session(&gateway, &gateway.app, json!({})).await;
        let page = Visit::to(link(&gateway, &gateway.app, &[("session", &token)])).await;
        assert_eq!(page.status, if is_of_address { 429 } else { 200 });
        let expected = if is_of_address { 429 } else { code };
        assert_eq!(Visit::to(callback).await.status, expected);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn visits_store_nothing() {
    const VISITS: usize = 2_000;
    let gateway = Gateway::builder()
        .set("LIMITS__CONNECT_VISITS_PER_MINUTE", 1_000_000)
        .start()
        .await;
    let base = &gateway.daemon.base_url;
    let key = gateway.app.pushable_key.expose();
    let client = browser();
    let written = async || -> i64 {
        sqlx::query_scalar(
            "SELECT (SELECT count(*) FROM oauth_states) + (SELECT count(*) FROM used_links)
                  + (SELECT count(*) FROM audit_entries) + (SELECT count(*) FROM end_users)",
        )
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
    };
    let before = written().await;
    let visits = stream::iter(0..VISITS)
        .map(|number| {
            let connect = format!("{base}/connect/{key}?plugin=plugin_a&login_hint=x{number}");
            match number % 4 {
                0 => client.get(connect),
                1 => client.post(connect),
                2 => client.get(format!("{base}/oauth/callback?state={number}&code=x")),
                _ => client.get(format!("{base}/readyz")),
            }
            .send()
        })
        .buffer_unordered(16)
        .map(|answer| answer.unwrap().status().as_u16());
    let statuses: Vec<u16> = visits.collect().await;
    let is_expected = |status: &u16| matches!(status, 200 | 303 | 410);
    assert!(statuses.iter().all(is_expected), "{statuses:?}");
    assert_eq!(written().await, before);
    assert_eq!(used_links(&gateway).await, 0);
    gateway.stop().await;
}
