//! Puts a mailbox's messages behind the moment until which it has to wait.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::CredentialId;

/// Messages that one statement moves.
const MOST: i64 = 5_000;

/// When a mailbox may send again.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    /// Its first turn.
    pub from: DateTime<Utc>,
    /// Seconds between two.
    pub interval_seconds: f64,
    /// How long a message may wait from its first attempt on, in seconds.
    pub longest_seconds: f64,
}

/// Makes those of a mailbox's stored messages that are due before its next turn due one after the other from then on,
/// in their order. That is no attempt: nothing is logged.
pub async fn put_behind(
    connection: &mut PgConnection,
    credential: CredentialId,
    turns: Turns,
) -> Result<(), sqlx::Error> {
    // A message that has waited for the maximum time is due then, and told so.
    sqlx::query!(
        "WITH due AS MATERIALIZED (
             SELECT id, next_attempt_at, opened_at FROM spool
             WHERE credential_id = $1 AND state = 'deferred' AND next_attempt_at < $2
             ORDER BY next_attempt_at
             LIMIT $5
             FOR UPDATE SKIP LOCKED
         )
         UPDATE spool
         SET next_attempt_at = greatest($2, least($2 + make_interval(secs => nth * $3::float8),
                                                  due.opened_at + make_interval(secs => $4)))
         FROM (SELECT id, opened_at, row_number() OVER (ORDER BY next_attempt_at) AS nth FROM due) AS due
         WHERE spool.id = due.id",
        credential.0,
        turns.from,
        turns.interval_seconds,
        turns.longest_seconds,
        MOST,
    )
    .execute(connection)
    .await?;
    Ok(())
}
