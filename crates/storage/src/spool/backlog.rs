//! The size of the spool, for the metrics. Each part uses an index and reads a bounded number of its entries.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::LogId;

/// The waiting messages.
#[derive(Debug, Clone, Copy)]
pub struct Backlog {
    /// Messages being submitted, 100,000 at most.
    pub open: u32,
    /// Messages waiting for their next attempt; with those below 100,000 at most, those due first.
    pub deferred: u32,
    /// Scheduled messages.
    pub scheduled: u32,
    /// The oldest message.
    pub oldest: Option<LogId>,
    /// When the longest overdue attempt was due.
    pub due_longest: Option<DateTime<Utc>>,
}

/// Measures the spool.
pub async fn measure(connection: &mut PgConnection) -> Result<Backlog, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT (SELECT count(*) FROM (
                      SELECT FROM spool WHERE state = 'open' LIMIT 100000
                  ) AS sample) AS "open!",
                  waiting.deferred AS "deferred!", waiting.scheduled AS "scheduled!",
                  (SELECT id FROM spool ORDER BY id LIMIT 1) AS oldest,
                  (SELECT min(next_attempt_at) FROM spool WHERE state = 'deferred') AS due_longest
           FROM (SELECT count(*) FILTER (WHERE NOT is_scheduled) AS deferred,
                        count(*) FILTER (WHERE is_scheduled) AS scheduled
                 FROM (SELECT send_at IS NOT NULL AND NOT is_logged AS is_scheduled FROM spool
                       WHERE state = 'deferred' AND next_attempt_at > '-infinity'
                       ORDER BY next_attempt_at LIMIT 100000) AS sample) AS waiting"#,
    )
    .fetch_one(connection)
    .await?;
    Ok(Backlog {
        open: u32::try_from(row.open).unwrap_or(u32::MAX),
        deferred: u32::try_from(row.deferred).unwrap_or(u32::MAX),
        scheduled: u32::try_from(row.scheduled).unwrap_or(u32::MAX),
        oldest: row.oldest.map(LogId),
        due_longest: row.due_longest,
    })
}
