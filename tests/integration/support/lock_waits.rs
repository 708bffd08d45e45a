//! Statements that wait for a lock.

use super::gateway::Gateway;
use super::patience;

/// Waits until so many statements with these words wait for a lock.
pub async fn until_waiting(gateway: &Gateway, words: &str, expected: i64) {
    patience::until("a wait", async || waiting(gateway, words).await >= expected).await;
}

/// Statements of the test's database with these words that wait for a lock.
pub async fn waiting(gateway: &Gateway, words: &str) -> i64 {
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'
                         AND strpos(query, $1) > 0";
    let mut database = gateway.database().await;
    let waiting = sqlx::query_scalar(waiting).bind(words);
    waiting.fetch_one(&mut database).await.unwrap()
}
