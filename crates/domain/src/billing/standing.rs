//! The status of a subscription.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;

use super::lifecycle::State;
use super::{Billing, BillingError};
use mailgate_storage::subscribers::billing::{self, BillingAccount, details};
use mailgate_types::billing_details::BillingDetails;
use mailgate_types::ids::SubscriberId;
use mailgate_types::money::AmountDue;
use mailgate_types::subscription::{
    SendingPermission, Subscription, SubscriptionStatus, sending_permission,
};

/// A banner is shown if the trial ends within this time.
const ENDS_SOON: TimeDelta = TimeDelta::days(3);

/// The status of a subscription as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Sending is allowed.
    pub allowed: bool,
    /// `None` if there is no subscription.
    pub status: State,
    /// The subscriber should be shown a banner.
    pub show_banner: bool,
}

/// The stored state of a subscription, for when the provider is unavailable.
#[derive(Debug, Clone)]
pub struct StoredSubscription {
    /// The subscriber is the provider's customer.
    pub has_payprov: bool,
    /// `None` if there is none yet.
    pub subscription: Option<LiveSubscription>,
    /// The billed quantity that the provider last reported.
    pub billed_quantity: Option<i64>,
    /// Mailboxes that are connected now.
    pub quantity: i64,
    /// When it was fetched; `None` if that isn't known.
    pub fetched_at: Option<DateTime<Utc>>,
    /// When sending stops after a failed payment.
    pub grace_ends_at: Option<DateTime<Utc>>,
    /// Sending is allowed.
    pub allowed: bool,
    /// What the provider said beside it; `None` if it wasn't fetched yet.
    pub details: Option<BillingDetails>,
}

/// An invoice of a customer.
#[derive(Debug, Clone)]
pub struct ListedInvoice {
    /// Its number, or empty.
    pub number: String,
    /// The provider's status: `open`, `paid`, `void`, `uncollectible`, or empty.
    pub status: String,
    /// Its total.
    pub total: Option<AmountDue>,
    /// When it was issued.
    pub at: Option<DateTime<Utc>>,
    /// The provider's page for it.
    pub url: Option<String>,
}

/// A subscription, as the provider has it now.
#[derive(Debug, Clone)]
pub struct LiveSubscription {
    /// Its status.
    pub status: State,
    /// The provider's id.
    pub id: String,
    /// The end of the paid period.
    pub current_period_end: Option<DateTime<Utc>>,
    /// It ends with the period.
    pub cancel_at_period_end: bool,
    /// When the trial ends or ended.
    pub trial_end: Option<DateTime<Utc>>,
}

impl Billing {
    /// The stored status of a subscriber's subscription; the provider is not called.
    pub async fn standing(&self, subscriber: SubscriberId) -> Result<Standing, BillingError> {
        let account = {
            let mut connection = self.pool.acquire().await?;
            billing::find(&mut connection, subscriber).await?
        };
        let account = account.ok_or(BillingError::Gone)?;
        Ok(standing(&account, self.clock.now()))
    }

    /// The subscription as the provider has it now, and whether the subscriber is billed at all.
    pub async fn live(
        &self,
        subscriber: SubscriberId,
    ) -> Result<(bool, Option<LiveSubscription>), BillingError> {
        if !self.is_configured() {
            return Ok((false, None));
        }
        let (account, _) = self.look(subscriber).await?;
        Ok((account.customer_id.is_some(), subscription(account)))
    }

    /// The latest invoices of a subscriber, newest first; without drafts, which have no number yet.
    pub async fn latest_invoices(
        &self,
        subscriber: SubscriberId,
        limit: u32,
    ) -> Result<Vec<ListedInvoice>, BillingError> {
        let client = &self.payprov()?.client;
        let account = {
            let mut connection = self.pool.acquire().await?;
            billing::find(&mut connection, subscriber).await?
        };
        let account = account.ok_or(BillingError::Gone)?;
        let Some(customer) = account.customer_id else {
            return Ok(Vec::new());
        };
        let found = client.latest_invoices(&customer, limit).await?;
        let finalized = found
            .into_iter()
            .filter(|invoice| invoice.status.as_deref() != Some("draft"));
        let listed = finalized.map(|invoice| ListedInvoice {
            number: invoice.number(),
            total: invoice.total(),
            at: invoice.finalized_at(),
            status: invoice.status.unwrap_or_default(),
            url: invoice.hosted_invoice_url,
        });
        Ok(listed.collect())
    }

