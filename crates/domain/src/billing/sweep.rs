//! Fetches every subscription at least hourly, and ended ones daily, even without an event: for events that were lost,
//! dates that have passed, and quantities that differ. While the provider is unavailable the stored state stays:
//! sending is never blocked on a guess.

use chrono::TimeDelta;

use super::{Billing, BillingError};
use mailgate_storage::database::outage::trouble;
use mailgate_storage::subscribers::billing;
use mailgate_types::ids::SubscriberId;

/// When a failed fetch is retried; until then no other process claims it.
const AGAIN: TimeDelta = TimeDelta::minutes(5);

impl Billing {
    /// Claims some subscribers whose subscription is due for a fetch.
    pub async fn claim_due_looks(&self, limit: usize) -> Result<Vec<SubscriberId>, sqlx::Error> {
        if !self.is_configured() {
            return Ok(Vec::new());
        }
        let now = self.clock.now();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut connection = self.pool.acquire().await?;
        billing::claim_due_looks(&mut connection, now, now + AGAIN, limit).await
    }

    /// Fetches a claimed subscription.
    pub async fn work_sync(&self, subscriber: SubscriberId) {
        match self.look(subscriber).await {
            Ok(_) | Err(BillingError::Gone) => {}
            Err(error) => {
                trouble!(warn, error, subscriber_id = %subscriber, "a subscription can't be read; nothing has changed");
            }
        }
    }
}
