//! Candidates for a search by recipient, Message-ID or mailbox: ids in an id range, newest first. A partition without such an index, created by
//! the previous release, is read by another index.

use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::ids::{CredentialId, LogId, SubscriberId};

/// Ids from the first one up to, but excluding, the second one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdRange {
    /// The lowest.
    pub from: Uuid,
    /// The end, exclusive.
    pub to: Uuid,
}

fn log_ids(ids: Vec<Uuid>) -> Vec<LogId> {
    ids.into_iter().map(LogId).collect()
}

/// Up to `limit` rows of a subscriber that may be addressed to `recipient`, in lower case: other addresses may have
/// the same key.
pub async fn by_recipient(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    recipient: &str,
    range: IdRange,
    limit: i64,
) -> Result<Vec<LogId>, sqlx::Error> {
    let mut ids = sqlx::query_scalar!(
        "SELECT id FROM email_logs
         WHERE subscriber_id = $1
               AND recipient_key(first_recipient(to_address)) = recipient_key($2)
               AND id >= $3 AND id < $4
         ORDER BY id DESC LIMIT $5",
        subscriber.0,
        recipient,
        range.from,
        range.to,
        limit,
    )
    .fetch_all(&mut *connection)
    .await?;
    let further = sqlx::query_scalar!(
        "SELECT log_id FROM email_recipients
         WHERE subscriber_id = $1 AND recipient = recipient_key($2)
               AND log_id >= $3 AND log_id < $4
         ORDER BY log_id DESC LIMIT $5",
        subscriber.0,
        recipient,
        range.from,
        range.to,
        limit,
    )
    .fetch_all(connection)
    .await?;
    ids.extend(further);
    // Both are the newest of their kind, so the newest of both are the newest of all.
    ids.sort_unstable_by(|one, other| other.cmp(one));
    ids.dedup();
    ids.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(log_ids(ids))
}

/// Up to `limit` rows of a subscriber with one of these Message-IDs, found in all partitions: with a range in it, the
/// plan would read the whole range, since it is made before the range is known.
pub async fn by_message(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    message_ids: &[String],
    range: IdRange,
    limit: i64,
) -> Result<Vec<LogId>, sqlx::Error> {
    let ids = sqlx::query_scalar!(
        r#"WITH found AS MATERIALIZED (
               SELECT id FROM email_logs WHERE message_id = ANY($2) AND subscriber_id = $1
           )
           SELECT id AS "id!" FROM found WHERE id >= $3 AND id < $4 ORDER BY id DESC LIMIT $5"#,
        subscriber.0,
        message_ids,
        range.from,
        range.to,
        limit,
    )
    .fetch_all(connection)
    .await?;
    Ok(log_ids(ids))
}

/// As [`by_message`], for a range so small that reading it is cheap: for partitions without the index.
pub async fn by_message_within(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    message_ids: &[String],
    range: IdRange,
    limit: i64,
) -> Result<Vec<LogId>, sqlx::Error> {
    let ids = sqlx::query_scalar!(
        r#"WITH found AS MATERIALIZED (
               SELECT id FROM email_logs
               WHERE message_id = ANY($2) AND subscriber_id = $1 AND id >= $3 AND id < $4
           )
           SELECT id AS "id!" FROM found ORDER BY id DESC LIMIT $5"#,
        subscriber.0,
        message_ids,
        range.from,
        range.to,
        limit,
    )
    .fetch_all(connection)
    .await?;
    Ok(log_ids(ids))
}

/// Up to `limit` rows of these mailboxes.
pub async fn by_credentials(
    connection: &mut PgConnection,
    credentials: &[CredentialId],
    range: IdRange,
    limit: i64,
) -> Result<Vec<LogId>, sqlx::Error> {
    let credentials: Vec<Uuid> = credentials.iter().map(|id| id.0).collect();
    let ids = sqlx::query_scalar!(
        "SELECT found.id
         FROM unnest($1::uuid[]) AS mailbox (id)
              CROSS JOIN LATERAL (
                  SELECT id FROM email_logs
                  WHERE credential_id = mailbox.id AND id >= $2 AND id < $3
                  ORDER BY id DESC LIMIT $4
              ) AS found
         ORDER BY found.id DESC LIMIT $4",
        &credentials,
        range.from,
        range.to,
        limit,
    )
    .fetch_all(connection)
    .await?;
    Ok(log_ids(ids))
}
