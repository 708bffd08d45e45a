//! Requests that are given up while the database is asked.

use std::net::{IpAddr, Ipv4Addr};

use crate::support::gateway::Gateway;

/// The backend that waits for the table to look a send key up.
async fn waiting(gateway: &Gateway) -> Option<i32> {
    sqlx::query_scalar(
        "SELECT pid FROM pg_stat_activity
         WHERE wait_event_type = 'Lock' AND query LIKE '%send_key_digest%' LIMIT 1",
    )
    .fetch_optional(&mut gateway.database().await)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_takes_no_connection_along() {
    let gateway = Gateway::start().await;
    let accounts = &gateway.daemon.accounts;
    let address = Some(IpAddr::from(Ipv4Addr::LOCALHOST));
    let key = accounts.present(gateway.app.send_key.expose(), address);
    let key = key.unwrap();
    let mut backends = Vec::new();
    for _ in 0..4 {
        let mut other = gateway.database().await;
        let mut lock = sqlx::Connection::begin(&mut other).await.unwrap();
        sqlx::query("LOCK TABLE apps IN ACCESS EXCLUSIVE MODE")
            .execute(&mut *lock)
            .await
            .unwrap();
        // As the handler of a stream that its client resets.
        tokio::select! {
            found = accounts.caller(&key) => panic!("{:?}", found.is_ok()),
            () = gateway.eventually("the wait", async |gateway| {
                waiting(gateway).await.is_some()
            }) => {}
        }
        backends.push(waiting(&gateway).await);
        lock.rollback().await.unwrap();
        assert!(accounts.caller(&key).await.is_ok());
    }
    backends.dedup();
    assert_eq!(backends.len(), 1, "{backends:?}");
    gateway.stop().await;
}
