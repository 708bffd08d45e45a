//! The tables `replies` and `message_replies`, and the logged messages that they reply to. Which
//! mailboxes are due for a check is in [`crate::mailboxes::due`].

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::ids::{CredentialId, LogId, lowest_uuid_at};
use mailgate_types::metadata::Metadata;
use mailgate_types::past::Past;

/// A logged message that may have replies.
#[derive(Debug, Clone)]
pub struct Answered {
    /// Its Message-ID.
    pub message_id: String,
    /// Its id in the log.
    pub log: LogId,
    /// The sender's address.
    pub from_address: String,
    /// The app's metadata.
    pub metadata: Metadata,
}

/// The messages of a mailbox that have these Message-IDs, one or two for each: an app may give the same to any number.
/// One that is not in the log yet is found in the spool.
pub async fn answered(
    connection: &mut PgConnection,
    credential: CredentialId,
    message_ids: &[&str],
) -> Result<Vec<Answered>, sqlx::Error> {
    sqlx::query_as!(
        Answered,
        r#"SELECT wanted.message_id AS "message_id!", found.id AS "log!",
                  found.from_address AS "from_address!", found.metadata
           FROM unnest($2::text[]) AS wanted (message_id)
                CROSS JOIN LATERAL (
                    (SELECT id, from_address, metadata FROM email_logs AS log
                     WHERE credential_id = $1 AND log.message_id = wanted.message_id LIMIT 1)
                    UNION ALL
                    (SELECT id, from_address, metadata FROM spool
                     WHERE credential_id = $1 AND spool.message_id = wanted.message_id
                           AND state = 'open' AND NOT is_logged LIMIT 1)
                ) AS found"#,
        credential.0,
        message_ids as &[&str],
    )
    .fetch_all(connection)
    .await
}

/// Maximum recorded replies to one message: its recipients may reply any number of times.
pub const MOST_OF_A_MESSAGE: i64 = 1_000;

/// The number of further replies to each of these messages that may be recorded.
pub async fn room(
    connection: &mut PgConnection,
    logs: &[LogId],
) -> Result<HashMap<LogId, i64>, sqlx::Error> {
    let logs: Vec<Uuid> = logs.iter().map(|log| log.0).collect();
    let rows = sqlx::query!(
        r#"SELECT asked.id AS "id!", (
               SELECT count(*) FROM message_replies WHERE log_id = asked.id
           ) AS "recorded!"
           FROM unnest($1::uuid[]) AS asked (id)"#,
        &logs,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (LogId(row.id), MOST_OF_A_MESSAGE - row.recorded))
        .collect())
}

/// The replies of a mailbox among these that are already stored.
pub async fn known(
    connection: &mut PgConnection,
    credential: CredentialId,
    message_ids: &[String],
) -> Result<HashSet<String>, sqlx::Error> {
    let known = sqlx::query_scalar!(
        "SELECT message_id FROM replies WHERE credential_id = $1 AND message_id = ANY($2)",
        credential.0,
        message_ids,
    )
    .fetch_all(connection)
    .await?;
    Ok(known.into_iter().collect())
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

/// A reply as the log shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedReply {
    /// Who wrote it.
    pub from_address: String,
    /// When it was read.
    pub replied_at: DateTime<Utc>,
}

/// A reply to a message.
#[derive(Debug, Clone, Copy)]
pub struct NewReply<'a> {
    /// The key that deduplicates it within its mailbox.
    pub key: &'a str,
    /// The message.
    pub log: LogId,
    /// Who wrote it.
    pub from_address: &'a str,
    /// When it was read.
    pub replied_at: DateTime<Utc>,
}

/// Adds replies to their messages.
pub async fn add_to_log(
    connection: &mut PgConnection,
    replies: &[NewReply<'_>],
) -> Result<(), sqlx::Error> {
    let logs: Vec<Uuid> = replies.iter().map(|reply| reply.log.0).collect();
    let keys: Vec<&str> = replies.iter().map(|reply| reply.key).collect();
    let senders: Vec<&str> = replies.iter().map(|reply| reply.from_address).collect();
    let moments: Vec<DateTime<Utc>> = replies.iter().map(|reply| reply.replied_at).collect();
    sqlx::query!(
        "INSERT INTO message_replies (log_id, key, from_address, replied_at)
         SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[])
         ON CONFLICT DO NOTHING",
        &logs,
        &keys as &[&str],
        &senders as &[&str],
        &moments,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The first `limit` replies to a message, in the order in which they were read.
pub async fn of_log(
    connection: &mut PgConnection,
    id: LogId,
    limit: i64,
) -> Result<Vec<LoggedReply>, sqlx::Error> {
    sqlx::query_as!(
        LoggedReply,
        "SELECT from_address, replied_at FROM message_replies
         WHERE log_id = $1 ORDER BY replied_at, key LIMIT $2",
        id.0,
        limit,
    )
    .fetch_all(connection)
    .await
}

/// Removes up to `limit` replies to messages from before `past`; returns how many.
pub async fn remove_before(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM message_replies WHERE ctid = ANY(ARRAY(
             SELECT ctid FROM message_replies WHERE log_id < $1 ORDER BY log_id LIMIT $2))",
        lowest_uuid_at(past.moment()),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}

/// Deletes up to `limit` replies that were stored before `past`; returns how many.
pub async fn forget(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let forgotten = sqlx::query!(
        "DELETE FROM replies WHERE (credential_id, message_id) IN (
             SELECT credential_id, message_id FROM replies
             WHERE seen_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
         )",
        past.moment(),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(forgotten.rows_affected())
}
