//! Looks into the provider's events. What an event says is not believed: what it tells of is fetched, and
//! that decides. So their order, repeats and forgeries do no harm.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;

use super::backoff::LEASE;
use super::lifecycle::{Effect, Trigger, transition};
use super::receive::{
    CREATED, PAYMENT_ACTION_REQUIRED, PAYMENT_FAILED, TRIAL_WILL_END, is_of_card,
};
use super::sync::{Hint, ProviderSnapshot, SyncRun};
use super::{Billing, BillingError};
use crate::storage::billing_notices;
use crate::storage::outage::trouble;
use crate::storage::payprov_events::{self, EventState, StoredEvent};
use crate::storage::refusal::is_refusal;
use crate::storage::subscribers::billing::{self, BillingAccount};
use mailgate_types::ids::SubscriberId;
use mailgate_types::notice::{AmountDue, Notice};
use mailgate_types::subscription::SubscriptionStatus;

/// How often an event is taken up before it is left: a week of attempts five minutes apart.
const ATTEMPTS: i32 = 2_000;

/// Looks for one event, while later ones' outcomes come first.
const LOOKS: usize = 5;

/// Events that are forgotten together.
const BATCH: i64 = 1_000;

impl Billing {
    /// Takes up some events that are due.
    pub async fn claim_events(&self, limit: usize) -> Result<Vec<StoredEvent>, sqlx::Error> {
        if !self.is_configured() {
            return Ok(Vec::new());
        }
        let now = self.clock.now();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut connection = self.pool.acquire().await?;
        payprov_events::claim(&mut connection, now, now + LEASE, limit).await
    }

    /// Looks into an event that was taken up, or puts it off.
    pub async fn work_event(&self, event: StoredEvent) {
        let id = &event.id;
        let error = match self.apply_event(&event).await {
            Ok(state) => {
                tracing::info!(
                    event_id = id,
                    state = state.as_str(),
                    "an event was processed"
                );
                return;
            }
            Err(error) => error,
        };
        // What the database refuses for good it would refuse for a week.
        let is_refused = matches!(&error, BillingError::Database(error) if is_refusal(error));
        let given_up = is_refused || event.attempts >= ATTEMPTS;
        trouble!(
            warn,
            error,
            event_id = id,
            attempts = event.attempts,
            given_up,
            "an event can't be processed"
        );
        let stored = async {
            let mut connection = self.pool.acquire().await?;
            if given_up {
                payprov_events::settle(&mut connection, id, EventState::Failed).await
            } else {
                let again = self.next_attempt_at(event.attempts, &error);
                payprov_events::postpone(&mut connection, id, again).await
            }
        };
        // Without that it comes again when its lease has lapsed.
        if let Err(error) = stored.await {
            trouble!(error, error, event_id = id, "an event can't be postponed");
        }
    }

    async fn apply_event(&self, event: &StoredEvent) -> Result<EventState, BillingError> {
        let subscriber = match &event.customer_id {
            Some(customer) => {
                let mut connection = self.pool.acquire().await?;
                billing::find_by_customer(&mut connection, customer).await?
            }
            None => None,
        };
        let Some(subscriber) = subscriber else {
            let mut connection = self.pool.acquire().await?;
            payprov_events::settle(&mut connection, &event.id, EventState::Ignored).await?;
            return Ok(EventState::Ignored);
        };
        for _ in 0..LOOKS {
            if let Some(state) = self.try_apply(subscriber, event).await? {
                return Ok(state);
            }
        }
        Err(BillingError::CutOff)
    }

    /// `None` when a later look came first that did not know of the event's invoice.
    async fn try_apply(
        &self,
        subscriber: SubscriberId,
        event: &StoredEvent,
    ) -> Result<Option<EventState>, BillingError> {
        let hint = Hint {
            subscription: event.subscription_id.as_deref(),
            invoice: event.invoice_id.as_deref(),
        };
        let look = self.begin_look(subscriber, hint).await?;
        let mut transaction = self.pool.begin().await?;
        let mut account = billing::lock(&mut transaction, subscriber)
            .await?
            .ok_or(BillingError::Gone)?;
        let before = account.clone();
        let is_newest = self
            .store_look(&mut transaction, &mut account, &look)
            .await?;
        if !is_newest && event.invoice_id.is_some() {
            return Ok(None);
        }
        let state = if concerns(event, &account) {
            self.follow(&mut transaction, &before, &look, event).await?;
            EventState::Applied
        } else {
            EventState::Ignored
        };
        payprov_events::settle(&mut transaction, &event.id, state).await?;
        transaction.commit().await?;
        Ok(Some(state))
    }