    /// The subscription as it is stored, if its subscriber should be shown a banner; the provider is not called.
    pub async fn attention(
        &self,
        subscriber: SubscriberId,
    ) -> Result<Option<StoredSubscription>, BillingError> {
        let mut connection = self.pool.acquire().await?;
        let account = billing::find(&mut connection, subscriber).await?;
        let account = account.ok_or(BillingError::Gone)?;
        if !standing(&account, self.clock.now()).show_banner {
            return Ok(None);
        }
        Ok(Some(self.read(&mut connection, account).await?))
    }

    /// The subscription as it is stored; the provider is not called.
    pub async fn stored(
        &self,
        subscriber: SubscriberId,
    ) -> Result<StoredSubscription, BillingError> {
        let mut connection = self.pool.acquire().await?;
        let account = billing::find(&mut connection, subscriber).await?;
        let account = account.ok_or(BillingError::Gone)?;
        self.read(&mut connection, account).await
    }

    async fn read(
        &self,
        connection: &mut PgConnection,
        account: BillingAccount,
    ) -> Result<StoredSubscription, BillingError> {
        let subscriber = account.subscriber;
        Ok(StoredSubscription {
            allowed: standing(&account, self.clock.now()).allowed,
            grace_ends_at: account.grace_ends_at,
            details: details::find(connection, subscriber).await?,
            has_payprov: self.is_configured() && account.customer_id.is_some(),
            billed_quantity: account.billed_quantity,
            quantity: billing::quantity(connection, subscriber).await?,
            fetched_at: billing::looked_at(connection, subscriber).await?,
            subscription: subscription(account),
        })
    }
}

fn subscription(account: BillingAccount) -> Option<LiveSubscription> {
    account.subscription_id.map(|id| LiveSubscription {
        status: account.status,
        id,
        current_period_end: account.current_period_end,
        cancel_at_period_end: account.cancel_at_period_end,
        trial_end: account.trial_end,
    })
}

fn standing(account: &BillingAccount, now: DateTime<Utc>) -> Standing {
    let subscription = Subscription {
        status: account.status,
        grace_ends_at: account.grace_ends_at,
        suspension: None,
    };
    let allowed = subscription.permission(now) == SendingPermission::Allowed;
    let is_due = sending_permission(account.status) != SendingPermission::Allowed;
    let ends_soon = account.status == Some(SubscriptionStatus::Trialing)
        && account.trial_end.is_some_and(|end| end - now <= ENDS_SOON);
    Standing {
        allowed,
        status: account.status,
        show_banner: is_due || ends_soon || account.cancel_at_period_end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn banners() {
        use SubscriptionStatus as S;
        let now = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000);
        let day = TimeDelta::days(1);
        for (status, trial_end, ending, allowed, banner) in [
            (None, None, false, false, true),
            (Some(S::Trialing), Some(now + day * 4), false, true, false),
            (Some(S::Trialing), Some(now + day * 3), false, true, true),
            (Some(S::Trialing), Some(now - day), false, true, true),
            (Some(S::Trialing), None, false, true, false),
            (Some(S::Trialing), Some(now + day * 4), true, true, true),
            (Some(S::Active), Some(now + day), false, true, false),
            (Some(S::Active), None, true, true, true),
            (Some(S::PastDue), None, false, false, true),
            (Some(S::Unpaid), None, false, false, true),
            (Some(S::Canceled), None, false, false, true),
        ] {
            let account = BillingAccount {
                subscriber: SubscriberId(Uuid::nil()),
                label: String::new(),
                email: String::new(),
                customer_id: None,
                status,
                subscription_id: None,
                subscription_created_at: None,
                trial_end,
                current_period_end: None,
                grace_ends_at: None,
                cancel_at_period_end: ending,
                billed_quantity: None,
                failed_invoice_id: None,
                other_subscription_ids: Vec::new(),
                look: 0,
                applied_look: 0,
                is_deleted: false,
                renewal_stopped: false,
            };
            let expected = Standing {
                allowed,
                status,
                show_banner: banner,
            };
            assert_eq!(
                standing(&account, now),
                expected,
                "{status:?} {trial_end:?}"
            );
        }
    }
}
