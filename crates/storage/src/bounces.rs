//! The table `bounces`, and the messages that bounces are about.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::bounce_type::BounceType;
use mailgate_types::email_address::comparison_key;
use mailgate_types::ids::{AppId, CredentialId, LogId, lowest_uuid_at};
use mailgate_types::metadata::Metadata;
use mailgate_types::past::Past;

/// Messages with the same Message-ID that are considered: few senders use one twice.
const SAME_MESSAGE_ID: i64 = 100;

/// A message that may have bounced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    /// Its id in the log.
    pub log: LogId,
    /// Its Message-ID.
    pub message_id: Option<String>,
    /// The sender's address.
    pub from_address: String,
    /// The To header's addresses, separated by commas, or else the envelope's first.
    pub to_address: String,
    /// The Cc header's addresses.
    pub cc_addresses: Vec<String>,
    /// Recipients that no header names.
    pub bcc_addresses: Vec<String>,
    /// Its subject.
    pub subject: String,
    /// The app's metadata.
    pub metadata: Metadata,
}

impl Original {
    /// The recipient with this address, as it was given: a server may have quoted it, or written its domain in ASCII.
    /// A bounce may also name the address that a recipient's mail is forwarded to.
    #[must_use]
    pub fn recipient(&self, address: &str) -> Option<&str> {
        let wanted = comparison_key(address);
        let in_to = self.to_address.split(',').map(str::trim);
        let others = self.cc_addresses.iter().chain(&self.bcc_addresses);
        let mut all = std::iter::once(self.to_address.as_str())
            .chain(in_to)
            .chain(others.map(String::as_str));
        all.find(|recipient| comparison_key(recipient) == wanted)
    }
}

/// The messages of a mailbox that have one of these Message-IDs or log ids, newest first. A message that is not in the
/// log yet is found in the spool, by its log id.
pub async fn originals(
    connection: &mut PgConnection,
    credential: CredentialId,
    message_ids: &[String],
    logs: &[LogId],
) -> Result<Vec<Original>, sqlx::Error> {
    let logs: Vec<Uuid> = logs.iter().map(|log| log.0).collect();
    sqlx::query_as!(
        Original,
        r#"SELECT found.id AS "log!", found.message_id, found.from_address AS "from_address!",
                  found.to_address AS "to_address!", found.cc_addresses AS "cc_addresses!",
                  found.bcc_addresses AS "bcc_addresses!", found.subject AS "subject!",
                  found.metadata
           FROM (
               SELECT named.* FROM unnest($2::text[]) AS wanted (message_id)
                    CROSS JOIN LATERAL (
                        SELECT id, message_id, from_address, to_address, cc_addresses, bcc_addresses,
                               subject, metadata
                        FROM email_logs AS log
                        WHERE credential_id = $1 AND log.message_id = wanted.message_id
                        LIMIT $4
                    ) AS named
               UNION
               SELECT id, message_id, from_address, to_address, cc_addresses, bcc_addresses, subject,
                      metadata
               FROM email_logs WHERE id = ANY($3) AND credential_id = $1
               UNION
               SELECT id, message_id, from_address, to_address, cc_addresses, bcc_addresses, subject,
                      metadata
               FROM spool WHERE id = ANY($3) AND credential_id = $1 AND NOT is_logged
           ) AS found
           ORDER BY found.id DESC"#,
        credential.0,
        message_ids,
        &logs,
        SAME_MESSAGE_ID,
    )
    .fetch_all(connection)
    .await
}

/// Locks a mailbox until the transaction ends, so that its bounces are stored by one process at a time; `false` if the
/// mailbox or its app was deleted.
pub async fn lock_mailbox(
    connection: &mut PgConnection,
    app: AppId,
    credential: CredentialId,
) -> Result<bool, sqlx::Error> {
    // In the same order as an app's deletion.
    let app = sqlx::query_scalar!(
        r#"SELECT true AS "is_there!" FROM apps WHERE id = $1 FOR KEY SHARE"#,
        app.0,
    )
    .fetch_optional(&mut *connection)
    .await?;
    if app.is_none() {
        return Ok(false);
    }
    let mailbox = sqlx::query_scalar!(
        r#"SELECT true AS "is_there!" FROM mailboxes WHERE id = $1 FOR NO KEY UPDATE"#,
        credential.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(mailbox.is_some())
}

/// A bounce of one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBounce {
    /// The key that deduplicates it within its mailbox.
    pub key: Vec<u8>,
    /// The message.
    pub log: LogId,
    /// The recipient, as the notification names it.
    pub recipient: String,
    /// Whether it is final.
    pub bounce_type: BounceType,
    /// RFC 3463, like `5.1.1`.
    pub status: Option<String>,
    /// The server's words.
    pub diagnostic: Option<String>,
}

