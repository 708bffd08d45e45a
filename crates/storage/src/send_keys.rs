//! The table `send_keys`: the additional send keys of apps.
//!
//! The trigger `send_keys_change` (migration 0034), deferred to the commit, raises the version of the key's app.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::ids::{AppId, CredentialId, SendKeyId, SubscriberId};

/// An additional send key, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendKeyRow {
    /// Its id.
    pub id: SendKeyId,
    /// The name that the subscriber gave it.
    pub name: String,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    /// When it stops working.
    pub expires_at: Option<DateTime<Utc>>,
    /// Networks that it may be used from, in CIDR notation; none: all.
    pub allowed_addresses: Vec<String>,
    /// Mailboxes that it may send from; none: all.
    pub credential_ids: Vec<CredentialId>,
}

/// The lookup values of a key: its sealed hash, and the keyed digest of that.
#[derive(Debug)]
pub struct Lookup {
    /// SHA-256 of the value in hexadecimal digits, sealed.
    pub hash_sealed: Vec<u8>,
    /// The keyed digest of the same.
    pub digest: Vec<u8>,
}

fn uuids(ids: &[CredentialId]) -> Vec<Uuid> {
    ids.iter().map(|id| id.0).collect()
}

/// The number of an app's additional keys.
pub async fn count(connection: &mut PgConnection, app: AppId) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM send_keys WHERE app_id = $1"#,
        app.0,
    )
    .fetch_one(connection)
    .await
}

/// Inserts a key.
pub async fn insert(
    connection: &mut PgConnection,
    app: AppId,
    key: &SendKeyRow,
    lookup: &Lookup,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO send_keys
             (id, app_id, name, hash_sealed, digest, created_at, expires_at, allowed_addresses,
              credential_ids)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        key.id.0,
        app.0,
        key.name,
        lookup.hash_sealed,
        lookup.digest,
        key.created_at,
        key.expires_at,
        &key.allowed_addresses,
        &uuids(&key.credential_ids),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// An app's additional keys, oldest first.
pub async fn list(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Vec<SendKeyRow>, sqlx::Error> {
    sqlx::query_as!(
        SendKeyRow,
        r#"SELECT id, name, created_at, last_used_at, expires_at, allowed_addresses,
                  credential_ids AS "credential_ids: Vec<CredentialId>"
           FROM send_keys WHERE app_id = $1 ORDER BY id"#,
        app.0,
    )
    .fetch_all(connection)
    .await
}

/// Locks one of an app's additional keys until the transaction ends, and returns it.
pub async fn lock(
    connection: &mut PgConnection,
    app: AppId,
    id: SendKeyId,
) -> Result<Option<SendKeyRow>, sqlx::Error> {
    sqlx::query_as!(
        SendKeyRow,
        r#"SELECT id, name, created_at, last_used_at, expires_at, allowed_addresses,
                  credential_ids AS "credential_ids: Vec<CredentialId>"
           FROM send_keys WHERE app_id = $1 AND id = $2 FOR UPDATE"#,
        app.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
}

/// Writes the changeable fields of a key.
pub async fn update(connection: &mut PgConnection, key: &SendKeyRow) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE send_keys
         SET name = $2, expires_at = $3, allowed_addresses = $4, credential_ids = $5
         WHERE id = $1",
        key.id.0,
        key.name,
        key.expires_at,
        &key.allowed_addresses,
        &uuids(&key.credential_ids),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Deletes one of an app's additional keys; returns its name, or `None` if there is none.
pub async fn delete(
    connection: &mut PgConnection,
    app: AppId,
    id: SendKeyId,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar!(
        "DELETE FROM send_keys WHERE app_id = $1 AND id = $2 RETURNING name",
        app.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
}

/// Deletes all keys of a subscriber's apps.
pub async fn delete_all_of(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM send_keys USING apps WHERE app_id = apps.id AND subscriber_id = $1",
        subscriber.0,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The ids among these that aren't mailboxes of the app.
pub async fn foreign_mailboxes(
    connection: &mut PgConnection,
    app: AppId,
    ids: &[CredentialId],
) -> Result<Vec<CredentialId>, sqlx::Error> {
    let foreign = sqlx::query_scalar!(
        r#"SELECT id AS "id!" FROM unnest($2::uuid[]) AS given (id)
           WHERE NOT EXISTS (SELECT FROM mailboxes
                             WHERE mailboxes.id = given.id AND app_id = $1)"#,
        app.0,
        &uuids(ids),
    )
    .fetch_all(connection)
    .await?;
    Ok(foreign.into_iter().map(CredentialId).collect())
}

/// The key of an app with one of these digests, if it hasn't expired.
pub async fn find_valid(
    connection: &mut PgConnection,
    app: AppId,
    digests: &[Vec<u8>],
    now: DateTime<Utc>,
) -> Result<Option<SendKeyRow>, sqlx::Error> {
    sqlx::query_as!(
        SendKeyRow,
        r#"SELECT id, name, created_at, last_used_at, expires_at, allowed_addresses,
                  credential_ids AS "credential_ids: Vec<CredentialId>"
           FROM send_keys
           WHERE app_id = $1 AND digest = ANY($2) AND (expires_at IS NULL OR expires_at > $3)"#,
        app.0,
        digests,
        now,
    )
    .fetch_optional(connection)
    .await
}

/// Fields of a key for the audit trail: names as the interface spells them.
#[derive(Debug, Serialize)]
pub struct Recorded<'a> {
    name: &'a str,
    // Empty rather than absent, so that its removal is visible.
    expires_at: String,
    allowed_addresses: &'a [String],
    credential_ids: Vec<String>,
}

impl SendKeyRow {
    /// Its fields for the audit trail.
    #[must_use]
    pub fn recorded(&self) -> Recorded<'_> {
        Recorded {
            name: &self.name,
            expires_at: self
                .expires_at
                .map_or_else(String::new, |at| at.to_rfc3339()),
            allowed_addresses: &self.allowed_addresses,
            credential_ids: self
                .credential_ids
                .iter()
                .map(ToString::to_string)
                .collect(),
        }
    }
}
