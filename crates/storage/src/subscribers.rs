//! The table `subscribers`. The state of their subscriptions is in [`billing`].
//!
//! Triggers, all deferred to the commit, raise the versions of a subscriber's apps: `subscriptions_change`
//! (migration 0020), `suspensions_change` (0056), `rates_change` (0057) and `deletions_change` (0058).

/// The subscriber of a row that has its columns.
macro_rules! subscriber_of {
    ($row:ident) => {
        $crate::subscribers::Subscriber {
            id: $row.id.into(),
            label: $row.label,
            email: $row.email,
            api_secret_sealed: $row.api_secret_sealed,
            payprov_customer_id: $row.payprov_customer_id,
            subscription_status: $row
                .subscription_status
                .and_then(|status| status.parse().ok()),
            created_at: $row.created_at,
            credentials_since: $row.credentials_since,
            suspension: $crate::subscribers::Suspension::of(
                $row.suspended_at,
                $row.suspension_reason,
            ),
            deletion_due_at: $row.deletion_due_at,
            requests_per_second: $crate::subscribers::limits::rate($row.max_requests_per_second),
        }
    };
}
pub(crate) use subscriber_of;

pub mod billing;
pub mod deletion;
pub mod limits;
pub mod overview;

use std::num::NonZeroU32;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;

use mailgate_types::ids::{AppId, SubscriberId};
use mailgate_types::subscription::SubscriptionStatus;

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
    /// The API secret's lookup digest.
    pub api_secret_digest: &'a [u8],
    /// The initial status.
    pub subscription_status: Option<SubscriptionStatus>,
    /// When it signed up.
    pub created_at: DateTime<Utc>,
}

/// Inserts a subscriber.
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

/// Changes to a subscriber; `None` leaves a field as it is.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SubscriberChange {
    /// Display name.
    pub label: Option<String>,
    /// Contact address.
    pub email: Option<String>,
}

/// Locks a subscriber's row until the transaction ends, and returns the changeable fields; `None` if it was deleted.
pub async fn lock_fields(
    connection: &mut PgConnection,
    id: SubscriberId,
) -> Result<Option<SubscriberChange>, sqlx::Error> {
    sqlx::query_as!(
        SubscriberChange,
        r#"SELECT label AS "label?", email AS "email?" FROM subscribers
           WHERE id = $1 FOR NO KEY UPDATE"#,
        id.0,
    )
    .fetch_optional(connection)
    .await
}

/// A subscriber's API secret, sealed, and since when it is the current one; `None` if the subscriber was deleted.
pub async fn stored_api_secret(
    connection: &mut PgConnection,
    id: SubscriberId,
) -> Result<Option<(Vec<u8>, Option<DateTime<Utc>>)>, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT api_secret_sealed, credentials_since FROM subscribers WHERE id = $1",
        id.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| (row.api_secret_sealed, row.credentials_since)))
}

/// Whether the operator has suspended a subscriber, and why.
pub async fn suspension(
    connection: &mut PgConnection,
    id: SubscriberId,
) -> Result<Option<Suspension>, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT suspended_at, suspension_reason FROM subscribers WHERE id = $1",
        id.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.and_then(|row| Suspension::of(row.suspended_at, row.suspension_reason)))
}

/// Whether the operator has suspended, or deleted, the subscriber of an app, and why. This can't change until the
/// transaction ends: the row is locked against a suspension.
pub async fn suspension_of_app(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<Suspension>, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT coalesce(suspended_at, deletion_due_at) AS suspended_at, suspension_reason
         FROM apps JOIN subscribers ON subscribers.id = subscriber_id
         WHERE apps.id = $1 FOR KEY SHARE OF subscribers",
        app.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.and_then(|row| Suspension::of(row.suspended_at, row.suspension_reason)))
}

/// Suspends a subscriber from `now` on for this reason, or resumes it; one that is already suspended keeps its start.
pub async fn set_suspension(
    connection: &mut PgConnection,
    id: SubscriberId,
    reason: Option<&str>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE subscribers
         SET suspended_at = CASE WHEN $2::text IS NOT NULL THEN coalesce(suspended_at, $3) END,
             suspension_reason = $2
         WHERE id = $1",
        id.0,
        reason,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Changes a subscriber.
pub async fn update(
    connection: &mut PgConnection,
    id: SubscriberId,
    change: &SubscriberChange,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE subscribers SET label = coalesce($2, label), email = coalesce($3, email)
         WHERE id = $1",
        id.0,
        change.label,
        change.email,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records that a subscriber's address is confirmed.
pub async fn confirm_email(
    connection: &mut PgConnection,
    id: SubscriberId,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE subscribers SET confirmed_email = email
         WHERE id = $1 AND confirmed_email IS DISTINCT FROM email",
        id.0,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// A subscriber, its secret sealed.
#[derive(Debug, Clone)]
pub struct Subscriber {
    /// Its id.
    pub id: SubscriberId,
    /// Display name.
    pub label: String,
    /// Contact address.
    pub email: String,
    /// The API secret, sealed.
    pub api_secret_sealed: Vec<u8>,
    /// The payment provider's id for it.
    pub payprov_customer_id: Option<String>,
    /// The subscription status; `None` without a subscription.
    pub subscription_status: Option<SubscriptionStatus>,
    /// When it signed up.
    pub created_at: DateTime<Utc>,
    /// Since when the API secret is the current one; `None`: since the sign-up.
    pub credentials_since: Option<DateTime<Utc>>,
    /// Set while the operator has suspended it.
    pub suspension: Option<Suspension>,
    /// Set while the operator has deleted it and it can be restored: the end of that time.
    pub deletion_due_at: Option<DateTime<Utc>>,
    /// The rate of each of its keys, if it has its own.
    pub requests_per_second: Option<NonZeroU32>,
}

/// The operator has suspended an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    /// Since when.
    pub since: DateTime<Utc>,
    /// Why, as shown to the subscriber.
    pub reason: String,
}

impl Suspension {
    /// From two columns.
    #[must_use]
    pub fn of(since: Option<DateTime<Utc>>, reason: Option<String>) -> Option<Self> {
        since.map(|since| Self {
            since,
            reason: reason.unwrap_or_default(),
        })
    }
}

/// The subscriber whose API secret has one of these digests, unless it is deleted.
pub async fn find_by_api_secret(
    connection: &mut PgConnection,
    digests: &[Vec<u8>],
) -> Result<Option<Subscriber>, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT id, label, email, api_secret_sealed, payprov_customer_id, subscription_status,
                created_at, credentials_since, suspended_at, suspension_reason,
                deletion_due_at, max_requests_per_second
         FROM subscribers WHERE api_secret_digest = ANY($1) AND deletion_due_at IS NULL",
        digests,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| subscriber_of!(row)))
}

