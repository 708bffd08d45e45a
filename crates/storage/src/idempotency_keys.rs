//! The table `idempotency_keys`: the message that a caller's key stands for, and the first answer that its caller got.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::ids::{AppId, GatewayId, LogId};
use mailgate_types::past::Past;

/// The key that a message arrived with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// The app that used it.
    pub app: AppId,
    /// The name, unique within a send key.
    pub key: String,
    /// A digest of the request.
    pub request_digest: Vec<u8>,
    /// The message.
    pub log: LogId,
}

/// A key that is in use.
#[derive(Debug, Clone)]
pub struct Known {
    /// A digest of the request.
    pub request_digest: Vec<u8>,
    /// The message.
    pub log: LogId,
    /// The first answer to its caller; `None` while there is none.
    pub answer: Option<Value>,
    /// Whether the message is in the spool.
    pub in_spool: bool,
}

/// Claims keys, which are kept from `kept_from` on; returns the messages whose keys were free. Waits for a transaction
/// that is about to claim one. If one call holds the same key twice, one message gets it.
pub async fn claim(
    connection: &mut PgConnection,
    keys: &[&NewKey],
    kept_from: DateTime<Utc>,
) -> Result<Vec<LogId>, sqlx::Error> {
    claim_all(connection, keys, kept_from, true).await
}

/// As [`claim`], without waiting: a key that another transaction is about to claim is not free.
pub async fn claim_free(
    connection: &mut PgConnection,
    keys: &[&NewKey],
    kept_from: DateTime<Utc>,
) -> Result<Vec<LogId>, sqlx::Error> {
    claim_all(connection, keys, kept_from, false).await
}

async fn claim_all(
    connection: &mut PgConnection,
    keys: &[&NewKey],
    kept_from: DateTime<Utc>,
    waits: bool,
) -> Result<Vec<LogId>, sqlx::Error> {
    let apps: Vec<Uuid> = keys.iter().map(|key| key.app.0).collect();
    let texts: Vec<&str> = keys.iter().map(|key| key.key.as_str()).collect();
    let digests: Vec<&[u8]> = (keys.iter())
        .map(|key| key.request_digest.as_slice())
        .collect();
    let logs: Vec<Uuid> = keys.iter().map(|key| key.log.0).collect();
    // Sorted, so that concurrent claims can't deadlock. Each key has a lock besides the one of its row, since only that
    // can be tried without waiting; and existing rows aren't inserted, which would wait for a concurrent change.
    let claimed = sqlx::query_scalar!(
        "INSERT INTO idempotency_keys (app_id, key, request_digest, log_id, created_at, is_of_key)
         SELECT app_id, key, request_digest, log_id, $5, true
         FROM (SELECT * FROM unnest($1::uuid[], $2::text[], $3::bytea[], $4::uuid[])
                   AS claim (app_id, key, request_digest, log_id)
               ORDER BY app_id, key) AS claim,
              hashtextextended(app_id::text || ' ' || key, 0) AS lock
         WHERE CASE WHEN $6 THEN pg_advisory_xact_lock(lock)::text IS NOT NULL
                    WHEN EXISTS (SELECT FROM idempotency_keys AS known
                                 WHERE known.app_id = claim.app_id AND known.key = claim.key) THEN false
                    ELSE pg_try_advisory_xact_lock(lock) END
         ON CONFLICT DO NOTHING
         RETURNING log_id",
        &apps,
        &texts as &[&str],
        &digests as &[&[u8]],
        &logs,
        kept_from,
        waits,
    )
    .fetch_all(connection)
    .await?;
    Ok(claimed.into_iter().map(LogId).collect())
}

