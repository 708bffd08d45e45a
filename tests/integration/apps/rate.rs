//! How often a key may call, and an address fail.

use std::time::{Duration, Instant};

use super::{Answer, Caller, anonymous, authenticate, message, send, session};
use crate::support::gateway::{Gateway, create_app};

/// Calls that are surely too many for a burst of 3 and one a second, however slow the machine.
const MANY: usize = 60;

async fn limited() -> Gateway {
    Gateway::builder()
        .set("LIMITS__REQUESTS_PER_SECOND", 1)
        .set("LIMITS__REQUESTS_BURST", 3)
        .start()
        .await
}

/// Asserts what a refused call is told.
fn is_refused(answer: &Answer) {
    assert_eq!(answer.problem(), (429, "rate_limited"));
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(answer.header("ratelimit-policy"), "\"key\";q=3;w=3");
    assert_eq!(answer.header("ratelimit"), "\"key\";r=0;t=3");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_key_has_its_own_rate() {
    let gateway = limited().await;
    let caller = Caller::owner(&gateway).await;
    let first = caller.get("/me").await;
    assert_eq!(first.header("ratelimit-policy"), "\"key\";q=3;w=3");
    assert_eq!(first.header("ratelimit"), "\"key\";r=2;t=1");
    assert!(!first.headers.contains_key("retry-after"));
    assert_eq!(first.status, 200);
    let mut refused = None;
    for _ in 0..MANY {
        let answer = caller.get("/apps").await;
        if answer.status != 200 {
            refused = Some(answer);
            break;
        }
    }
    is_refused(&refused.expect("one call is too many"));
    let another = Caller::another(&gateway, "Another").await;
    another.get("/me").await.success(200);
    // An app's key is another key than its subscriber's.
    let app = &gateway.app;
    let (key, pk) = (app.send_key.expose(), app.pushable_key.expose());
    let mut sent = 0;
    let refused = loop {
        let answer = send(&gateway, key, pk).await;
        if answer.status != 200 {
            break answer;
        }
        sent += 1;
        assert!(sent < MANY);
    };
    is_refused(&refused);
    assert!(sent >= 3, "{sent}");
    assert_eq!(gateway.sandbox.inbox.count(), sent);
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    let (key, pk) = (other.send_key.expose(), other.pushable_key.expose());
    let answer = send(&gateway, key, pk).await;
    assert_eq!(answer.status, 422, "it has no mailbox: {}", answer.body);
    assert_eq!(answer.header("ratelimit"), "\"key\";r=2;t=1");
    let anonymous = Answer::to(anonymous(&gateway, reqwest::Method::GET, "/me")).await;
    assert_eq!(anonymous.status, 401);
    assert!(!anonymous.headers.contains_key("ratelimit"));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_by_smtp_count_like_requests() {
    let gateway = limited().await;
    let app = &gateway.app;
    let (_, other) = create_app(&gateway.daemon, "Other").await;
    let mut client = session(&gateway, &app.slug, app.send_key.expose()).await;
    let mut sent = 0;
    let refused = loop {
        let reply = client.submit("bob@example.com", &message()).await;
        if !reply.starts_with("250 ") {
            break reply;
        }
        sent += 1;
        assert!(sent < MANY);
    };
    assert!(refused.starts_with("451 4.7.0"), "{refused}");
    assert!(sent >= 3, "{sent}");
    let (key, pk) = (app.send_key.expose(), app.pushable_key.expose());
    is_refused(&send(&gateway, key, pk).await);
    let mut client = session(&gateway, &other.slug, other.send_key.expose()).await;
    let reply = client.submit("bob@example.com", &message()).await;
    assert!(reply.starts_with("550 5.7.1 From address"), "{reply}");
    assert_eq!(gateway.sandbox.inbox.count(), sent);
}

/// What a slowed answer takes.
const HOLD: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread")]
async fn who_keeps_failing_is_slowed_down_at_both_doors() {
    let gateway = Gateway::builder()
        .set("LIMITS__AUTHENTICATION_FAILURES_PER_MINUTE", 2)
        .start()
        .await;
    let owner = Caller::owner(&gateway).await;
    let stranger = Caller {
        gateway: &gateway,
        secret: format!("sk_{}", "x".repeat(43)),
    };
    let wrong_key = format!("sek_{}", "x".repeat(43));
    for _ in 0..2 {
        assert_eq!(stranger.get("/me").await.status, 401);
    }
    let (by_secret, by_key, by_smtp, good) = tokio::join!(
        timed(async {
            assert_eq!(stranger.get("/apps").await.status, 401);
        }),
        timed(async {
            let answer = send(&gateway, &wrong_key, "pk_x").await;
            assert_eq!(answer.status, 401);
        }),
        timed(async {
            let (_, reply) = authenticate(&gateway, &gateway.app.slug, &wrong_key).await;
            assert!(reply.starts_with("535 "), "{reply}");
        }),
        async {
            // The owner isn't: of ten, some take less than a slowed answer does.
            let mut good = HOLD;
            for _ in 0..10 {
                let took = timed(async {
                    owner.get("/me").await.success(200);
                });
                good = good.min(took.await);
            }
            good
        },
    );
    for slowed in [by_secret, by_key, by_smtp] {
        assert!(slowed >= HOLD, "{slowed:?}");
    }
    assert!(good < HOLD, "{good:?}");
}

async fn timed(call: impl Future<Output = ()>) -> Duration {
    let begun = Instant::now();
    call.await;
    begun.elapsed()
}
