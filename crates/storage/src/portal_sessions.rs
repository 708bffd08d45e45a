//! The table `portal_sessions`: sessions signed in to the portal.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::subscribers::{Subscriber, subscriber_of};
use mailgate_types::ids::{PortalSessionId, SubscriberId};
use mailgate_types::past::Past;
use mailgate_types::sign_in::SignedInBy;

/// A new row.
#[derive(Debug)]
pub struct NewSession<'a> {
    /// Its id.
    pub id: PortalSessionId,
    /// The subscriber.
    pub subscriber: SubscriberId,
    /// The digest of its token.
    pub digest: &'a [u8],
    /// The credential that was presented.
    pub by: SignedInBy,
    /// Whether it must present the API secret where others needn't.
    pub needs_secret: bool,
    /// When it begins.
    pub now: DateTime<Utc>,
    /// When it ends at the latest.
    pub expires_at: DateTime<Utc>,
    /// The browser's words for itself.
    pub user_agent: &'a str,
    /// The client's address.
    pub address: &'a str,
}

/// A session as its subscriber sees it.
#[derive(Debug, Clone)]
pub struct PortalSession {
    /// Its id.
    pub id: PortalSessionId,
    /// The credential that was presented.
    pub by: SignedInBy,
    /// Whether it must present the API secret where others needn't: it began by a link to a new address.
    pub needs_secret: bool,
    /// When it began.
    pub created_at: DateTime<Utc>,
    /// When it was used last, to the minute.
    pub last_used_at: DateTime<Utc>,
    /// The browser's words for itself.
    pub user_agent: String,
    /// The client address at its start.
    pub address: String,
}

/// An open session, and its subscriber.
#[derive(Debug, Clone)]
pub struct FoundSession {
    /// The session.
    pub session: PortalSession,
    /// Its subscriber.
    pub subscriber: Subscriber,
}

/// Inserts a session.
pub async fn insert(
    connection: &mut PgConnection,
    session: &NewSession<'_>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO portal_sessions
             (id, subscriber_id, digest, started_by, created_at, last_used_at, expires_at, user_agent, address,
              needs_secret)
         VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9)",
        session.id.0,
        session.subscriber.0,
        session.digest,
        session.by.as_str(),
        session.now,
        session.expires_at,
        session.user_agent,
        session.address,
        session.needs_secret,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The session whose token has one of these digests, unless it has ended or wasn't used since `idle_since`.
pub async fn find(
    connection: &mut PgConnection,
    digests: &[Vec<u8>],
    now: DateTime<Utc>,
    idle_since: DateTime<Utc>,
) -> Result<Option<FoundSession>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT session.id AS session_id, session.started_by AS "by: SignedInBy",
                  session.created_at AS began_at, session.last_used_at, session.needs_secret,
                  session.user_agent, session.address, subscriber.id,
                  subscriber.label, subscriber.email, subscriber.api_secret_sealed,
                  subscriber.payprov_customer_id, subscriber.subscription_status,
                  subscriber.created_at, subscriber.credentials_since,
                  subscriber.suspended_at, subscriber.suspension_reason,
                  subscriber.deletion_due_at, subscriber.max_requests_per_second
           FROM portal_sessions AS session
                JOIN subscribers AS subscriber ON subscriber.id = session.subscriber_id
           WHERE session.digest = ANY($1) AND session.expires_at > $2 AND session.last_used_at > $3
                 AND subscriber.deletion_due_at IS NULL"#,
        digests,
        now,
        idle_since,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| FoundSession {
        session: PortalSession {
            id: PortalSessionId(row.session_id),
            by: row.by,
            needs_secret: row.needs_secret,
            created_at: row.began_at,
            last_used_at: row.last_used_at,
            user_agent: row.user_agent,
            address: row.address,
        },
        subscriber: subscriber_of!(row),
    }))
}

/// Records a use of a session.
pub async fn touch(
    connection: &mut PgConnection,
    id: PortalSessionId,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE portal_sessions SET last_used_at = $2 WHERE id = $1 AND last_used_at < $2",
        id.0,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// A subscriber's open sessions, the one used last first, `limit` at most.
pub async fn list(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    now: DateTime<Utc>,
    idle_since: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<PortalSession>, sqlx::Error> {
    sqlx::query_as!(
        PortalSession,
        r#"SELECT id, started_by AS "by: SignedInBy", needs_secret, created_at, last_used_at, user_agent, address
           FROM portal_sessions
           WHERE subscriber_id = $1 AND expires_at > $2 AND last_used_at > $3
           ORDER BY last_used_at DESC, id DESC LIMIT $4"#,
        subscriber.0,
        now,
        idle_since,
        limit,
    )
    .fetch_all(connection)
    .await
}

/// Ends one session of a subscriber's; `false` if it isn't there.
pub async fn delete(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    id: PortalSessionId,
) -> Result<bool, sqlx::Error> {
    let deleted = sqlx::query!(
        "DELETE FROM portal_sessions WHERE subscriber_id = $1 AND id = $2",
        subscriber.0,
        id.0,
    )
    .execute(connection)
    .await?;
    Ok(deleted.rows_affected() == 1)
}

/// Ends the session whose token has one of these digests, if there is one.
pub async fn delete_by_digest(
    connection: &mut PgConnection,
    digests: &[Vec<u8>],
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM portal_sessions WHERE digest = ANY($1)",
        digests
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Ends a subscriber's oldest sessions, so that `most` are left.
pub async fn delete_oldest(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    most: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM portal_sessions WHERE id IN (
             SELECT id FROM portal_sessions WHERE subscriber_id = $1
             ORDER BY id DESC OFFSET $2
         )",
        subscriber.0,
        most,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Ends all sessions of a subscriber except `kept`; returns how many.
pub async fn delete_others(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    kept: Option<PortalSessionId>,
) -> Result<u64, sqlx::Error> {
    let deleted = sqlx::query!(
        "DELETE FROM portal_sessions
         WHERE subscriber_id = $1 AND ($2::uuid IS NULL OR id <> $2)",
        subscriber.0,
        kept.map(|id| id.0),
    )
    .execute(connection)
    .await?;
    Ok(deleted.rows_affected())
}

/// Removes sessions that had expired by `past`, `limit` at most, and returns how many. Several replicas may do it at
/// the same time.
pub async fn remove_lapsed(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM portal_sessions WHERE id IN (
             SELECT id FROM portal_sessions WHERE expires_at <= $1
             ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
         )",
        past.moment(),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}