/// Stores the answers given to the callers of messages.
pub async fn answer(
    connection: &mut PgConnection,
    answers: &[(AppId, &str, &Value)],
) -> Result<(), sqlx::Error> {
    if answers.is_empty() {
        return Ok(());
    }
    let apps: Vec<Uuid> = answers.iter().map(|(app, ..)| app.0).collect();
    let keys: Vec<&str> = answers.iter().map(|(_, key, _)| *key).collect();
    let told: Vec<&Value> = answers.iter().map(|(.., told)| *told).collect();
    sqlx::query!(
        "UPDATE idempotency_keys SET answer = told.answer
         FROM unnest($1::uuid[], $2::text[], $3::jsonb[]) AS told (app_id, key, answer)
         WHERE idempotency_keys.app_id = told.app_id AND idempotency_keys.key = told.key",
        &apps,
        &keys as &[&str],
        &told as &[&Value],
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// As [`answer`], for one message; a key that stands for another message by now is left alone.
pub async fn answer_of(
    connection: &mut PgConnection,
    log: LogId,
    app: AppId,
    key: &str,
    told: &Value,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE idempotency_keys SET answer = $4
         WHERE app_id = $1 AND key = $2 AND log_id = $3",
        app.0,
        key,
        log.0,
        told,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Frees keys whose messages have ended without an answer.
pub async fn free(
    connection: &mut PgConnection,
    freed: &[(AppId, &str, LogId)],
) -> Result<(), sqlx::Error> {
    if freed.is_empty() {
        return Ok(());
    }
    let apps: Vec<Uuid> = freed.iter().map(|(app, ..)| app.0).collect();
    let keys: Vec<&str> = freed.iter().map(|(_, key, _)| *key).collect();
    let logs: Vec<Uuid> = freed.iter().map(|(.., log)| log.0).collect();
    // A message in the spool has not ended.
    sqlx::query!(
        "DELETE FROM idempotency_keys
         USING unnest($1::uuid[], $2::text[], $3::uuid[]) AS freed (app_id, key, log_id)
         WHERE idempotency_keys.app_id = freed.app_id AND idempotency_keys.key = freed.key
               AND idempotency_keys.log_id = freed.log_id AND answer IS NULL
               AND NOT EXISTS (SELECT FROM spool WHERE spool.id = ANY (ARRAY[freed.log_id]))",
        &apps,
        &keys as &[&str],
        &logs,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Frees a key whose message was never accepted; `false` if a repeated request was given its answer ([`bind`]), which
/// is then final.
pub async fn withdraw(
    connection: &mut PgConnection,
    app: AppId,
    key: &str,
    log: LogId,
) -> Result<bool, sqlx::Error> {
    // A bound key is locked too, to wait for a concurrent bind.
    let bound = sqlx::query_scalar!(
        r#"SELECT coalesce(answer ? 'bound', false) AS "bound!" FROM idempotency_keys
           WHERE app_id = $1 AND key = $2 AND log_id = $3 FOR UPDATE"#,
        app.0,
        key,
        log.0,
    )
    .fetch_optional(&mut *connection)
    .await?;
    if bound == Some(true) {
        return Ok(false);
    }
    sqlx::query!(
        "DELETE FROM idempotency_keys WHERE app_id = $1 AND key = $2 AND log_id = $3",
        app.0,
        key,
        log.0,
    )
    .execute(connection)
    .await?;
    Ok(true)
}

/// Whether the answer was given to a repeated request.
#[must_use]
pub fn is_bound(answer: &Value) -> bool {
    answer.get("bound").is_some()
}

/// Records that the answer under a key is being given to a repeated request: the process that stored the message
/// without getting the commit's answer may no longer withdraw it. `false` if it was already withdrawn, or this
/// process has ended.
pub async fn bind(
    connection: &mut PgConnection,
    gateway: GatewayId,
    app: AppId,
    key: &str,
    log: LogId,
) -> Result<bool, sqlx::Error> {
    let bound = sqlx::query!(
        r#"WITH fence AS MATERIALIZED (
               SELECT id FROM gateways WHERE id = $4 AND ended_at IS NULL FOR KEY SHARE
           )
           UPDATE idempotency_keys SET answer = answer || '{"bound": true}'
           FROM fence
           WHERE app_id = $1 AND key = $2 AND log_id = $3 AND answer IS NOT NULL"#,
        app.0,
        key,
        log.0,
        gateway.0,
    )
    .execute(connection)
    .await?;
    Ok(bound.rows_affected() > 0)
}

/// The message that a key stands for.
pub async fn find(
    connection: &mut PgConnection,
    app: AppId,
    key: &str,
) -> Result<Option<Known>, sqlx::Error> {
    find_stored(connection, app, key, false).await
}

/// As [`find`], for a name that the previous release stored, which may belong to any of the app's send keys.
pub async fn find_of_app(
    connection: &mut PgConnection,
    app: AppId,
    key: &str,
) -> Result<Option<Known>, sqlx::Error> {
    find_stored(connection, app, key, true).await
}

/// Whether there is a name that the previous release has stored, or may be one, since a process of it is running.
pub async fn may_be_of_before(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM gateways WHERE ended_at IS NULL AND NOT has_names_of_keys)
                  OR EXISTS (SELECT FROM idempotency_keys WHERE NOT is_of_key) AS "may_be!""#,
    )
    .fetch_one(connection)
    .await
}

async fn find_stored(
    connection: &mut PgConnection,
    app: AppId,
    key: &str,
    is_of_app: bool,
) -> Result<Option<Known>, sqlx::Error> {
    sqlx::query_as!(
        Known,
        r#"SELECT request_digest, log_id AS log, answer,
                  EXISTS (SELECT 1 FROM spool WHERE spool.id = log_id) AS "in_spool!"
           FROM idempotency_keys
           WHERE app_id = $1 AND key = $2 AND NOT ($3 AND is_of_key)"#,
        app.0,
        key,
        is_of_app,
    )
    .fetch_optional(connection)
    .await
}

/// Deletes up to `limit` keys that were claimed before `past`; returns how many.
pub async fn forget(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let forgotten = sqlx::query!(
        "DELETE FROM idempotency_keys WHERE (app_id, key) IN (
             SELECT app_id, key FROM idempotency_keys
             WHERE created_at < $1
             ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
         )",
        past.moment(),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(forgotten.rows_affected())
}
