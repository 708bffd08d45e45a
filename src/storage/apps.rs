//! The table `apps`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::types::ids::{AppId, SubscriberId};
use crate::types::subscription::SubscriptionStatus;

/// A new row.
#[derive(Debug)]
pub struct NewApp<'a> {
    /// Its id.
    pub id: AppId,
    /// Whose it is.
    pub subscriber_id: SubscriberId,
    /// The contract's `app_id`.
    pub slug: &'a str,
    /// As the subscriber calls it.
    pub name: &'a str,
    /// `pk_…`, in clear.
    pub pushable_key: &'a str,
    /// The send key, sealed.
    pub send_key_sealed: &'a [u8],
    /// The send key's look-up digest.
    pub send_key_digest: &'a [u8],
    /// The webhook secret, sealed.
    pub webhook_secret_sealed: &'a [u8],
    /// Several end users.
    pub multiuser: bool,
    /// Several mailboxes of one plugin and user.
    pub multilink: bool,
    /// When.
    pub created_at: DateTime<Utc>,
}

/// What a send key opens, as of the moment it was asked.
#[derive(Debug, Clone)]
pub struct SendingApp {
    /// The app.
    pub id: AppId,
    /// The contract's `app_id`.
    pub slug: String,
    /// `pk_…`
    pub pushable_key: String,
    /// Whether a send must name its end user.
    pub multiuser: bool,
    /// The subscription of the app's subscriber.
    pub subscription_status: Option<SubscriptionStatus>,
}

/// Inserts an app; `false` when its slug is taken.
///
/// # Errors
///
/// What the database said.
pub async fn insert(connection: &mut PgConnection, app: &NewApp<'_>) -> Result<bool, sqlx::Error> {
    let inserted = sqlx::query!(
        "INSERT INTO apps
             (id, subscriber_id, slug, name, pushable_key, send_key_sealed, send_key_digest,
              webhook_secret_sealed, multiuser, multilink, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT ON CONSTRAINT apps_slug_key DO NOTHING",
        app.id.0,
        app.subscriber_id.0,
        app.slug,
        app.name,
        app.pushable_key,
        app.send_key_sealed,
        app.send_key_digest,
        app.webhook_secret_sealed,
        app.multiuser,
        app.multilink,
        app.created_at,
    )
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// The app that one of these digests of its send key belongs to.
///
/// # Errors
///
/// What the database said.
pub async fn find_by_send_key(
    connection: &mut PgConnection,
    digests: &[Vec<u8>],
) -> Result<Option<SendingApp>, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT apps.id, slug, pushable_key, multiuser, subscription_status
         FROM apps JOIN subscribers ON subscribers.id = subscriber_id
         WHERE send_key_digest = ANY($1)",
        digests,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| SendingApp {
        id: AppId(row.id),
        slug: row.slug,
        pushable_key: row.pushable_key,
        multiuser: row.multiuser,
        subscription_status: row
            .subscription_status
            .and_then(|status| status.parse().ok()),
    }))
}

/// The subscription status behind an app: `None` when the app is gone, `Some(None)` when its
/// subscriber has no subscription.
///
/// # Errors
///
/// What the database said.
pub async fn subscription_status(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<Option<SubscriptionStatus>>, sqlx::Error> {
    let row = sqlx::query_scalar!(
        "SELECT subscription_status
         FROM apps JOIN subscribers ON subscribers.id = subscriber_id
         WHERE apps.id = $1",
        app.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|status| status.and_then(|status| status.parse().ok())))
}

/// An app's keys and its subscriber's, sealed as they lie.
#[derive(Debug)]
pub struct SealedCredentials {
    /// Whose it is.
    pub subscriber_id: SubscriberId,
    /// The subscriber's API secret.
    pub api_secret_sealed: Vec<u8>,
    /// The contract's `app_id`.
    pub slug: String,
    /// `pk_…`, in clear.
    pub pushable_key: String,
    /// The send key.
    pub send_key_sealed: Vec<u8>,
}

/// The keys of an app.
///
/// # Errors
///
/// What the database said.
pub async fn find_credentials(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<SealedCredentials>, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT subscriber_id, api_secret_sealed, slug, pushable_key, send_key_sealed
         FROM apps JOIN subscribers ON subscribers.id = subscriber_id
         WHERE apps.id = $1",
        app.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| SealedCredentials {
        subscriber_id: SubscriberId(row.subscriber_id),
        api_secret_sealed: row.api_secret_sealed,
        slug: row.slug,
        pushable_key: row.pushable_key,
        send_key_sealed: row.send_key_sealed,
    }))
}
