//! By the API secret, by a link, and not at all.

use std::time::Instant;

use reqwest::Method;
use serde_json::Value;

use super::visitor::{Visitor, answer, api_secret};
use crate::support::gateway::Gateway;

#[tokio::test]
async fn the_api_secret_signs_in_and_sign_out_ends_it() {
    let gateway = Gateway::start().await;
    let mut visitor = Visitor::new(&gateway.daemon.base_url);
    let front = visitor.get("/").await;
    assert_eq!((front.status, front.location()), (303, "/portal"));
    let page = visitor.get("/portal/").await;
    assert_eq!((page.status, page.location()), (303, "/portal"));
    let page = visitor.sign_in(&"x".repeat(70_000)).await;
    assert_eq!(page.status, 413, "{}", page.text);
    let page = visitor.get("/portal/messages?status=sent").await;
    assert_eq!(page.status, 303);
    assert_eq!(
        page.location(),
        "/portal/sign-in?next=%2Fportal%2Fmessages%3Fstatus%3Dsent"
    );
    let form = visitor.get(page.location()).await;
    assert!(
        form.text
            .contains(r#"value="/portal/messages?status=sent""#),
        "{}",
        form.text
    );
    let secret = api_secret(&gateway).await;
    let page = visitor.sign_in(&secret).await;
    assert_eq!((page.status, page.location()), (303, "/portal"));
    let cookie = page.header("set-cookie");
    for part in ["mailgate=mgs_", "HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "by http: {cookie}");
    let page = visitor.get("/portal").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("cache-control"), "no-store");
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"));
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert!(!page.header("x-request-id").is_empty());
    let page = visitor.post("/portal/sign-out", &[]).await;
    assert_eq!((page.status, page.location()), (303, "/portal/sign-in"));
    assert_eq!(
        visitor.get("/portal").await.status,
        303,
        "the session has ended"
    );
    let trail: Vec<(String, Option<String>)> = sqlx::query_as(
        "SELECT action, address FROM audit_entries WHERE action LIKE 'portal.%' ORDER BY id",
    )
    .fetch_all(&mut gateway.database().await)
    .await
    .unwrap();
    let here = Some("127.0.0.1".to_owned());
    let expected = ["portal.signed_in", "portal.signed_out"];
    assert_eq!(
        trail,
        expected.map(|action| (action.to_owned(), here.clone()))
    );
    gateway.stop().await;
}

#[tokio::test]
async fn wrong_secrets_take_their_time() {
    let limit = Gateway::builder().set("LIMITS__AUTHENTICATION_FAILURES_PER_MINUTE", 2);
    let gateway = limit.start().await;
    let mut visitor = Visitor::new(&gateway.daemon.base_url);
    for wrong in ["x", &format!("sk_{}", "a".repeat(43))] {
        let page = visitor.sign_in(wrong).await;
        assert_eq!(page.status, 401);
        assert!(page.text.contains("valid"), "{}", page.text);
        assert!(!page.text.contains(wrong) || wrong == "x");
    }
    let begun = Instant::now();
    assert_eq!(visitor.sign_in("x").await.status, 401);
    assert!(begun.elapsed().as_secs() >= 3, "{:?}", begun.elapsed());
    gateway.stop().await;
}

#[tokio::test]
async fn nobody_is_led_elsewhere() {
    let gateway = Gateway::start().await;
    let secret = api_secret(&gateway).await;
    let visitor = Visitor::new(&gateway.daemon.base_url);
    for (next, expected) in [
        ("/portal/settings", "/portal/settings"),
        ("//evil.example", "/portal"),
        ("https://evil.example/portal/", "/portal"),
        ("/connect/x", "/portal"),
        ("/portal/%2e%2e/evil", "/portal"),
    ] {
        let fields = [("api_secret", secret.as_str()), ("next", next)];
        let page = visitor.post("/portal/sign-in", &fields).await;
        assert_eq!((page.status, page.location()), (303, expected));
    }
    gateway.stop().await;
}

/// Mints an address, and returns its path.
async fn mint(gateway: &Gateway) -> String {
    let response = gateway
        .http
        .post(format!("{}/portal/sessions", gateway.daemon.base_url))
        .header("x-api-secret", api_secret(gateway).await)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 201);
    let minted: Value = response.json().await.unwrap();
    let url = minted["url"].as_str().unwrap();
    let path = url.strip_prefix(&gateway.daemon.base_url).unwrap();
    assert!(path.starts_with("/portal/sign-in/mgl_"), "{url}");
    path.to_owned()
}

