//! The table `replies`, and the logged messages that they answer.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::{CredentialId, LogId};
use mailgate_types::metadata::Metadata;

/// A logged message that may have been answered.
#[derive(Debug)]
pub struct Answered {
    /// Its Message-ID.
    pub message_id: String,
    /// Its id in the log.
    pub log: LogId,
    /// The sender's address.
    pub from_address: String,
    /// What its app has attached to it.
    pub metadata: Metadata,
}

/// The messages of a mailbox that have these Message-IDs.
pub async fn answered(
    connection: &mut PgConnection,
    credential: CredentialId,
    message_ids: &[String],
) -> Result<Vec<Answered>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT message_id AS "message_id!", id, from_address, metadata
           FROM email_logs
           WHERE credential_id = $1 AND message_id = ANY($2)"#,
        credential.0,
        message_ids,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Answered {
            message_id: row.message_id,
            log: LogId(row.id),
            from_address: row.from_address,
            metadata: Metadata::from_stored(row.metadata),
        })
        .collect())
}

/// Stores replies by their own Message-IDs, and returns those that are new.
pub async fn insert(
    connection: &mut PgConnection,
    credential: CredentialId,
    message_ids: &[String],
    now: DateTime<Utc>,
) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        "INSERT INTO replies (credential_id, message_id, seen_at)
         SELECT DISTINCT $1::uuid, message_id, $3::timestamptz FROM unnest($2::text[]) AS reply (message_id)
         ON CONFLICT DO NOTHING
         RETURNING message_id",
        credential.0,
        message_ids,
        now,
    )
    .fetch_all(connection)
    .await
}

/// Deletes up to `limit` replies that were stored before `before`; returns how many.
pub async fn forget(
    connection: &mut PgConnection,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let forgotten = sqlx::query!(
        "DELETE FROM replies WHERE (credential_id, message_id) IN (
             SELECT credential_id, message_id FROM replies
             WHERE seen_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
         )",
        before,
        limit,
    )
    .execute(connection)
    .await?;
    Ok(forgotten.rows_affected())
}
