//! The provider's hosted pages that a subscriber is sent to.

use url::Url;
use uuid::Uuid;

use super::{Billing, BillingError};
use crate::accounts::audit;
use mailgate_storage::subscribers::billing;
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::ids::SubscriberId;
use mailgate_types::subscription::{SendingPermission, sending_permission};

impl Billing {
    /// A checkout page for entering a payment method. It returns to `portal_url`, with `payment=updated` on success and
    /// without it on cancellation.
    pub async fn checkout_setup(
        &self,
        subscriber: SubscriberId,
        portal_url: &str,
        author: Author,
    ) -> Result<String, BillingError> {
        let client = &self.payprov()?.client;
        let customer = self.ensure_customer(subscriber, true).await?;
        let key = format!("mailgate-checkout-{}", Uuid::new_v4());
        let updated = with_payment_updated(portal_url);
        let page = client
            .checkout_setup(&customer, &updated, portal_url, &key)
            .await?;
        self.record_page(subscriber, AuditAction::CheckoutStarted, author)
            .await?;
        Ok(page.url)
    }

    /// The provider's customer portal, for subscriptions in good standing.
    pub async fn portal(
        &self,
        subscriber: SubscriberId,
        return_url: &str,
        author: Author,
    ) -> Result<String, BillingError> {
        let client = &self.payprov()?.client;
        let account = {
            let mut connection = self.pool.acquire().await?;
            billing::find(&mut connection, subscriber).await?
        };
        let account = account.ok_or(BillingError::Gone)?;
        if sending_permission(account.status) != SendingPermission::Allowed {
            return Err(BillingError::NotInGoodStanding(account.status));
        }
        let customer = account.customer_id.ok_or(BillingError::NoSubscription)?;
        let key = format!("mailgate-portal-{}", Uuid::new_v4());
        let page = client.portal(&customer, return_url, &key).await?;
        self.record_page(subscriber, AuditAction::PortalOpened, author)
            .await?;
        Ok(page.url)
    }

    /// Records that a subscriber gets a page, unless its credential has ended.
    async fn record_page(
        &self,
        subscriber: SubscriberId,
        action: AuditAction,
        author: Author,
    ) -> Result<(), sqlx::Error> {
        let begun = audit::begin(&self.pool, author, self.clock.now()).await?;
        let entry = AuditEntry::of_subscriber(action, subscriber);
        begun.commit_change(entry).await
    }
}

/// The address with `payment=updated` added to its query.
fn with_payment_updated(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else {
        return address.to_owned();
    };
    let has_it = url
        .query_pairs()
        .any(|(name, value)| name == "payment" && value == "updated");
    if !has_it {
        url.query_pairs_mut().append_pair("payment", "updated");
    }
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_says_what_happened() {
        for (address, expected) in [
            ("https://a.example", "https://a.example/?payment=updated"),
            ("https://a.example/p", "https://a.example/p?payment=updated"),
            (
                "https://a.example/p?",
                "https://a.example/p?payment=updated",
            ),
            (
                "https://a.example/p?tab=%20b&x",
                "https://a.example/p?tab=%20b&x&payment=updated",
            ),
            (
                "https://a.example/p?tab=b#/bill?x=1",
                "https://a.example/p?tab=b&payment=updated#/bill?x=1",
            ),
            (
                "https://a.example/#top",
                "https://a.example/?payment=updated#top",
            ),
            (
                "https://a.example/?payment=updated",
                "https://a.example/?payment=updated",
            ),
        ] {
            assert_eq!(with_payment_updated(address), expected, "{address}");
        }
    }
}
