//! The database, which nobody without a key may keep busy.

use std::time::Duration;

use super::raw::Raw;
use crate::support::caller::Caller;
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn readyz_answers_from_the_last_look() {
    let gateway = Gateway::start().await;
    let ask = async || {
        let mut client = Raw::to(&gateway).await;
        client.begin("GET", "/readyz", "").await;
        client.answer().await.status
    };
    assert_eq!(ask().await, 200);
    // Nobody gets a connection from here on: whoever asked the database would wait for ever.
    let mut taken = Vec::new();
    while let Ok(Ok(connection)) =
        tokio::time::timeout(Duration::from_millis(500), gateway.daemon.pool.acquire()).await
    {
        taken.push(connection);
    }
    let asked = futures_util::future::join_all((0..200).map(|_| ask())).await;
    assert!(asked.iter().all(|status| matches!(status, 200 | 503)));
    gateway
        .eventually("a look that finds the pool used up", async |_| {
            ask().await == 503
        })
        .await;
    drop(taken);
    gateway
        .eventually("a database that answers", async |_| ask().await == 200)
        .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_secrets_wait_before_they_reach_the_database() {
    let gateway = Gateway::builder()
        .set("LIMITS__AUTHENTICATION_FAILURES_PER_MINUTE", 1)
        .start()
        .await;
    let caller = Caller::owner(&gateway).await;
    // A key that has opened something is not held back with its neighbours.
    caller.get("/me").await.success(200);
    let wrong = async |digit: char| {
        let mut client = Raw::to(&gateway).await;
        let secret: String = std::iter::repeat_n(digit, 43).collect();
        let fields = format!("X-Api-Secret: sk_{secret}\r\n");
        client.begin("GET", "/me", &fields).await;
        client
    };
    for digit in ['1', '2'] {
        let answered = wrong(digit).await.answer().await;
        assert_eq!(answered.problem(), (401, "invalid_api_secret"));
    }
    // Many more, all of whom wait; the pool has eight connections.
    let mut waiting = Vec::new();
    for _ in 0..100 {
        waiting.push(wrong('3').await);
    }
    for _ in 0..20 {
        caller.get("/me").await.success(200);
    }
    for client in &mut waiting {
        assert_eq!(client.answer().await.problem(), (401, "invalid_api_secret"));
    }
    gateway.stop().await;
}
