//! Makes deliveries ready: retries whose time has come, and those whose lease has expired without a result.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

/// Where a round begins; nothing earlier is expected: while a snapshot is held anywhere, the index keeps an entry for
/// every former delivery.
#[derive(Debug, Clone, Copy)]
pub struct From {
    /// Retries due from here on.
    pub due_at: DateTime<Utc>,
    /// Leases that expire from here on, by the database's clock; `None`: as `due_at`.
    pub lease: Option<DateTime<Utc>>,
}

/// The result of a round.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// How many due deliveries it found. Those that another process has locked are left to it.
    pub found: i64,
    /// Where the next round continues if this one has reached its limit.
    pub last: Option<DateTime<Utc>>,
    /// When it began, by the database's clock.
    pub at: DateTime<Utc>,
}

/// Makes up to `limit` due deliveries ready, earliest due first: retries by `now`, leases by the database's clock. They
/// are due from `now` on, so that each process finds them among the newly ready ones.
pub async fn make_ready(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    from: From,
    limit: i64,
) -> Result<Round, sqlx::Error> {
    // Nothing is locked while the index is read, which may take long; and no index fits the condition on the locked
    // rows, so that only these rows are read.
    sqlx::query_as!(
        Round,
        r#"WITH due AS MATERIALIZED (
               SELECT ctid, due_at FROM webhook_queue
               WHERE state <> 'ready' AND due_at >= least($3::timestamptz, $4::timestamptz)
                     AND due_at <= greatest($1, now())
                     AND due_at <= CASE state WHEN 'leased' THEN now() ELSE $1 END
               ORDER BY due_at LIMIT $2
           ), made AS (
               UPDATE webhook_queue SET state = 'ready', due_at = $1
               WHERE ctid = ANY (ARRAY(
                   SELECT ctid FROM webhook_queue
                   WHERE ctid = ANY (ARRAY(SELECT ctid FROM due))
                         AND due_at <= CASE state WHEN 'ready' THEN '-infinity' WHEN 'leased' THEN now()
                                                  ELSE $1 END
                   FOR UPDATE SKIP LOCKED
               ))
           )
           SELECT count(*) AS "found!", max(due_at) AS last, now() AS "at!" FROM due"#,
        now,
        limit,
        from.due_at,
        from.lease,
    )
    .fetch_one(connection)
    .await
}
