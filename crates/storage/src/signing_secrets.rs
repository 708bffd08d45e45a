//! The secrets that sign webhooks: in `webhook_configs` and `apps` those of endpoints that exist, in
//! `deleted_webhook_endpoints` those of endpoints that may still have deliveries in the queue. A database trigger
//! writes the latter when an endpoint is deleted.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::AppId;
use mailgate_types::past::Past;

/// The secrets of an endpoint, sealed for the endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSecrets {
    /// The current one.
    pub current: Vec<u8>,
    /// The previous one, and when it expires. It may have expired.
    pub previous: Option<(Vec<u8>, DateTime<Utc>)>,
}

impl SealedSecrets {
    /// From the columns.
    #[must_use]
    pub fn new(
        current: Vec<u8>,
        previous: Option<Vec<u8>>,
        expires_at: Option<DateTime<Utc>>,
    ) -> Self {
        Self {
            current,
            previous: previous.zip(expires_at),
        }
    }

    /// When the previous secret expires; `None` if there is none that is valid at `now`.
    #[must_use]
    pub fn previous_expires_at(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let (_, expires_at) = self.previous.as_ref()?;
        Some(*expires_at).filter(|expires_at| *expires_at > now)
    }
}

/// Removes previous secrets that had expired by `past`, up to `limit` from each table; returns how many.
pub async fn remove_expired(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<i64, sqlx::Error> {
    // Rows that are locked at the moment are left for the next round.
    sqlx::query_scalar!(
        r#"WITH of_configs AS (
               UPDATE webhook_configs
               SET previous_secret_sealed = NULL, previous_secret_expires_at = NULL
               WHERE id = ANY (ARRAY(
                   SELECT id FROM webhook_configs WHERE previous_secret_expires_at <= $1
                   ORDER BY previous_secret_expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
               ))
               RETURNING id
           ), of_apps AS (
               UPDATE apps
               SET previous_webhook_secret_sealed = NULL, previous_webhook_secret_expires_at = NULL
               WHERE id = ANY (ARRAY(
                   SELECT id FROM apps WHERE previous_webhook_secret_expires_at <= $1
                   ORDER BY previous_webhook_secret_expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
               ))
               RETURNING id
           ), of_deleted AS (
               UPDATE deleted_webhook_endpoints
               SET previous_secret_sealed = NULL, previous_secret_expires_at = NULL
               WHERE endpoint_id = ANY (ARRAY(
                   SELECT endpoint_id FROM deleted_webhook_endpoints
                   WHERE previous_secret_expires_at <= $1
                   ORDER BY previous_secret_expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
               ))
               RETURNING endpoint_id
           )
           SELECT (SELECT count(*) FROM of_configs) + (SELECT count(*) FROM of_apps)
                  + (SELECT count(*) FROM of_deleted) AS "count!""#,
        past.moment(),
        limit,
    )
    .fetch_one(connection)
    .await
}

/// Removes up to `limit` secrets of endpoints that were deleted before `past` and have nothing in the queue; returns how
/// many.
pub async fn remove_deleted(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM deleted_webhook_endpoints
         WHERE endpoint_id = ANY (ARRAY(
             SELECT endpoint_id FROM deleted_webhook_endpoints AS deleted
             WHERE deleted_at < $1
                   AND NOT EXISTS (SELECT FROM webhook_queue AS queue
                                   WHERE queue.endpoint_id = deleted.endpoint_id AND state = 'ready')
                   AND NOT EXISTS (SELECT FROM webhook_queue AS queue
                                   WHERE queue.endpoint_id = deleted.endpoint_id AND state = 'waiting')
                   AND NOT EXISTS (SELECT FROM webhook_queue AS queue
                                   WHERE queue.endpoint_id = deleted.endpoint_id AND state = 'leased')
             ORDER BY deleted_at LIMIT $2
         ))",
        past.moment(),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}

/// Removes the secrets of a deleted app's endpoints, once nothing is left to deliver to them.
pub async fn remove_of_app(connection: &mut PgConnection, app: AppId) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM deleted_webhook_endpoints WHERE app_id = $1",
        app.0
    )
    .execute(connection)
    .await?;
    Ok(())
}