    /// Does what follows from an event beside the status.
    async fn follow(
        &self,
        connection: &mut PgConnection,
        before: &BillingAccount,
        look: &SyncRun,
        event: &StoredEvent,
    ) -> Result<(), BillingError> {
        let now = self.clock.now();
        let Some(seen) = &look.seen else {
            return Ok(());
        };
        let Some(trigger) = trigger(event, seen, now) else {
            return Ok(());
        };
        let from = match (before.status, seen.status) {
            // Of an ended subscription nobody is told any more.
            (_, SubscriptionStatus::Canceled) => Some(SubscriptionStatus::Canceled),
            // Another one has taken its place.
            (Some(SubscriptionStatus::Canceled), _) => None,
            (status, _) => status,
        };
        let Ok(transition) = transition(from, trigger) else {
            return Ok(());
        };
        for effect in transition.effects {
            let Some(notice) = notice(*effect, seen) else {
                // The id is noted and the quantity compared by each look.
                continue;
            };
            let subscriber = before.subscriber;
            if billing_notices::insert(connection, subscriber, &event.id, &notice, now).await? {
                tracing::info!(subscriber_id = %subscriber, event_id = event.id, notice = notice.kind(), "a notice is on its way");
            }
        }
        Ok(())
    }

    /// Forgets events that are older than the log is kept.
    pub async fn forget_events(&self) -> Result<(), sqlx::Error> {
        let before = self.clock.now() - TimeDelta::days(self.retention_days.into());
        let mut connection = self.pool.acquire().await?;
        while payprov_events::forget(&mut connection, before, BATCH).await? > 0 {}
        Ok(())
    }
}

/// Whether an event tells of the subscription that counts.
fn concerns(event: &StoredEvent, account: &BillingAccount) -> bool {
    // A card is its customer's, and the look has seen to what follows from it.
    is_of_card(&event.kind)
        || (event.subscription_id.is_some() && event.subscription_id == account.subscription_id)
}

/// What an event brings beside the status, if what it tells of is still so: an invoice that was paid
/// meanwhile, or a trial that is over, is nothing to be told of.
fn trigger(event: &StoredEvent, seen: &ProviderSnapshot, now: DateTime<Utc>) -> Option<Trigger> {
    let failed = seen.failed_invoice.as_ref().map(|invoice| &invoice.id);
    let is_open = failed.is_some() && failed == event.invoice_id.as_ref();
    match event.kind.as_str() {
        CREATED => Some(Trigger::Created),
        PAYMENT_FAILED if is_open => Some(Trigger::PaymentFailed),
        PAYMENT_ACTION_REQUIRED if is_open => Some(Trigger::PaymentActionRequired),
        TRIAL_WILL_END => {
            let ends = seen.subscription.trial_end.filter(|end| *end > now);
            ends.filter(|_| seen.in_trial())
                .map(|_| Trigger::TrialWillEnd)
        }
        _ => None,
    }
}

fn notice(effect: Effect, seen: &ProviderSnapshot) -> Option<Notice> {
    let amount_due = || {
        let invoice = seen.failed_invoice.as_ref()?;
        Some(AmountDue {
            minor_units: invoice.amount_due,
            currency: invoice.currency.clone(),
        })
    };
    let invoice = seen.failed_invoice.as_ref();
    let payment_url = invoice.and_then(|invoice| invoice.hosted_invoice_url.clone());
    match effect {
        Effect::AlertNotice => Some(Notice::PaymentFailed {
            amount_due: amount_due()?,
            payment_url,
            next_attempt: invoice.and_then(|invoice| invoice.next_payment_attempt),
        }),
        Effect::PaymentLinkNotice => Some(Notice::PaymentActionRequired {
            amount_due: amount_due()?,
            payment_url,
        }),
        Effect::ReminderNotice => Some(Notice::TrialWillEnd {
            trial_end: seen.subscription.trial_end?,
            has_payment_method: seen.has_payment_method,
        }),
        _ => None,
    }
}
