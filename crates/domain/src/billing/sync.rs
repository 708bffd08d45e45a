//! Fetches the provider's state. Each fetch has a number, taken before it begins: its result is stored only if no later
//! fetch's result was. So the newest result stays, whatever the order of the responses.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod payment_method;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;

use self::payment_method::has_payment_method;
use super::lifecycle::{Trigger, transition};
use super::{Billing, BillingError};
use mailgate_providers::payprov::objects::{Invoice, Subscription};
use mailgate_providers::payprov::{PayprovClient, PayprovError};
use mailgate_storage::billing_jobs::{self, JobKind};
use mailgate_storage::database::transaction;
use mailgate_storage::subscribers::billing::{self, BillingAccount};
use mailgate_types::ids::SubscriberId;
use mailgate_types::subscription::SubscriptionStatus;

/// How long the fetched state is considered current, and the same once the subscription has ended.
const EVERY: TimeDelta = TimeDelta::hours(1);
const EVERY_ENDED: TimeDelta = TimeDelta::hours(24);

/// Maximum stored ids of subscriptions besides the current one.
const OTHERS: usize = 10;

/// How long after one of the subscription's dates the provider is queried, to give it time to act.
const AFTER_DATE: TimeDelta = TimeDelta::minutes(1);

/// The provider's state of a customer.
#[derive(Debug)]
pub(super) struct ProviderSnapshot {
    pub(super) subscription: Subscription,
    pub(super) status: SubscriptionStatus,
    /// The known subscription, if it was found to have ended and this one replaces it.
    pub(super) instead_of: Option<String>,
    /// There is a payment method for it.
    pub(super) has_payment_method: bool,
    /// An open invoice of it whose payment failed.
    pub(super) failed_invoice: Option<Invoice>,
    /// Other living subscriptions of the customer that bill mailboxes.
    pub(super) others: Vec<String>,
}

impl ProviderSnapshot {
    fn has_ended(&self) -> bool {
        self.status == SubscriptionStatus::Canceled
    }

    pub(super) fn in_trial(&self) -> bool {
        self.subscription.status == "trialing"
    }
}

/// The objects of a customer that an event refers to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hint<'a> {
    pub(super) subscription: Option<&'a str>,
    pub(super) invoice: Option<&'a str>,
}

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

/// Fetches the current subscription: the known one, or once that has ended the newest that has not.
async fn see(
    client: &PayprovClient,
    account: &BillingAccount,
    customer: &str,
    hint: Hint<'_>,
) -> Result<Option<ProviderSnapshot>, PayprovError> {
    let known = async {
        match &account.subscription_id {
            Some(id) => client.subscription(id).await.map(Some),
            None => Ok(None),
        }
    };
    let (known, mut all) = tokio::try_join!(known, client.subscriptions(customer))?;
    // The provider's list may not yet contain the subscription of an event.
    if let Some(id) = hint.subscription
        && account.subscription_id.as_deref() != Some(id)
        && all.iter().all(|other| other.id != id)
        && let Some(hinted) = existing(client.subscription(id).await)?
    {
        all.push(hinted);
    }
    all.retain(|other| other.customer_id() == customer);
    all.sort_by_key(|other| std::cmp::Reverse((other.is_alive(), other.created)));
    let newest = all.first().cloned();
    let chosen = match (known, newest) {
        (Some(known), _) if known.is_alive() => Some(known),
        (Some(_), Some(newest)) if newest.is_alive() => Some(newest),
        (None, newest) => newest,
        (known, _) => known,
    };
    let Some(subscription) = chosen else {
        return Ok(None);
    };
    let others = others(&all, &subscription, client.price());
    let has_payment_method = has_payment_method(client, &subscription, customer).await?;
    let mut failed_invoice = None;
    let known = account.failed_invoice_id.as_deref();
    for id in [hint.invoice, known].into_iter().flatten() {
        if failed_invoice.is_none() {
            failed_invoice = existing(client.invoice(id).await)?.filter(|invoice| {
                invoice.is_open() && invoice.subscription_id() == Some(&subscription.id)
            });
        }
    }
    let status = status(&subscription, has_payment_method, failed_invoice.is_some())?;
    let known = account.subscription_id.clone();
    Ok(Some(ProviderSnapshot {
        instead_of: known.filter(|known| *known != subscription.id),
        subscription,
        status,
        has_payment_method,
        failed_invoice,
        others,
    }))
}

/// The living subscriptions of a customer that bill mailboxes beside this one, which lives.
fn others(all: &[Subscription], counts: &Subscription, price: &str) -> Vec<String> {
    let others = all.iter().filter(|other| {
        counts.is_alive()
            && other.is_alive()
            && other.id != counts.id
            && other.is_of_mailboxes(price)
    });
    others.map(|other| other.id.clone()).take(OTHERS).collect()
}

