//! Runs the jobs that are due at the provider: each one once, however many processes there are.

use chrono::{DateTime, TimeDelta, Utc};
use tracing::Instrument as _;

use super::backoff::LEASE;
use super::{Billing, BillingError};
use mailgate_storage::billing_jobs::{self, Job, JobKind};
use mailgate_storage::database::outage::trouble;
use mailgate_types::ids::SubscriberId;

/// How long a request may be in transit to the provider, with a wide margin: its sender's lease is shorter.
const ARRIVES_WITHIN: TimeDelta = TimeDelta::hours(1);

/// Subscribers without a subscription found in one round.
const MISSING: i64 = 1_000;

/// When a finished job runs once more: a request in transit when a subscriber was deleted may arrive after its
/// subscriptions were ended, and nothing else would end a subscription that it creates.
fn again(job: &Job) -> Option<DateTime<Utc>> {
    match job.kind {
        JobKind::End => Some(job.created_at + ARRIVES_WITHIN),
        JobKind::Provision | JobKind::Quantity => None,
    }
}

impl Billing {
    /// Claims some jobs that are due.
    pub async fn claim_jobs(&self, limit: usize) -> Result<Vec<Job>, sqlx::Error> {
        if !self.is_configured() {
            return Ok(Vec::new());
        }
        let now = self.clock.now();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut connection = self.pool.acquire().await?;
        billing_jobs::claim(&mut connection, now, now + LEASE, limit).await
    }

    /// Runs a claimed job, or postpones it.
    pub async fn work_job(&self, job: Job) {
        let (subscriber, kind) = (job.subscriber, job.kind.as_str());
        let done = match job.kind {
            JobKind::Provision => self.provision(&job).await,
            JobKind::Quantity => self.sync_quantity(&job).await,
            JobKind::End => self.end_subscriptions(&job).await,
        };
        // A deleted subscriber leaves nothing to do.
        let is_done = matches!(done, Ok(()) | Err(BillingError::Gone));
        let outcome = if is_done { "done" } else { "failed" };
        metrics::counter!("mailgate_billing_jobs_total", "kind" => kind, "outcome" => outcome)
            .increment(1);
        let stored = async {
            let mut connection = self.pool.acquire().await?;
            match &done {
                Ok(()) | Err(BillingError::Gone) => {
                    let now = self.clock.now();
                    // By the earlier of two clocks, and without checking all the time.
                    match again(&job).filter(|again| *again > self.clock.agreed()) {
                        Some(again) => {
                            let again = again.max(now + TimeDelta::minutes(1));
                            billing_jobs::postpone(&mut connection, &job, again).await
                        }
                        None => billing_jobs::finish(&mut connection, &job, now).await,
                    }
                }
                Err(error) => {
                    trouble!(warn, error, subscriber_id = %subscriber, kind, attempts = job.attempts, "a billing job failed and will be retried");
                    let again = self.next_attempt_at(job.attempts, error);
                    billing_jobs::postpone(&mut connection, &job, again).await
                }
            }
        };
        // If this fails, the job becomes due again when its lease expires.
        if let Err(error) = stored.await {
            trouble!(error, error, subscriber_id = %subscriber, kind, "the outcome of a billing job can't be stored");
        }
    }

    /// Creates the customer and the subscription of a new subscriber without waiting for a worker. If it fails, a
    /// worker retries it.
    pub async fn provision_now(&self, subscriber: SubscriberId) {
        if !self.is_configured() {
            return;
        }
        let billing = self.clone();
        let task = async move {
            let now = billing.clock.now();
            let claimed = async {
                let mut connection = billing.pool.acquire().await?;
                let kind = JobKind::Provision;
                billing_jobs::claim_one(&mut connection, subscriber, kind, now, now + LEASE).await
            };
            match claimed.await {
                Ok(Some(job)) => billing.work_job(job).await,
                // A worker already claimed it.
                Ok(None) => {}
                Err(error) => {
                    trouble!(error, error, subscriber_id = %subscriber, "a subscription can't be created immediately");
                }
            }
        };
        let task = self.tracker.spawn(task.in_current_span());
        // The task continues even after the caller stops waiting.
        drop(tokio::time::timeout(super::provision::AT_ONCE, task).await);
    }

    /// Enqueues jobs for subscribers who have no subscription yet.
    pub async fn find_unbilled(&self) -> Result<(), sqlx::Error> {
        if !self.is_configured() {
            return Ok(());
        }
        let mut connection = self.pool.acquire().await?;
        let now = self.clock.now();
        let found = billing_jobs::enqueue_missing(&mut connection, now, MISSING).await?;
        if found > 0 {
            tracing::info!(
                subscribers = found,
                "subscriptions will be created for subscribers without one"
            );
        }
        Ok(())
    }
}
