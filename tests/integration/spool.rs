//! What becomes of a message between the gateway and its provider: retries, outcomes that stay
//! unknown, connections, and the log that tells of it.

mod connections;
mod outcomes;
mod partitions;
mod plans;
mod recovery;
mod retries;

use chrono::{DateTime, Utc};
use mailgate_types::clock::Clock;
use sqlx::Row;
use uuid::Uuid;

use crate::support::gateway::Gateway;

/// A deferred message as it lies in the spool.
struct Deferred {
    id: Uuid,
    attempts: i32,
    next_attempt_at: DateTime<Utc>,
}

/// The only message in the spool, if it waits for its next attempt.
async fn deferred(gateway: &Gateway) -> Option<Deferred> {
    sqlx::query("SELECT id, attempts, next_attempt_at FROM spool WHERE state = 'deferred'")
        .fetch_optional(&mut gateway.database().await)
        .await
        .unwrap()
        .map(|row| Deferred {
            id: row.get("id"),
            attempts: row.get("attempts"),
            next_attempt_at: row.get("next_attempt_at"),
        })
}

/// Moves the clock to the next attempt of the only message in the spool.
pub async fn advance_to_next_attempt(gateway: &Gateway) {
    let deferred = deferred(gateway).await.unwrap();
    advance_to(gateway, deferred.next_attempt_at);
}

fn advance_to(gateway: &Gateway, moment: DateTime<Utc>) {
    gateway.clock.advance(moment - gateway.clock.now());
}

/// Waits until nothing is in the spool any more.
async fn emptied(gateway: &Gateway) {
    gateway
        .eventually("the end of the message", async |gateway| {
            gateway.spooled().await == 0
        })
        .await;
}

/// The one log row: its status, and the error or nothing.
async fn logged_once(gateway: &Gateway) -> (String, String) {
    let mut logged = gateway.logged().await;
    assert_eq!(logged.len(), 1, "{logged:?}");
    let (status, error) = logged.remove(0);
    (status, error.unwrap_or_default())
}

/// Pieces of raw messages that are stored.
async fn chunks(gateway: &Gateway) -> Vec<Vec<u8>> {
    sqlx::query_scalar("SELECT content FROM spool_chunks ORDER BY spool_id, position")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap()
}