/// Stores bounces of a mailbox's messages, `most` of each type per message at most, and returns the keys of those
/// that are new.
pub async fn insert(
    connection: &mut PgConnection,
    credential: CredentialId,
    bounces: &[NewBounce],
    now: DateTime<Utc>,
    most: i64,
) -> Result<Vec<Vec<u8>>, sqlx::Error> {
    let keys: Vec<Vec<u8>> = bounces.iter().map(|bounce| bounce.key.clone()).collect();
    let logs: Vec<Uuid> = bounces.iter().map(|bounce| bounce.log.0).collect();
    let recipients: Vec<&str> = (bounces.iter())
        .map(|bounce| bounce.recipient.as_str())
        .collect();
    let types: Vec<&str> = (bounces.iter())
        .map(|bounce| bounce.bounce_type.as_str())
        .collect();
    let statuses: Vec<Option<&str>> = (bounces.iter())
        .map(|bounce| bounce.status.as_deref())
        .collect();
    let diagnostics: Vec<Option<&str>> = (bounces.iter())
        .map(|bounce| bounce.diagnostic.as_deref())
        .collect();
    sqlx::query_scalar!(
        "WITH named AS (
             SELECT DISTINCT ON (key) * FROM unnest($2::bytea[], $3::uuid[], $4::text[], $5::text[],
                                                    $6::text[], $7::text[]) WITH ORDINALITY
                 AS bounce (key, log_id, recipient, bounce_type, status, diagnostic, position)
             ORDER BY key, position
         ), fresh AS (
             SELECT named.*,
                    row_number() OVER (PARTITION BY log_id, bounce_type ORDER BY position)
                    + (SELECT count(*) FROM bounces AS known
                       WHERE known.log_id = named.log_id AND known.bounce_type = named.bounce_type)
                    AS number
             FROM named
             WHERE NOT EXISTS (SELECT FROM bounces AS known
                               WHERE known.credential_id = $1 AND known.key = named.key)
         )
         INSERT INTO bounces (credential_id, key, log_id, recipient, bounce_type, status, diagnostic,
                              bounced_at, awaits_sent)
         SELECT $1, key, log_id, recipient, bounce_type, status, diagnostic, $8,
                bounce_type = 'permanent'
         FROM fresh WHERE number <= $9
         ON CONFLICT DO NOTHING
         RETURNING key",
        credential.0,
        &keys,
        &logs,
        &recipients as &[&str],
        &types as &[&str],
        &statuses as &[Option<&str>],
        &diagnostics as &[Option<&str>],
        now,
        most,
    )
    .fetch_all(connection)
    .await
}

/// A bounce as the log shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedBounce {
    /// The recipient, as the notification names it.
    pub recipient: String,
    /// `permanent` or `temporary`.
    pub bounce_type: String,
    /// RFC 3463, like `5.1.1`.
    pub status: Option<String>,
    /// The server's words.
    pub diagnostic: Option<String>,
    /// When it was read.
    pub bounced_at: DateTime<Utc>,
}

/// A message's bounces, in the order in which they were read.
pub async fn of_log(
    connection: &mut PgConnection,
    id: LogId,
) -> Result<Vec<LoggedBounce>, sqlx::Error> {
    sqlx::query_as!(
        LoggedBounce,
        "SELECT recipient, bounce_type, status, diagnostic, bounced_at
         FROM bounces WHERE log_id = $1 ORDER BY bounced_at, recipient, key",
        id.0,
    )
    .fetch_all(connection)
    .await
}

/// Removes up to `limit` bounces of messages from before `past`; returns how many.
pub async fn remove_before(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM bounces WHERE ctid = ANY(ARRAY(
             SELECT ctid FROM bounces WHERE log_id < $1 ORDER BY log_id LIMIT $2))",
        lowest_uuid_at(past.moment()),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}