#[tokio::test]
async fn a_link_signs_in_once_and_by_its_button_alone() {
    let gateway = Gateway::start().await;
    let path = mint(&gateway).await;
    let mut visitor = Visitor::new(&gateway.daemon.base_url);
    for _ in 0..3 {
        let page = visitor.get(&path).await;
        assert_eq!(page.status, 200, "opening it changes nothing");
        assert!(page.headers.get("set-cookie").is_none());
    }
    let page = visitor.post(&path, &[]).await;
    assert_eq!((page.status, page.location()), (303, "/portal"));
    visitor.keep_cookie(&page);
    assert_eq!(visitor.get("/portal").await.status, 200);
    let unknown = format!("/portal/sign-in/mgl_{}", "0".repeat(43));
    for path in [path.as_str(), &unknown, "/portal/sign-in/x"] {
        for page in [visitor.get(path).await, visitor.post(path, &[]).await] {
            assert_eq!(page.status, 410);
            assert!(page.text.contains("Sign in again"), "{}", page.text);
        }
    }
    let late = mint(&gateway).await;
    gateway.clock.advance(chrono::TimeDelta::minutes(5));
    assert_eq!(visitor.post(&late, &[]).await.status, 410);
    gateway.stop().await;
}

#[tokio::test]
async fn links_are_few() {
    let gateway = Gateway::start().await;
    for _ in 0..20 {
        mint(&gateway).await;
    }
    let refused = gateway
        .http
        .post(format!("{}/portal/sessions", gateway.daemon.base_url))
        .header("x-api-secret", api_secret(&gateway).await)
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), 429);
    gateway.clock.advance(chrono::TimeDelta::minutes(5));
    mint(&gateway).await;
    gateway.stop().await;
}

#[tokio::test]
async fn other_sites_pages_change_nothing() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        for path in ["/portal/sign-out", "/portal/settings", "/portal/sign-in"] {
            let request = visitor.request(Method::POST, path).header(name, value);
            let page =
                answer(request.form(&[("label", "Eve"), ("email", "eve@example.com")])).await;
            assert_eq!(page.status, 403, "{path}");
        }
    }
    assert_eq!(visitor.get("/portal").await.status, 200);
    gateway.stop().await;
}

#[tokio::test]
async fn without_a_session_nothing_is_sent_anywhere() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::new(&gateway.daemon.base_url);
    let page = visitor.post("/portal/settings", &[("label", "Eve")]).await;
    assert_eq!(page.status, 401);
    let part = visitor.request(Method::GET, "/portal/messages");
    let part = answer(part.header("hx-request", "true")).await;
    assert_eq!(part.status, 401);
    assert_eq!(
        part.header("hx-redirect"),
        "/portal/sign-in?next=%2Fportal%2Fmessages"
    );
    gateway.stop().await;
}

#[tokio::test]
async fn a_gateway_may_have_no_portal() {
    let gateway = Gateway::builder()
        .set("PORTAL__ENABLED", false)
        .start()
        .await;
    let visitor = Visitor::new(&gateway.daemon.base_url);
    assert_eq!(visitor.get("/").await.status, 200);
    assert_eq!(visitor.get("/portal").await.status, 404);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_mint_links_at_once_no_more_get_one_than_may() {
    let gateway = Gateway::start().await;
    let other = gateway.replica().start().await;
    let secret = api_secret(&gateway).await;
    let mints = (0..50).map(|number| {
        let at = if number % 2 == 0 { &gateway } else { &other };
        let url = format!("{}/portal/sessions", at.daemon.base_url);
        let minted = at.http.post(url).header("x-api-secret", &secret).send();
        async { minted.await.unwrap().status().as_u16() }
    });
    let statuses = futures_util::future::join_all(mints).await;
    let minted = statuses.iter().filter(|status| **status == 201).count();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert_eq!((minted, refused), (20, 30));
    other.stop().await;
    gateway.stop().await;
}
