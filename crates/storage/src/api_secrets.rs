//! The table `api_secrets`: the additional API secrets of subscribers.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use super::send_keys::Lookup;
use super::subscribers::{Subscriber, subscriber_of};
use mailgate_types::ids::{ApiSecretId, SubscriberId};
use mailgate_types::scope::Scope;

/// An additional API secret, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiSecretRow {
    /// Its id.
    pub id: ApiSecretId,
    /// The name that the subscriber gave it.
    pub name: String,
    /// Its scopes.
    pub scopes: Vec<Scope>,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    /// When it stops working.
    pub expires_at: Option<DateTime<Utc>>,
}

/// The scopes that this release knows; others grant nothing.
fn scopes(names: &[String]) -> Vec<Scope> {
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

fn names(scopes: &[Scope]) -> Vec<&'static str> {
    scopes.iter().map(|scope| scope.as_str()).collect()
}

/// The number of a subscriber's additional secrets.
pub async fn count(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM api_secrets WHERE subscriber_id = $1"#,
        subscriber.0,
    )
    .fetch_one(connection)
    .await
}

/// Inserts one.
pub async fn insert(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    secret: &ApiSecretRow,
    lookup: &Lookup,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO api_secrets
             (id, subscriber_id, name, hash_sealed, digest, scopes, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        secret.id.0,
        subscriber.0,
        secret.name,
        lookup.hash_sealed,
        lookup.digest,
        &names(&secret.scopes) as &[&str],
        secret.created_at,
        secret.expires_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// A subscriber's, oldest first.
pub async fn list(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<Vec<ApiSecretRow>, sqlx::Error> {
    let rows = sqlx::query!(
        "SELECT id, name, scopes, created_at, last_used_at, expires_at
         FROM api_secrets WHERE subscriber_id = $1 ORDER BY id",
        subscriber.0,
    )
    .fetch_all(connection)
    .await?;
    let rows = rows.into_iter().map(|row| ApiSecretRow {
        id: ApiSecretId(row.id),
        name: row.name,
        scopes: scopes(&row.scopes),
        created_at: row.created_at,
        last_used_at: row.last_used_at,
        expires_at: row.expires_at,
    });
    Ok(rows.collect())
}

/// Deletes one of a subscriber's; returns its name, or `None` if there is none.
pub async fn delete(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    id: ApiSecretId,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar!(
        "DELETE FROM api_secrets WHERE subscriber_id = $1 AND id = $2 RETURNING name",
        subscriber.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
}

/// Deletes all secrets of a subscriber.
pub async fn delete_all_of(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM api_secrets WHERE subscriber_id = $1",
        subscriber.0
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The subscriber that a presented API secret authenticates.
#[derive(Debug)]
pub struct Opened {
    /// Its subscriber.
    pub subscriber: Subscriber,
    /// The additional secret; `None` for the main one.
    pub secret: Option<Limited>,
}

/// The limits of an additional secret.
#[derive(Debug, Clone)]
pub struct Limited {
    /// The secret.
    pub id: ApiSecretId,
    /// Its scopes.
    pub scopes: Vec<Scope>,
    /// When it stops working.
    pub expires_at: Option<DateTime<Utc>>,
}

/// The subscriber that the secret with one of these digests authenticates, expired or not; no deleted one.
pub async fn find(
    connection: &mut PgConnection,
    digests: &[Vec<u8>],
) -> Result<Option<Opened>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT subscribers.id, label, email, api_secret_sealed, payprov_customer_id,
                  subscription_status, subscribers.created_at, credentials_since, suspended_at,
                  suspension_reason, deletion_due_at, max_requests_per_second, secret_id, scopes,
                  expires_at
           FROM (
               SELECT id AS subscriber_id, NULL::uuid AS secret_id, NULL::text[] AS scopes,
                      NULL::timestamptz AS expires_at
               FROM subscribers WHERE api_secret_digest = ANY($1)
               UNION ALL
               SELECT subscriber_id, id, scopes, expires_at
               FROM api_secrets WHERE digest = ANY($1)
           ) AS found
           JOIN subscribers ON subscribers.id = found.subscriber_id
           WHERE deletion_due_at IS NULL
           LIMIT 1"#,
        digests,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| Opened {
        subscriber: subscriber_of!(row),
        secret: row.secret_id.map(|id: Uuid| Limited {
            id: ApiSecretId(id),
            scopes: scopes(&row.scopes.unwrap_or_default()),
            expires_at: row.expires_at,
        }),
    }))
}
