//! How long a session lasts, and where it holds.

use chrono::TimeDelta;

use super::visitor::{Visitor, api_secret};
use crate::support::gateway::Gateway;

#[tokio::test]
async fn a_session_ends_unused_after_twelve_hours_and_anyhow_after_a_week() {
    let gateway = Gateway::start().await;
    let visitor = Visitor::signed_in(&gateway).await;
    gateway.clock.advance(TimeDelta::hours(12));
    assert_eq!(visitor.get("/portal").await.status, 303);
    let visitor = Visitor::signed_in(&gateway).await;
    for _ in 0..16 {
        gateway.clock.advance(TimeDelta::hours(10));
        assert_eq!(visitor.get("/portal").await.status, 200);
    }
    gateway.clock.advance(TimeDelta::hours(8));
    assert_eq!(visitor.get("/portal").await.status, 303);
    gateway.stop().await;
}

#[tokio::test]
async fn replicas_share_sessions() {
    let gateway = Gateway::start().await;
    let other = gateway.replica().start().await;
    let here = Visitor::signed_in(&gateway).await;
    let there = here.at(&other.daemon.base_url);
    assert_eq!(there.get("/portal").await.status, 200);
    assert_eq!(there.post("/portal/sign-out", &[]).await.status, 303);
    assert_eq!(here.get("/portal").await.status, 303);
    other.stop().await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_renewed_api_secret_ends_the_others() {
    let gateway = Gateway::start().await;
    let (one, other) = (
        Visitor::signed_in(&gateway).await,
        Visitor::signed_in(&gateway).await,
    );
    let path = "/portal/settings/api-secret";
    let wrong = [("api_secret", "sk_x")];
    for action in ["reveal", "renew"] {
        let page = one.post(&format!("{path}/{action}"), &wrong).await;
        assert_eq!(page.status, 403);
    }
    let secret = api_secret(&gateway).await;
    let proof = [("api_secret", secret.as_str())];
    let page = one.post(&format!("{path}/reveal"), &proof).await;
    assert!(page.status == 200 && page.text.contains(&secret));
    // Without saying which one is to be renewed, none is.
    let page = one.post(&format!("{path}/renew"), &proof).await;
    assert_eq!(page.location(), "/portal/settings?done=renewed-before");
    assert_eq!(api_secret(&gateway).await, secret);
    let last = one.get(&format!("{path}/renew")).await.field("last");
    let fields = [("api_secret", secret.as_str()), ("last", &last)];
    let page = one.post(&format!("{path}/renew"), &fields).await;
    assert_eq!(page.status, 200);
    let new = api_secret(&gateway).await;
    assert!(new != secret && page.text.contains(&new));
    assert_eq!(one.get("/portal").await.status, 200);
    assert_eq!(other.get("/portal").await.status, 303);
    let settings = one.get("/portal/settings").await.text;
    for words in [
        "API secret rotated",
        "api_secret.renewed",
        "API secret revealed",
        "api_secret.revealed",
        "127.0.0.1",
    ] {
        assert!(settings.contains(words), "{settings}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn others_are_ended_one_by_one_or_all() {
    let gateway = Gateway::start().await;
    let mut visitors = Vec::new();
    for _ in 0..4 {
        visitors.push(Visitor::signed_in(&gateway).await);
    }
    let settings = visitors[0].get("/portal/settings").await.text;
    let action = settings.split("action=\"").find(|it| it.contains("/end\""));
    let path = action.unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(visitors[0].post(&path, &[]).await.status, 303);
    assert_eq!(visitors[0].post(&path, &[]).await.status, 404, "it is gone");
    let mut open = 0;
    for visitor in &visitors {
        open += u32::from(visitor.get("/portal").await.status == 200);
    }
    assert_eq!(open, 3);
    let path = "/portal/settings/sessions/end-others";
    assert_eq!(visitors[0].post(path, &[]).await.status, 303);
    for (index, visitor) in visitors.iter().enumerate() {
        let expected = if index == 0 { 200 } else { 303 };
        assert_eq!(visitor.get("/portal").await.status, expected);
    }
    gateway.stop().await;
}

#[tokio::test]
async fn a_subscriber_has_fifty_sessions_and_a_browser_one() {
    let gateway = Gateway::start().await;
    let count = async || {
        sqlx::query_scalar::<_, i64>("SELECT count(*) FROM portal_sessions")
            .fetch_one(&mut gateway.database().await)
            .await
            .unwrap()
    };
    let secret = api_secret(&gateway).await;
    let mut first = Visitor::signed_in(&gateway).await;
    for _ in 0..3 {
        assert_eq!(first.sign_in(&secret).await.status, 303);
    }
    assert_eq!(
        count().await,
        1,
        "each sign-in ends the browser's former session"
    );
    let mut last = None;
    for _ in 0..50 {
        gateway.clock.advance(TimeDelta::seconds(1));
        last = Some(Visitor::signed_in(&gateway).await);
    }
    assert_eq!(count().await, 50);
    assert_eq!(
        first.get("/portal").await.status,
        303,
        "the oldest has ended"
    );
    assert_eq!(last.unwrap().get("/portal").await.status, 200);
    gateway.stop().await;
}

#[tokio::test]
async fn the_portal_counts_towards_the_subscribers_limit() {
    let gateway = Gateway::builder()
        .set("LIMITS__REQUESTS_PER_SECOND", 1)
        .set("LIMITS__REQUESTS_BURST", 3)
        .start()
        .await;
    let visitor = Visitor::signed_in(&gateway).await;
    let pages = (0..60).map(|_| visitor.get("/portal/settings"));
    let pages = futures_util::future::join_all(pages).await;
    assert!(pages.iter().any(|page| page.status == 200));
    let refused = pages.iter().find(|page| page.status == 429).unwrap();
    assert!(
        refused.text.contains("Too many requests"),
        "{}",
        refused.text
    );
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
    gateway.stop().await;
}
