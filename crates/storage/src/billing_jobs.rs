//! The table `billing_jobs`: pending work at the payment provider. One row for each subscriber and kind of work,
//! however often the work becomes necessary.

use chrono::{DateTime, Utc};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgValueRef, Postgres};
use sqlx::{Decode, PgConnection};
use uuid::Uuid;

use super::queue_length::QueueLength;
use mailgate_types::ids::{AppId, SubscriberId, uuid_at};

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// Creates a customer and a subscription.
    Provision,
    /// Sets the quantity to the number of active mailboxes.
    Quantity,
    /// Ends the subscriptions of a deleted subscriber.
    End,
}

impl JobKind {
    /// The name that it is stored under.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Quantity => "quantity",
            Self::End => "end",
        }
    }
}

impl Decode<'_, Postgres> for JobKind {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        let text = <&str as Decode<Postgres>>::decode(value)?;
        let mut kinds = [Self::Provision, Self::Quantity, Self::End].into_iter();
        let kind = kinds.find(|kind| kind.as_str() == text);
        kind.ok_or_else(|| "no kind of billing job".into())
    }
}

/// A claimed job.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its own id, for the provider's idempotency keys.
    pub id: Uuid,
    /// The subscriber.
    pub subscriber: SubscriberId,
    /// The kind of work.
    pub kind: JobKind,
    /// For [`JobKind::End`]: the provider's customer.
    pub customer_id: Option<String>,
    /// How often it has become necessary.
    pub generation: i64,
    /// How often it was claimed, this time included.
    pub attempts: i32,
    /// For [`JobKind::Provision`]: the quantity that the first attempt requested.
    pub quantity: Option<i64>,
    /// When it first became necessary.
    pub created_at: DateTime<Utc>,
}

