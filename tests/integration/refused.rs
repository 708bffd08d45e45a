//! Values that the database can't hold: each has a bound at the door, and what it refuses all the same delays
//! and stops nobody.

mod doors;
mod journal;
mod later;

use sqlx::{AssertSqlSafe, Executor};

use crate::support::gateway::Gateway;

/// Letters that no compression shortens: 998 of them take 2,994 bytes, more than an index row holds.
fn cjk(letters: u32) -> String {
    let mut state = 7_u32;
    (0..letters)
        .filter_map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from_u32(0x4e00 + (state >> 16) % 20_000)
        })
        .collect()
}

/// Changes the tables, so that they refuse what they would take.
async fn alter(gateway: &Gateway, statement: &str) {
    gateway
        .database()
        .await
        .execute(AssertSqlSafe(statement.to_owned()))
        .await
        .unwrap();
}

/// The log as `(subject, status, error_message)`, oldest first.
async fn log(gateway: &Gateway) -> Vec<(String, String, Option<String>)> {
    sqlx::query_as("SELECT subject, status, error_message FROM email_logs ORDER BY id")
        .fetch_all(&mut gateway.database().await)
        .await
        .unwrap()
}

/// The bodies of an event's webhooks.
async fn told(gateway: &Gateway, event: &str) -> Vec<serde_json::Value> {
    let bodies: Vec<String> =
        sqlx::query_scalar("SELECT body FROM webhook_messages WHERE event = $1 ORDER BY id")
            .bind(event)
            .fetch_all(&mut gateway.database().await)
            .await
            .unwrap();
    let bodies = bodies
        .iter()
        .map(|body| serde_json::from_str(body).unwrap());
    bodies.collect()
}

/// Somebody listens to everything, at an address that nobody answers.
async fn listen(gateway: &Gateway) {
    alter(
        gateway,
        "UPDATE apps SET webhook_url = 'https://127.0.0.1:9/'",
    )
    .await;
}