/// `None` if the provider reports that the object doesn't exist.
fn existing<T>(answer: Result<T, PayprovError>) -> Result<Option<T>, PayprovError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Maps the provider's status to ours. A trial with a payment method counts as active, since it will turn into a paid
/// subscription. While an invoice whose payment failed is open, the subscription counts as past due.
fn status(
    subscription: &Subscription,
    has_payment_method: bool,
    has_failed_invoice: bool,
) -> Result<SubscriptionStatus, PayprovError> {
    use SubscriptionStatus as S;
    let status = match subscription.status.as_str() {
        "trialing" if has_payment_method => S::Active,
        "trialing" => S::Trialing,
        "active" => S::Active,
        "past_due" | "incomplete" | "paused" => S::PastDue,
        "unpaid" => S::Unpaid,
        "canceled" | "incomplete_expired" => S::Canceled,
        _ => {
            let text = "a subscription has a status of no known name";
            return Err(PayprovError::Nonsense(text.to_owned()));
        }
    };
    match status {
        S::Active | S::Trialing if has_failed_invoice => Ok(S::PastDue),
        status => Ok(status),
    }
}

/// Writes the fetched state to the account. A different subscription replaces the known one only if that has ended, and
/// only if it isn't older.
fn record(account: &mut BillingAccount, seen: &ProviderSnapshot, price: &str) {
    let subscription = &seen.subscription;
    if account.subscription_id.as_ref() != Some(&subscription.id) {
        // As stored, or as this very fetch has found it.
        let has_ended = account.status == Some(SubscriptionStatus::Canceled)
            || (seen.instead_of.is_some() && seen.instead_of == account.subscription_id);
        let is_later = subscription.created >= account.subscription_created_at;
        let replaces = has_ended && is_later && !seen.has_ended();
        if account.subscription_id.is_some() && !replaces {
            return;
        }
        tracing::info!(
            subscriber_id = %account.subscriber,
            subscription_id = subscription.id,
            "the subscriber has a new subscription"
        );
        if has_ended {
            account.status = None;
        }
        account.subscription_id = Some(subscription.id.clone());
        account.subscription_created_at = subscription.created;
    }
    let trigger = trigger(account, seen);
    // An unknown transition leaves the status unchanged; an update from the provider is always known.
    if let Ok(transition) = transition(account.status, trigger) {
        if account.status != transition.to {
            tracing::info!(
                subscriber_id = %account.subscriber,
                subscription_id = subscription.id,
                from = account.status.map(SubscriptionStatus::as_str),
                to = transition.to.map(SubscriptionStatus::as_str),
                ?trigger,
                "a subscription has another status"
            );
        }
        account.status = transition.to;
    }
    account.trial_end = subscription.trial_end;
    account.current_period_end = subscription.current_period_end();
    account.cancel_at_period_end = subscription.is_canceled();
    account.billed_quantity = subscription.item(price).and_then(|item| item.quantity);
    account.failed_invoice_id = seen
        .failed_invoice
        .as_ref()
        .map(|invoice| invoice.id.clone());
    report_others(account, seen);
}

/// Reports, when it changes, that a customer is charged for more than one subscription. The operator must decide which
/// one is wrong.
fn report_others(account: &mut BillingAccount, seen: &ProviderSnapshot) {
    if account.other_subscription_ids == seen.others {
        return;
    }
    let (subscriber, subscription) = (account.subscriber, &seen.subscription.id);
    if seen.others.is_empty() {
        tracing::info!(subscriber_id = %subscriber, subscription_id = subscription, "the subscriber has one living subscription again");
    } else {
        let others = seen.others.join(" ");
        tracing::error!(subscriber_id = %subscriber, subscription_id = subscription, others, "the subscriber has more than one living subscription at the payment provider, and is charged for each");
    }
    account.other_subscription_ids.clone_from(&seen.others);
}