/// Enqueues work for a subscriber, due immediately.
pub async fn enqueue(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    kind: JobKind,
    customer_id: Option<&str>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO billing_jobs (id, subscriber_id, kind, customer_id, due_at, created_at)
         VALUES ($1, $2, $3, $4, $5, $5)
         ON CONFLICT (subscriber_id, kind) DO UPDATE
         SET generation = billing_jobs.generation + 1, due_at = EXCLUDED.due_at",
        uuid_at(now),
        subscriber.0,
        kind.as_str(),
        customer_id,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Enqueues an update of the quantity for an app's subscriber, within the transaction that changes it.
pub async fn enqueue_quantity_of_app(
    connection: &mut PgConnection,
    app: AppId,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO billing_jobs (id, subscriber_id, kind, due_at, created_at)
         SELECT $1, subscriber_id, 'quantity', $3, $3 FROM apps WHERE id = $2
         ON CONFLICT (subscriber_id, kind) DO UPDATE
         SET generation = billing_jobs.generation + 1, due_at = EXCLUDED.due_at",
        uuid_at(now),
        app.0,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Enqueues the provisioning of up to `limit` subscribers without a subscription, such as those who signed up while
/// billing was off.
pub async fn enqueue_missing(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let enqueued = sqlx::query!(
        "INSERT INTO billing_jobs (id, subscriber_id, kind, due_at, created_at)
         SELECT gen_random_uuid(), id, 'provision', $1, $1 FROM subscribers
         WHERE payprov_subscription_id IS NULL AND deletion_due_at IS NULL AND NOT EXISTS (
             SELECT 1 FROM billing_jobs WHERE subscriber_id = subscribers.id AND kind = 'provision'
         )
         ORDER BY id LIMIT $2
         ON CONFLICT (subscriber_id, kind) DO NOTHING",
        now,
        limit,
    )
    .execute(connection)
    .await?;
    Ok(enqueued.rows_affected())
}

/// Claims up to `limit` jobs that are due, for the length from `now` to `lease_until`, by the database's clock.
pub async fn claim(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    lease_until: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Job>, sqlx::Error> {
    sqlx::query_as!(
        Job,
        r#"UPDATE billing_jobs
           SET lease_until = now() + ($2::timestamptz - $1::timestamptz), attempts = attempts + 1
           WHERE (subscriber_id, kind) IN (
               SELECT subscriber_id, kind FROM billing_jobs
               WHERE due_at <= $1 AND (lease_until IS NULL OR lease_until <= now())
               ORDER BY due_at LIMIT $3
               FOR UPDATE SKIP LOCKED
           )
           RETURNING id, subscriber_id AS subscriber, kind AS "kind: JobKind", customer_id,
                     generation, attempts, quantity, created_at"#,
        now,
        lease_until,
        limit,
    )
    .fetch_all(connection)
    .await
}

/// Claims one job, due or not, unless another process has it.
pub async fn claim_one(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    kind: JobKind,
    now: DateTime<Utc>,
    lease_until: DateTime<Utc>,
) -> Result<Option<Job>, sqlx::Error> {
    sqlx::query_as!(
        Job,
        r#"UPDATE billing_jobs
           SET lease_until = now() + ($4::timestamptz - $3::timestamptz), attempts = attempts + 1
           WHERE subscriber_id = $1 AND kind = $2 AND (lease_until IS NULL OR lease_until <= now())
           RETURNING id, subscriber_id AS subscriber, kind AS "kind: JobKind", customer_id,
                     generation, attempts, quantity, created_at"#,
        subscriber.0,
        kind.as_str(),
        now,
        lease_until,
    )
    .fetch_optional(connection)
    .await
}

/// Whether a subscriber has a job of this kind.
pub async fn is_pending(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    kind: JobKind,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT 1 FROM billing_jobs WHERE subscriber_id = $1 AND kind = $2
           ) AS "exists!""#,
        subscriber.0,
        kind.as_str(),
    )
    .fetch_one(connection)
    .await
}

/// Fixes the quantity that every attempt of this job requests: the first attempt's.
pub async fn fix_quantity(
    connection: &mut PgConnection,
    job: &Job,
    quantity: i64,
) -> Result<i64, sqlx::Error> {
    let fixed = sqlx::query_scalar!(
        "UPDATE billing_jobs SET quantity = coalesce(quantity, $2) WHERE id = $1
         RETURNING quantity",
        job.id,
        quantity,
    )
    .fetch_optional(connection)
    .await?;
    Ok(fixed.flatten().unwrap_or(quantity))
}

/// Removes a finished job. If it has become necessary again meanwhile, it is due immediately instead.
pub async fn finish(
    connection: &mut PgConnection,
    job: &Job,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let done = sqlx::query!(
        "DELETE FROM billing_jobs WHERE id = $1 AND generation = $2",
        job.id,
        job.generation,
    )
    .execute(&mut *connection)
    .await?;
    if done.rows_affected() == 0 {
        sqlx::query!(
            "UPDATE billing_jobs SET lease_until = NULL, attempts = 0, due_at = $2 WHERE id = $1",
            job.id,
            now,
        )
        .execute(connection)
        .await?;
    }
    Ok(())
}

/// Returns a job to the queue, due at `due_at`, because it failed or must run twice; immediately if it has become
/// necessary again meanwhile.
pub async fn postpone(
    connection: &mut PgConnection,
    job: &Job,
    due_at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE billing_jobs
         SET lease_until = NULL, due_at = CASE WHEN generation = $2 THEN $3 ELSE due_at END
         WHERE id = $1",
        job.id,
        job.generation,
        due_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Deletes a subscriber's jobs.
pub async fn forget(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM billing_jobs WHERE subscriber_id = $1",
        subscriber.0
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// How many jobs are waiting, for the metrics.
pub async fn waiting(connection: &mut PgConnection) -> Result<QueueLength, sqlx::Error> {
    // In index order, so that nothing else is scanned.
    let row = sqlx::query!(
        r#"SELECT (SELECT count(*) FROM (
                      SELECT FROM billing_jobs ORDER BY due_at LIMIT 100000
                  ) AS sample) AS "entries!",
                  (SELECT min(due_at) FROM billing_jobs) AS due_first"#,
    )
    .fetch_one(connection)
    .await?;
    Ok(QueueLength::new(row.entries, row.due_first))
}
