//! Fetches the provider's state. Each fetch has a number, taken before it begins: its result is stored only if no later
//! fetch's result was. So the newest result stays, whatever the order of the responses.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod record;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;

use self::record::record;
use super::snapshot::{Hint, ProviderSnapshot, see};
use super::{Billing, BillingError};
use mailgate_storage::billing_jobs::{self, JobKind};
use mailgate_storage::database::transaction;
use mailgate_storage::subscribers::billing::{self, BillingAccount, details};
use mailgate_types::ids::SubscriberId;
use mailgate_types::subscription::SubscriptionStatus;

/// How long the fetched state is considered current, and the same once the subscription has ended.
const EVERY: TimeDelta = TimeDelta::hours(1);
const EVERY_ENDED: TimeDelta = TimeDelta::hours(24);

/// How long after one of the subscription's dates the provider is queried, to give it time to act.
const AFTER_DATE: TimeDelta = TimeDelta::minutes(1);

/// The result of a fetch.
#[derive(Debug)]
pub(super) struct SyncRun {
    /// The account as it was when the fetch began, with the fetch's number.
    pub(super) begun: BillingAccount,
    /// The provider's state; `None` if there is no subscription.
    pub(super) seen: Option<ProviderSnapshot>,
}

impl Billing {
    /// Fetches the provider's state and stores it.
    pub(super) async fn look(
        &self,
        subscriber: SubscriberId,
    ) -> Result<(BillingAccount, Option<ProviderSnapshot>), BillingError> {
        let look = self.begin_look(subscriber, Hint::default()).await?;
        let mut transaction = transaction::begin(&self.pool).await?;
        let mut account = billing::lock(&mut transaction, subscriber)
            .await?
            .ok_or(BillingError::Gone)?;
        self.store_look(&mut transaction, &mut account, &look)
            .await?;
        transaction.commit().await?;
        Ok((account, look.seen))
    }

    /// Fetches the provider's state; nothing is stored yet.
    pub(super) async fn begin_look(
        &self,
        subscriber: SubscriberId,
        hint: Hint<'_>,
    ) -> Result<SyncRun, BillingError> {
        let client = &self.payprov()?.client;
        let begun = {
            let mut connection = self.pool.acquire().await?;
            billing::begin_look(&mut connection, subscriber).await?
        };
        let begun = begun.ok_or(BillingError::Gone)?;
        let seen = match &begun.customer_id {
            Some(customer) => see(client, &begun, customer, hint).await?,
            None => None,
        };
        Ok(SyncRun { begun, seen })
    }

    /// Stores the result of a fetch, under the lock of `account`; `false` if a later one's is already stored.
    pub(super) async fn store_look(
        &self,
        connection: &mut PgConnection,
        account: &mut BillingAccount,
        look: &SyncRun,
    ) -> Result<bool, BillingError> {
        if look.begun.look <= account.applied_look {
            return Ok(false);
        }
        let now = self.clock.now();
        account.applied_look = look.begun.look;
        if let Some(seen) = &look.seen {
            let client = &self.payprov()?.client;
            record(account, seen, client.price());
            if !seen.has_ended() {
                self.compare_quantity(connection, account).await?;
            }
        }
        let grace = self.payprov()?.past_due_grace_days;
        billing::store(connection, account, now, next_look(account, now), grace).await?;
        if let Some(seen) = &look.seen
            && account.subscription_id.as_ref() == Some(&seen.subscription.id)
        {
            let mut shown = seen.details.clone();
            if !seen.is_due_known && seen.instead_of.is_none() {
                // The last known amount says more than none.
                let stored = details::find(connection, account.subscriber).await?;
                shown.due = stored.and_then(|stored| stored.due).or(shown.due);
            }
            details::store(connection, account.subscriber, &shown).await?;
        }
        Ok(true)
    }

    /// Has the quantity corrected if the provider's differs, and whether the subscription renews.
    async fn compare_quantity(
        &self,
        connection: &mut PgConnection,
        account: &BillingAccount,
    ) -> Result<(), BillingError> {
        let subscriber = account.subscriber;
        let quantity = billing::quantity(connection, subscriber).await?;
        let is_pending =
            billing_jobs::is_pending(connection, subscriber, JobKind::Quantity).await?;
        let differs = account.billed_quantity != Some(quantity);
        // A pending update is not drift.
        if is_pending || !differs && !account.renews_wrongly() {
            return Ok(());
        }
        if differs {
            metrics::counter!("mailgate_billing_quantity_drift_total").increment(1);
            tracing::warn!(
                subscriber_id = %subscriber,
                billed = account.billed_quantity,
                quantity,
                "the provider bills a different quantity than there are mailboxes; it is corrected"
            );
        }
        let now = self.clock.now();
        billing_jobs::enqueue(connection, subscriber, JobKind::Quantity, None, now).await?;
        self.wake();
        Ok(())
    }
}

/// When to fetch again without an event: within the hour, and after each date of the subscription; daily once it has
/// ended.
fn next_look(account: &BillingAccount, now: DateTime<Utc>) -> DateTime<Utc> {
    if account.status == Some(SubscriptionStatus::Canceled) {
        return now + EVERY_ENDED;
    }
    [account.trial_end, account.current_period_end]
        .into_iter()
        .flatten()
        .filter_map(|date| date.checked_add_signed(AFTER_DATE))
        .filter(|date| *date > now)
        .fold(now + EVERY, Ord::min)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_next_look_is_within_the_hour_and_after_each_date() {
        let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let mut account = fuzzing::new_account();
        assert_eq!(next_look(&account, now), now + EVERY);
        account.trial_end = Some(now - TimeDelta::days(1));
        account.current_period_end = Some(now + TimeDelta::minutes(10));
        assert_eq!(next_look(&account, now), now + TimeDelta::minutes(11));
        account.status = Some(SubscriptionStatus::Canceled);
        assert_eq!(next_look(&account, now), now + EVERY_ENDED);
    }
}