/// The trigger, derived from the stored and the fetched state.
fn trigger(account: &BillingAccount, seen: &ProviderSnapshot) -> Trigger {
    use SubscriptionStatus as S;
    match (account.status, seen.status) {
        (Some(_), S::Canceled) if account.cancel_at_period_end => Trigger::PeriodEnded,
        (Some(S::Trialing), S::Canceled) => Trigger::TrialEnded,
        (_, S::Canceled) => Trigger::Deleted,
        (Some(S::Trialing), S::Active) if seen.in_trial() => Trigger::PaymentMethodAdded,
        (Some(S::Trialing | S::PastDue | S::Unpaid), S::Active) => Trigger::PaymentSucceeded,
        (_, status) => Trigger::Updated(status),
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
    use serde_json::json;
    use uuid::Uuid;

    fn subscription(id: &str, status: &str, created: i64) -> Subscription {
        serde_json::from_value(json!({
            "id": id, "status": status, "customer": "cus_1", "created": created,
            "items": { "data": [{ "id": "si_1", "quantity": 2 }] },
        }))
        .unwrap()
    }

    fn seen(id: &str, status: &str, created: i64) -> ProviderSnapshot {
        let subscription = subscription(id, status, created);
        ProviderSnapshot {
            status: super::status(&subscription, false, false).unwrap(),
            subscription,
            instead_of: None,
            has_payment_method: false,
            failed_invoice: None,
            others: Vec::new(),
        }
    }

    fn account() -> BillingAccount {
        BillingAccount {
            subscriber: SubscriberId(Uuid::nil()),
            label: String::new(),
            email: String::new(),
            customer_id: Some("cus_1".to_owned()),
            status: Some(SubscriptionStatus::Trialing),
            subscription_id: None,
            subscription_created_at: None,
            trial_end: None,
            current_period_end: None,
            grace_ends_at: None,
            cancel_at_period_end: false,
            billed_quantity: None,
            failed_invoice_id: None,
            other_subscription_ids: Vec::new(),
            look: 1,
            applied_look: 0,
            is_deleted: false,
            renewal_stopped: false,
        }
    }

    #[test]
    fn the_providers_words() {
        use SubscriptionStatus as S;
        for (word, paying, failed, expected) in [
            ("trialing", false, false, Some(S::Trialing)),
            ("trialing", true, false, Some(S::Active)),
            ("trialing", true, true, Some(S::PastDue)),
            ("active", false, false, Some(S::Active)),
            ("active", true, true, Some(S::PastDue)),
            ("past_due", true, false, Some(S::PastDue)),
            ("incomplete", true, false, Some(S::PastDue)),
            ("paused", true, false, Some(S::PastDue)),
            ("unpaid", true, true, Some(S::Unpaid)),
            ("canceled", true, true, Some(S::Canceled)),
            ("incomplete_expired", false, false, Some(S::Canceled)),
            ("else", false, false, None),
        ] {
            let subscription = subscription("sub_1", word, 1);
            assert_eq!(
                status(&subscription, paying, failed).ok(),
                expected,
                "{word}"
            );
        }
    }

    #[test]
    fn only_a_later_subscription_takes_the_place_of_one_that_has_ended() {
        use SubscriptionStatus as S;
        let mut account = account();
        let mut step = |id: &str, status: &str, created| {
            record(&mut account, &seen(id, status, created), "price_1");
            (account.subscription_id.clone().unwrap(), account.status)
        };
        let is = |id: &str, status| (id.to_owned(), Some(status));
        assert_eq!(step("sub_b", "active", 20), is("sub_b", S::Active));
        assert_eq!(
            step("sub_c", "past_due", 30),
            is("sub_b", S::Active),
            "another"
        );
        assert_eq!(step("sub_b", "canceled", 20), is("sub_b", S::Canceled));
        assert_eq!(
            step("sub_b", "active", 20),
            is("sub_b", S::Canceled),
            "revived"
        );
        assert_eq!(
            step("sub_a", "active", 10),
            is("sub_b", S::Canceled),
            "older"
        );
        assert_eq!(
            step("sub_c", "canceled", 30),
            is("sub_b", S::Canceled),
            "ended"
        );
        assert_eq!(step("sub_c", "past_due", 30), is("sub_c", S::PastDue));
    }

    #[test]
    fn an_end_and_a_new_beginning_may_be_seen_at_once() {
        for (instead_of, replaced) in [(None, false), (Some("sub_x"), false), (Some("sub_a"), true)]
        {
            let mut account = account();
            record(&mut account, &seen("sub_a", "active", 10), "price_1");
            let next = ProviderSnapshot {
                instead_of: instead_of.map(str::to_owned),
                ..seen("sub_b", "past_due", 20)
            };
            record(&mut account, &next, "price_1");
            let is_next = account.subscription_id.as_deref() == Some("sub_b");
            assert_eq!(is_next, replaced, "{instead_of:?}");
            assert_eq!(
                account.status == Some(SubscriptionStatus::PastDue),
                replaced
            );
        }
    }

    #[test]
    fn others_live_beside_one_that_lives_and_bill_the_same() {
        let of = |id: &str, status: &str, price: &str| -> Subscription {
            serde_json::from_value(json!({
                "id": id, "status": status, "customer": "cus_1", "created": 1,
                "items": { "data": [{ "id": "si_1", "price": { "id": price } }] },
            }))
            .unwrap()
        };
        let all = [
            of("sub_a", "active", "price_1"),
            of("sub_b", "past_due", "price_1"),
            of("sub_c", "canceled", "price_1"),
            of("sub_d", "active", "price_of_something_else"),
            of("sub_e", "incomplete_expired", "price_1"),
        ];
        assert_eq!(others(&all, &all[0], "price_1"), ["sub_b"]);
        assert_eq!(others(&all, &all[1], "price_1"), ["sub_a"]);
        assert!(others(&all, &all[2], "price_1").is_empty());
        let many: Vec<Subscription> = (0..50)
            .map(|number| of(&format!("sub_{number}"), "active", "price_1"))
            .collect();
        assert_eq!(others(&many, &many[0], "price_1").len(), OTHERS);
    }

    #[test]
    fn the_next_look_is_within_the_hour_and_after_each_date() {
        let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let mut account = account();
        assert_eq!(next_look(&account, now), now + EVERY);
        account.trial_end = Some(now - TimeDelta::days(1));
        account.current_period_end = Some(now + TimeDelta::minutes(10));
        assert_eq!(next_look(&account, now), now + TimeDelta::minutes(11));
        account.status = Some(SubscriptionStatus::Canceled);
        assert_eq!(next_look(&account, now), now + EVERY_ENDED);
    }
}
