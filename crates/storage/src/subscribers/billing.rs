//! The table `subscribers`: the state of a subscriber's subscription. Requests for a new one are in [`renewals`].

pub mod details;
pub mod renewals;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::SubscriberId;
use mailgate_types::subscription::SubscriptionStatus;

/// A subscriber's account at the payment provider, as last seen.
#[derive(Debug, Clone)]
pub struct BillingAccount {
    /// The subscriber.
    pub subscriber: SubscriberId,
    /// Display name.
    pub label: String,
    /// Contact address.
    pub email: String,
    /// The provider's customer id.
    pub customer_id: Option<String>,
    /// The subscription status; `None` without a subscription.
    pub status: Option<SubscriptionStatus>,
    /// The current subscription.
    pub subscription_id: Option<String>,
    /// When the provider created it.
    pub subscription_created_at: Option<DateTime<Utc>>,
    /// When the trial ends or ended.
    pub trial_end: Option<DateTime<Utc>>,
    /// The end of the paid period.
    pub current_period_end: Option<DateTime<Utc>>,
    /// The end of the grace period after a failed payment.
    pub grace_ends_at: Option<DateTime<Utc>>,
    /// Whether it ends with the period.
    pub cancel_at_period_end: bool,
    /// The billed quantity last seen at the provider.
    pub billed_quantity: Option<i64>,
    /// The invoice whose payment failed.
    pub failed_invoice_id: Option<String>,
    /// Living subscriptions of the customer besides the current one.
    pub other_subscription_ids: Vec<String>,
    /// The number of the latest sync with the provider that was begun.
    pub look: i64,
    /// The number of the newest sync whose result is stored.
    pub applied_look: i64,
    /// Whether the operator has deleted it, and it can be restored.
    pub is_deleted: bool,
    /// Whether the subscription doesn't renew because of the deletion.
    pub renewal_stopped: bool,
}

impl BillingAccount {
    /// Whether a living subscription renews although its subscriber is deleted, or doesn't although it is restored.
    #[must_use]
    pub fn renews_wrongly(&self) -> bool {
        if self.is_deleted {
            !self.cancel_at_period_end
        } else {
            self.renewal_stopped
        }
    }
}

/// The account of a row that has its columns.
macro_rules! account_of {
    ($row:ident) => {
        BillingAccount {
            subscriber: SubscriberId($row.id),
            label: $row.label,
            email: $row.email,
            customer_id: $row.payprov_customer_id,
            status: $row
                .subscription_status
                .and_then(|status| status.parse().ok()),
            subscription_id: $row.payprov_subscription_id,
            subscription_created_at: $row.payprov_subscription_created_at,
            trial_end: $row.trial_end,
            current_period_end: $row.current_period_end,
            grace_ends_at: $row.grace_ends_at,
            cancel_at_period_end: $row.cancel_at_period_end,
            billed_quantity: $row.billed_quantity,
            failed_invoice_id: $row.failed_invoice_id,
            other_subscription_ids: $row.payprov_other_subscription_ids.unwrap_or_default(),
            look: $row.payprov_look,
            applied_look: $row.payprov_applied_look,
            is_deleted: $row.is_deleted,
            renewal_stopped: $row.renewal_stopped,
        }
    };
}

/// A subscriber's account.
pub async fn find(
    connection: &mut PgConnection,
    id: SubscriberId,
) -> Result<Option<BillingAccount>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT id, label, email, payprov_customer_id, subscription_status,
                payprov_subscription_id, payprov_subscription_created_at, trial_end,
                current_period_end, grace_ends_at, cancel_at_period_end, billed_quantity, failed_invoice_id,
                payprov_other_subscription_ids, payprov_look, payprov_applied_look,
                deletion_due_at IS NOT NULL AS "is_deleted!", renewal_stopped
         FROM subscribers WHERE id = $1"#,
        id.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| account_of!(row)))
}

/// As [`find`], locked until the transaction ends.
pub async fn lock(
    connection: &mut PgConnection,
    id: SubscriberId,
) -> Result<Option<BillingAccount>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT id, label, email, payprov_customer_id, subscription_status,
                payprov_subscription_id, payprov_subscription_created_at, trial_end,
                current_period_end, grace_ends_at, cancel_at_period_end, billed_quantity, failed_invoice_id,
                payprov_other_subscription_ids, payprov_look, payprov_applied_look,
                deletion_due_at IS NOT NULL AS "is_deleted!", renewal_stopped
         FROM subscribers WHERE id = $1 FOR NO KEY UPDATE"#,
        id.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| account_of!(row)))
}

/// Begins a sync with the provider: returns the account as it is, with the sync's number.
pub async fn begin_look(
    connection: &mut PgConnection,
    id: SubscriberId,
) -> Result<Option<BillingAccount>, sqlx::Error> {
    let row = sqlx::query!(
        r#"UPDATE subscribers SET payprov_look = payprov_look + 1 WHERE id = $1
         RETURNING id, label, email, payprov_customer_id, subscription_status,
                   payprov_subscription_id, payprov_subscription_created_at, trial_end,
                   current_period_end, grace_ends_at, cancel_at_period_end, billed_quantity, failed_invoice_id,
                   payprov_other_subscription_ids, payprov_look, payprov_applied_look,
                   deletion_due_at IS NOT NULL AS "is_deleted!", renewal_stopped"#,
        id.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| account_of!(row)))
}

