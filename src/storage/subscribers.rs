//! The table `subscribers`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::types::ids::SubscriberId;
use crate::types::subscription::SubscriptionStatus;

/// A new row.
#[derive(Debug)]
pub struct NewSubscriber<'a> {
    /// Its id.
    pub id: SubscriberId,
    /// Display name.
    pub label: &'a str,
    /// Contact address.
    pub email: &'a str,
    /// The API secret, sealed.
    pub api_secret_sealed: &'a [u8],
    /// The API secret's look-up digest.
    pub api_secret_digest: &'a [u8],
    /// What it starts with.
    pub subscription_status: Option<SubscriptionStatus>,
    /// When.
    pub created_at: DateTime<Utc>,
}

/// Inserts a subscriber.
///
/// # Errors
///
/// What the database said.
pub async fn insert(
    connection: &mut PgConnection,
    subscriber: &NewSubscriber<'_>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO subscribers
             (id, label, email, api_secret_sealed, api_secret_digest, subscription_status, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        subscriber.id.0,
        subscriber.label,
        subscriber.email,
        subscriber.api_secret_sealed,
        subscriber.api_secret_digest,
        subscriber.subscription_status.map(SubscriptionStatus::as_str),
        subscriber.created_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}