/// The subscribers with this address that aren't deleted, ignoring the case of its letters (ASCII): all that have
/// confirmed it, and after them up to `unconfirmed` others, each the oldest first. So unconfirmed claims can't crowd
/// out the address's owner.
pub async fn find_by_email(
    connection: &mut PgConnection,
    email: &str,
    unconfirmed: i64,
) -> Result<Vec<Subscriber>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT id, label, email, api_secret_sealed, payprov_customer_id, subscription_status,
                  created_at, credentials_since, suspended_at, suspension_reason,
                  deletion_due_at, max_requests_per_second
           FROM subscribers
           WHERE id IN (
               SELECT id FROM subscribers
               WHERE lower(email COLLATE "C") = lower($1 COLLATE "C")
                     AND confirmed_email IS NOT DISTINCT FROM email AND deletion_due_at IS NULL
               UNION ALL
               (SELECT id FROM subscribers
                WHERE lower(email COLLATE "C") = lower($1 COLLATE "C")
                      AND confirmed_email IS DISTINCT FROM email AND deletion_due_at IS NULL
                ORDER BY id LIMIT $2)
           )
           ORDER BY confirmed_email IS NOT DISTINCT FROM email DESC, id"#,
        email,
        unconfirmed,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| subscriber_of!(row)).collect())
}

/// A subscriber.
pub async fn find(
    connection: &mut PgConnection,
    id: SubscriberId,
) -> Result<Option<Subscriber>, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT id, label, email, api_secret_sealed, payprov_customer_id, subscription_status,
                created_at, credentials_since, suspended_at, suspension_reason,
                deletion_due_at, max_requests_per_second
         FROM subscribers WHERE id = $1",
        id.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| subscriber_of!(row)))
}

/// All subscribers, oldest first.
pub async fn list(connection: &mut PgConnection) -> Result<Vec<Subscriber>, sqlx::Error> {
    let rows = sqlx::query!(
        "SELECT id, label, email, api_secret_sealed, payprov_customer_id, subscription_status,
                created_at, credentials_since, suspended_at, suspension_reason,
                deletion_due_at, max_requests_per_second
         FROM subscribers ORDER BY id",
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| subscriber_of!(row)).collect())
}

/// The subscriber that signed up most recently.
pub async fn newest(connection: &mut PgConnection) -> Result<Option<Subscriber>, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT id, label, email, api_secret_sealed, payprov_customer_id, subscription_status,
                created_at, credentials_since, suspended_at, suspension_reason,
                deletion_due_at, max_requests_per_second
         FROM subscribers ORDER BY id DESC LIMIT 1",
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| subscriber_of!(row)))
}

/// Replaces the API secret. No two have the same time, which identifies requests authenticated by an earlier one.
pub async fn replace_api_secret(
    connection: &mut PgConnection,
    id: SubscriberId,
    sealed: &[u8],
    digest: &[u8],
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE subscribers
         SET api_secret_sealed = $2, api_secret_digest = $3,
             credentials_since = greatest($4, credentials_since + interval '1 microsecond')
         WHERE id = $1",
        id.0,
        sealed,
        digest,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Locks a subscriber's row until the transaction ends, so that no app is created for it meanwhile; `false` if it was
/// deleted.
pub async fn lock(connection: &mut PgConnection, id: SubscriberId) -> Result<bool, sqlx::Error> {
    let locked = sqlx::query_scalar!("SELECT id FROM subscribers WHERE id = $1 FOR UPDATE", id.0)
        .fetch_optional(connection)
        .await?;
    Ok(locked.is_some())
}

/// Deletes a subscriber whose apps are already deleted.
pub async fn delete(connection: &mut PgConnection, id: SubscriberId) -> Result<(), sqlx::Error> {
    sqlx::query!("DELETE FROM subscribers WHERE id = $1", id.0)
        .execute(connection)
        .await?;
    Ok(())
}