/// The subscriber of a provider's customer.
pub async fn find_by_customer(
    connection: &mut PgConnection,
    customer_id: &str,
) -> Result<Option<SubscriberId>, sqlx::Error> {
    let id = sqlx::query_scalar!(
        "SELECT id FROM subscribers WHERE payprov_customer_id = $1",
        customer_id,
    )
    .fetch_optional(connection)
    .await?;
    Ok(id.map(SubscriberId))
}

/// Sets the provider's customer of a subscriber that has none; returns the one that it now has, or `None` if the
/// subscriber was deleted.
pub async fn set_customer(
    connection: &mut PgConnection,
    id: SubscriberId,
    customer_id: &str,
) -> Result<Option<String>, sqlx::Error> {
    let noted = sqlx::query_scalar!(
        "UPDATE subscribers SET payprov_customer_id = coalesce(payprov_customer_id, $2)
         WHERE id = $1 RETURNING payprov_customer_id",
        id.0,
        customer_id,
    )
    .fetch_optional(connection)
    .await?;
    Ok(noted.flatten())
}

/// When the result of a sync was last stored; `None` if that isn't known.
pub async fn looked_at(
    connection: &mut PgConnection,
    id: SubscriberId,
) -> Result<Option<DateTime<Utc>>, sqlx::Error> {
    let at = sqlx::query_scalar!(
        "SELECT payprov_looked_at FROM subscribers WHERE id = $1",
        id.0
    )
    .fetch_optional(connection)
    .await?;
    Ok(at.flatten())
}

/// Stores the result of a sync at `now`, with its number and the time of the next one. The days of `grace` begin when
/// the payment of a subscription in good standing fails; they don't restart before it is in good standing again.
pub async fn store(
    connection: &mut PgConnection,
    account: &BillingAccount,
    now: DateTime<Utc>,
    next_look: DateTime<Utc>,
    grace: u32,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE subscribers
         SET subscription_status = $2, payprov_subscription_id = $3,
             payprov_subscription_created_at = $4, trial_end = $5, current_period_end = $6,
             cancel_at_period_end = $7, billed_quantity = $8, failed_invoice_id = $9,
             payprov_applied_look = $10, payprov_look_due_at = $11,
             payprov_looked_at = $12, payprov_other_subscription_ids = nullif($13::text[], '{}'),
             grace_ends_at = CASE
                 WHEN $2 IS DISTINCT FROM 'past_due' THEN NULL
                 WHEN subscription_status IN ('trialing', 'active')
                 THEN $12::timestamptz + make_interval(days => nullif($14, 0))
                 ELSE grace_ends_at
             END
         WHERE id = $1",
        account.subscriber.0,
        account.status.map(SubscriptionStatus::as_str),
        account.subscription_id,
        account.subscription_created_at,
        account.trial_end,
        account.current_period_end,
        account.cancel_at_period_end,
        account.billed_quantity,
        account.failed_invoice_id,
        account.applied_look,
        next_look,
        now,
        &account.other_subscription_ids,
        i32::try_from(grace).unwrap_or(i32::MAX),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The number of mailboxes that a subscriber is billed for: the active ones of all its apps.
pub async fn quantity(connection: &mut PgConnection, id: SubscriberId) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM mailboxes JOIN apps ON apps.id = app_id
           WHERE subscriber_id = $1 AND status = 'active'"#,
        id.0,
    )
    .fetch_one(connection)
    .await
}

/// Claims subscribers whose next sync is due, and postpones it to `again`.
pub async fn claim_due_looks(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    again: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<SubscriberId>, sqlx::Error> {
    let ids = sqlx::query_scalar!(
        "UPDATE subscribers SET payprov_look_due_at = $2
         WHERE id IN (
             SELECT id FROM subscribers WHERE payprov_look_due_at <= $1
             ORDER BY payprov_look_due_at LIMIT $3
             FOR NO KEY UPDATE SKIP LOCKED
         )
         RETURNING id",
        now,
        again,
        limit,
    )
    .fetch_all(connection)
    .await?;
    Ok(ids.into_iter().map(SubscriberId).collect())
}

/// Subscribers whose customer has more than one living subscription.
#[derive(Debug, Clone)]
pub struct DoublyCharged {
    /// Their number, 100,000 at most.
    pub count: u32,
    /// The first of them.
    pub first: Option<SubscriberId>,
}

/// Counts them, as the last syncs saw it.
pub async fn doubly_charged(connection: &mut PgConnection) -> Result<DoublyCharged, sqlx::Error> {
    // In index order, so that nothing else is scanned.
    let row = sqlx::query!(
        r#"SELECT (SELECT count(*) FROM (
                      SELECT FROM subscribers WHERE payprov_other_subscription_ids IS NOT NULL
                      ORDER BY id LIMIT 100000
                  ) AS sample) AS "count!",
                  (SELECT id FROM subscribers WHERE payprov_other_subscription_ids IS NOT NULL
                   ORDER BY id LIMIT 1) AS first"#,
    )
    .fetch_one(connection)
    .await?;
    Ok(DoublyCharged {
        count: u32::try_from(row.count).unwrap_or(u32::MAX),
        first: row.first.map(SubscriberId),
    })
}
