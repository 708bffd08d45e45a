//! Looks at every subscription within the hour though nobody tells of it: for events that never came, dates
//! that have passed, and quantities that differ. While the provider is away all stays as it is stored: a
//! guess of ours blocks nobody.

use chrono::TimeDelta;

use super::{Billing, BillingError};
use crate::storage::outage::trouble;
use crate::storage::subscribers::billing;
use mailgate_types::ids::SubscriberId;

/// When a look that failed is made again; until then it is also nobody else's.
const AGAIN: TimeDelta = TimeDelta::minutes(5);

impl Billing {
    /// Takes up some subscribers whose subscription is due for a look.
    pub async fn claim_due_looks(&self, limit: usize) -> Result<Vec<SubscriberId>, sqlx::Error> {
        if !self.is_configured() {
            return Ok(Vec::new());
        }
        let now = self.clock.now();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut connection = self.pool.acquire().await?;
        billing::claim_due_looks(&mut connection, now, now + AGAIN, limit).await
    }

    /// Looks at a subscription that was taken up.
    pub async fn work_sync(&self, subscriber: SubscriberId) {
        match self.look(subscriber).await {
            Ok(_) | Err(BillingError::Gone) => {}
            Err(error) => {
                trouble!(warn, error, subscriber_id = %subscriber, "a subscription can't be read; nothing has changed");
            }
        }
    }
}
