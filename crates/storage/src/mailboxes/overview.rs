//! All mailboxes of the gateway as its operator sees them, with their known problems.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::{AppId, CredentialId};
use mailgate_types::plugin::Plugin;

/// Messages of the queue that are counted at most.
const COUNTED: i64 = 100_000;

/// A mailbox.
#[derive(Debug, Clone)]
pub struct MailboxOverview {
    /// Its id.
    pub id: CredentialId,
    /// The app that it is connected to.
    pub app: AppId,
    /// The app's slug.
    pub slug: String,
    /// Its address.
    pub email: String,
    /// Its provider.
    pub plugin: Plugin,
    /// Whether it is connected.
    pub is_active: bool,
    /// Why it was disconnected.
    pub disconnect_reason: Option<String>,
    /// When it was disconnected.
    pub disconnected_at: Option<DateTime<Utc>>,
    /// When it was connected.
    pub connected_at: DateTime<Utc>,
    /// When it last sent, to within about an hour.
    pub last_sent_at: Option<DateTime<Utc>>,
    /// The provider ended its grant.
    pub is_refused: bool,
    /// It has reached the provider's limit, until then.
    pub parked_until: Option<DateTime<Utc>>,
    /// Its token has expired, and its refresh is overdue or has just failed.
    pub is_stale: bool,
    /// Messages that wait after a failed attempt.
    pub failed_messages: i64,
}

/// Up to `limit` mailboxes, oldest first; with `failing`, only those in trouble at `now`.
pub async fn overview(
    connection: &mut PgConnection,
    failing: bool,
    now: DateTime<Utc>,
    limit: i64,
    offset: i64,
) -> Result<Vec<MailboxOverview>, sqlx::Error> {
    // A failed refresh of an unused token is postponed by an hour.
    sqlx::query_as!(
        MailboxOverview,
        r#"WITH failed AS MATERIALIZED (
               SELECT credential_id, count(*) AS messages
               FROM (SELECT credential_id FROM spool
                     WHERE state = 'deferred' AND attempts > 0
                     ORDER BY next_attempt_at LIMIT $5) AS waiting
               GROUP BY credential_id
           ), judged AS (
               SELECT mailboxes.*, coalesce(failed.messages, 0) AS failed_messages,
                      status <> 'active'
                          AND coalesce(disconnect_reason, '') NOT IN ('removed', 'replaced') AS is_refused,
                      status = 'active' AND coalesce(parked_until > $2, false) AS is_parked,
                      status = 'active' AND coalesce(access_token_expires_at < $2, true)
                          AND coalesce(refresh_due_at <= $2 + interval '1 hour', false) AS is_stale
               FROM mailboxes LEFT JOIN failed ON failed.credential_id = mailboxes.id
           )
           SELECT judged.id, app_id AS app, slug, email, plugin AS "plugin: Plugin",
                  status = 'active' AS "is_active!", disconnect_reason,
                  disconnected_at, connected_at, last_sent_at, is_refused AS "is_refused!",
                  CASE WHEN is_parked THEN parked_until END AS parked_until,
                  is_stale AS "is_stale!", failed_messages AS "failed_messages!"
           FROM judged JOIN apps ON apps.id = app_id
           WHERE NOT $1 OR is_refused OR is_parked OR is_stale OR failed_messages > 0
           ORDER BY judged.id LIMIT $3 OFFSET $4"#,
        failing,
        now,
        limit,
        offset,
        COUNTED,
    )
    .fetch_all(connection)
    .await
}
