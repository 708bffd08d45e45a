//! The table `portal_links`: links that sign in to the portal once.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::SubscriberId;
use mailgate_types::past::Past;
use mailgate_types::sign_in::SignedInBy;

/// A new row.
#[derive(Debug)]
pub struct NewLink<'a> {
    /// The digest of its token.
    pub digest: &'a [u8],
    /// The subscriber that it signs in.
    pub subscriber: SubscriberId,
    /// How it was issued.
    pub kind: SignedInBy,
    /// When it expires.
    pub expires_at: DateTime<Utc>,
}

/// Inserts a link; `false` if the subscriber already has `most` open ones of this kind.
pub async fn insert(
    connection: &mut PgConnection,
    link: &NewLink<'_>,
    now: DateTime<Utc>,
    most: i64,
) -> Result<bool, sqlx::Error> {
    let inserted = sqlx::query!(
        "INSERT INTO portal_links (digest, subscriber_id, kind, expires_at)
         SELECT $1, $2, $3, $4
         WHERE (SELECT count(*) FROM portal_links
                WHERE subscriber_id = $2 AND kind = $3 AND expires_at > $5 AND used_at IS NULL) < $6",
        link.digest,
        link.subscriber.0,
        link.kind.as_str(),
        link.expires_at,
        now,
        most,
    )
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// The subscriber of a link, and how the link was issued; `None` if it was used, has expired, or never existed.
pub async fn find_open(
    connection: &mut PgConnection,
    digests: &[Vec<u8>],
    now: DateTime<Utc>,
) -> Result<Option<(SubscriberId, SignedInBy)>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT subscriber_id, kind AS "kind: SignedInBy" FROM portal_links
           WHERE digest = ANY($1) AND expires_at > $2 AND used_at IS NULL"#,
        digests,
        now,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| (SubscriberId(row.subscriber_id), row.kind)))
}

/// The subscriber of a link, used or not.
pub async fn holder(
    connection: &mut PgConnection,
    digests: &[Vec<u8>],
) -> Result<Option<SubscriberId>, sqlx::Error> {
    let holder = sqlx::query_scalar!(
        "SELECT subscriber_id FROM portal_links WHERE digest = ANY($1)",
        digests,
    )
    .fetch_optional(connection)
    .await?;
    Ok(holder.map(SubscriberId))
}

/// Marks a link as used; `None` if it was used, has expired, or never existed.
pub async fn consume(
    connection: &mut PgConnection,
    digests: &[Vec<u8>],
    now: DateTime<Utc>,
) -> Result<Option<(SubscriberId, SignedInBy)>, sqlx::Error> {
    let row = sqlx::query!(
        r#"UPDATE portal_links SET used_at = $2
           WHERE digest = ANY($1) AND expires_at > $2 AND used_at IS NULL
           RETURNING subscriber_id, kind AS "kind: SignedInBy""#,
        digests,
        now,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| (SubscriberId(row.subscriber_id), row.kind)))
}

/// Revokes a subscriber's links.
pub async fn delete_of(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM portal_links WHERE subscriber_id = $1",
        subscriber.0
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes links that had expired by `past`, `limit` at most, and returns how many. Several replicas may do it at the same time.
pub async fn remove_lapsed(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM portal_links WHERE digest IN (
             SELECT digest FROM portal_links WHERE expires_at <= $1
             ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
         )",
        past.moment(),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}
