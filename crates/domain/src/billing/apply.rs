//! Processes the provider's events. An event's content is not trusted: the objects that it refers to are fetched, and
//! they decide. So reordered, repeated and forged events do no harm. The subscription's new status is written in
//! [`super::sync`], the notices that follow from it here.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;

use super::backoff::LEASE;
use super::lifecycle::{Effect, Trigger, transition};
use super::receive::{
    CREATED, PAYMENT_ACTION_REQUIRED, PAYMENT_FAILED, TRIAL_WILL_END, is_of_card,
};
use super::snapshot::{Hint, ProviderSnapshot};
use super::sync::SyncRun;
use super::{Billing, BillingError};
use mailgate_storage::billing_notices;
use mailgate_storage::database::error_class::is_refusal;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::database::transaction;
use mailgate_storage::payprov_events::{self, EventState, StoredEvent};
use mailgate_storage::subscribers::billing::{self, BillingAccount};
use mailgate_types::ids::SubscriberId;
use mailgate_types::notice::{AmountDue, Notice};
use mailgate_types::past::Past;
use mailgate_types::subscription::SubscriptionStatus;

/// Attempts before an event is given up: a week of attempts five minutes apart.
const ATTEMPTS: i32 = 2_000;

/// Fetches for one event that are superseded by later ones before it fails.
const LOOKS: usize = 5;

/// Events deleted in one batch.
const BATCH: i64 = 1_000;

impl Billing {
    /// Claims some events that are due.
    pub async fn claim_events(&self, limit: usize) -> Result<Vec<StoredEvent>, sqlx::Error> {
        if !self.is_configured() {
            return Ok(Vec::new());
        }
        let now = self.clock.now();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut connection = self.pool.acquire().await?;
        payprov_events::claim(&mut connection, now, now + LEASE, limit).await
    }

    /// Processes a claimed event, or postpones it.
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
        // The database would keep refusing it for a week.
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
                payprov_events::finish(&mut connection, id, EventState::Failed).await
            } else {
                let again = self.next_attempt_at(event.attempts, &error);
                payprov_events::postpone(&mut connection, id, again).await
            }
        };
        // If this fails, the event becomes due again when its lease expires.
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
            payprov_events::finish(&mut connection, &event.id, EventState::Ignored).await?;
            return Ok(EventState::Ignored);
        };
        for _ in 0..LOOKS {
            if let Some(state) = self.try_apply(subscriber, event).await? {
                return Ok(state);
            }
        }
        Err(BillingError::CutOff)
    }

    /// `None` if a later fetch was stored first that did not know of the event's invoice.
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
        let mut transaction = transaction::begin(&self.pool).await?;
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
        payprov_events::finish(&mut transaction, &event.id, state).await?;
        transaction.commit().await?;
        Ok(Some(state))
    }

    /// Performs the effects of an event other than the status change.
    async fn follow(
        &self,
        connection: &mut PgConnection,
        before: &BillingAccount,
        look: &SyncRun,
        event: &StoredEvent,
    ) -> Result<(), BillingError> {
        let now = self.clock.now();
        // Nobody could act on it.
        if before.is_deleted {
            return Ok(());
        }
        let Some(seen) = &look.seen else {
            return Ok(());
        };
        let Some(trigger) = trigger(event, seen, now) else {
            return Ok(());
        };
        let from = match (before.status, seen.status) {
            // No notices are sent for an ended subscription.
            (_, SubscriptionStatus::Canceled) => Some(SubscriptionStatus::Canceled),
            // A new subscription has replaced it.
            (Some(SubscriptionStatus::Canceled), _) => None,
            (status, _) => status,
        };
        let Ok(transition) = transition(from, trigger) else {
            return Ok(());
        };
        for effect in transition.effects {
            let Some(notice) = notice(*effect, seen) else {
                // Every fetch records the id and compares the quantity.
                continue;
            };
            let subscriber = before.subscriber;
            if billing_notices::insert(connection, subscriber, &event.id, &notice, now).await? {
                tracing::info!(subscriber_id = %subscriber, event_id = event.id, notice = notice.kind(), "a notice was queued");
            }
        }
        Ok(())
    }

    /// Deletes events that are older than the log retention.
    pub async fn forget_events(&self) -> Result<(), sqlx::Error> {
        let kept = TimeDelta::days(self.retention_days.into());
        let past = Past::by(&self.clock).before(kept);
        let mut connection = self.pool.acquire().await?;
        while payprov_events::forget(&mut connection, past, BATCH).await? > 0 {}
        Ok(())
    }
}

/// Whether an event concerns the current subscription.
fn concerns(event: &StoredEvent, account: &BillingAccount) -> bool {
    // A card belongs to the customer, and the fetch has already handled it.
    is_of_card(&event.kind)
        || (event.subscription_id.is_some() && event.subscription_id == account.subscription_id)
}

/// The trigger of an event besides the status, if it still holds: no notice is sent for an invoice that was paid
/// meanwhile or a trial that is over.
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
            minor_units: invoice.amount_due(),
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
