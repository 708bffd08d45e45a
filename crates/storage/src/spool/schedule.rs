//! Stores scheduled messages: they are only in the spool until their first attempt.

use sqlx::PgConnection;

use super::Opening;
use mailgate_types::ids::LogId;

/// Waits until no other transaction stores or withdraws the message with this id, and locks it until the caller's own
/// ends: a commit whose response was lost may still be in progress.
pub async fn lock_id(connection: &mut PgConnection, id: LogId) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "SELECT pg_advisory_xact_lock(hashtextextended('scheduled ' || $1::uuid::text, 0))::text AS locked",
        id.0,
    )
    .fetch_one(connection)
    .await?;
    Ok(())
}

/// Stores a message scheduled for its `opened_at`, and counts it in its app's usage; its raw bytes follow through
/// [`super::add_chunk`]. `false` if its app was deleted or has changed since its mailbox was chosen: nothing is stored
/// then. The app can't be deleted until the caller's transaction ends.
pub async fn schedule(
    connection: &mut PgConnection,
    opening: &Opening,
    send_key_hash: &[u8],
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"WITH app AS MATERIALIZED (
             SELECT id FROM apps
             WHERE id = $2 AND ($17::uuid IS NULL OR $17 = (SELECT version FROM app_versions
                                                            WHERE app_versions.app_id = apps.id))
             FOR KEY SHARE
         ), added AS (
             INSERT INTO spool
                 (id, app_id, credential_id, from_address, to_address, cc_addresses, bcc_addresses,
                  subject, plugin, message_id, size_bytes, has_attachments, recipients, smtputf8,
                  opened_at, send_at, next_attempt_at, state, outcome_unknown, idempotency_key,
                  send_key_hash, metadata, door)
             SELECT $1, app.id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15, $15,
                    'deferred', false, $16, $18, $19::text::jsonb, $20
             FROM app
             RETURNING app_id, size_bytes
         ), counted AS (
             INSERT INTO spool_usage_changes (app_id, messages, bytes)
             SELECT app_id, 1, size_bytes FROM added
         )
         SELECT EXISTS (SELECT FROM added) AS "added!""#,
        opening.id.0,
        opening.app.0,
        opening.credential.0,
        opening.from_address,
        opening.to_address,
        &opening.cc_addresses,
        &opening.bcc_addresses,
        opening.subject,
        opening.plugin.as_str(),
        opening.message_id,
        opening.size_bytes,
        opening.has_attachments,
        &opening.recipients,
        opening.smtputf8,
        opening.opened_at,
        opening.key,
        opening.version.map(|version| version.0),
        send_key_hash,
        opening.metadata.to_json(),
        opening.door.as_str(),
    )
    .fetch_one(connection)
    .await
}
