//! What a renewed API secret ends.

mod address;
mod mailed;
mod many;
mod minted;
mod overlapping;
mod under_way;

use crate::support::gateway::Gateway;
use crate::support::patience;

/// Waits until so many requests of the test's database wait for a lock, beside what the gateway's own work waits for.
async fn until_waiting(gateway: &Gateway, expected: i64) {
    patience::until("a wait", async || waiting(gateway).await >= expected).await;
}

/// Requests of the test's database that wait for a lock.
async fn waiting(gateway: &Gateway) -> i64 {
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let mut database = gateway.database().await;
    let waiting = sqlx::query_scalar(waiting).fetch_one(&mut database);
    waiting.await.unwrap()
}
