//! The effects of time, payments and their failures on subscriptions and invoices.
//!
//! The real provider retries a failed payment by itself; here nothing happens until a developer triggers a payment or
//! gives up.

use chrono::{DateTime, Months, Utc};
use serde_json::{Value, json};

use super::ledger::{Ledger, new_id};
use super::objects::{
    Invoice, InvoiceParent, InvoiceStatus, MissingPaymentMethod, Status, StatusTransitions,
    Subscription, SubscriptionDetails,
};

/// How long before the end of a trial its owner is reminded, in seconds.
const REMINDER: i64 = 3 * 24 * 60 * 60;

/// How long the first payment may stay open, in seconds.
const FIRST_PAYMENT: i64 = 23 * 60 * 60;

/// Maximum number of steps at a time: a clock that was advanced by years needs several.
const STEPS: usize = 200;

/// The outcome of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PaymentOutcome {
    /// It succeeds.
    Paid,
    /// It is declined with this code.
    Declined(&'static str),
    /// Its owner must confirm it.
    ActionRequired,
}

/// One month after a time in seconds since 1970.
pub(super) fn month_after(moment: i64) -> i64 {
    DateTime::<Utc>::from_timestamp(moment, 0)
        .and_then(|moment| moment.checked_add_months(Months::new(1)))
        .map_or(moment, |moment| moment.timestamp())
}

impl Subscription {
    /// The object as shown by the API.
    pub(super) fn shown(&self) -> Value {
        let mut shown = json!(self);
        shown["items"] = json!({
            "object": "list",
            "url": format!("/v1/subscription_items?subscription={}", self.id),
            "has_more": false,
            "data": self.items,
        });
        shown
    }

    /// The amount of one period.
    pub(super) fn amount(&self) -> i64 {
        self.items
            .iter()
            .map(|item| item.price.unit_amount * i64::from(item.quantity))
            .sum()
    }

    pub(super) fn quantity(&self) -> u32 {
        self.items.iter().map(|item| item.quantity).sum()
    }

    /// Sets the period of the subscription and its items.
    pub(super) fn set_period(&mut self, start: i64, end: i64) {
        (self.current_period_start, self.current_period_end) = (start, end);
        for item in &mut self.items {
            (item.current_period_start, item.current_period_end) = (start, end);
        }
    }
}

impl Ledger {
    /// Advances every subscription to the time `now`.
    pub(super) fn pass_time(&mut self, now: i64) {
        let ids: Vec<String> = self
            .subscriptions
            .values()
            .filter(|subscription| !subscription.status.is_final())
            .map(|subscription| subscription.id.clone())
            .collect();
        for id in ids {
            for _ in 0..STEPS {
                if !self.step(&id, now) {
                    break;
                }
            }
        }
    }

    /// Returns whether something was due.
    fn step(&mut self, id: &str, now: i64) -> bool {
        let Some(subscription) = self.subscriptions.get(id) else {
            return false;
        };
        let end = subscription.current_period_end;
        match subscription.status {
            Status::Trialing => {
                let trial_end = subscription.trial_end.unwrap_or(end);
                if now >= trial_end {
                    self.end_trial(id, None, trial_end);
                    return true;
                }
                if now >= trial_end - REMINDER && !self.reminded.contains(id) {
                    self.remind(id, now);
                }
                false
            }
            Status::Active | Status::PastDue if now >= end => {
                if subscription.cancel_at_period_end {
                    self.end(id, end);
                } else {
                    self.renew(id, None, end);
                }
                true
            }
            Status::Incomplete if now >= subscription.created + FIRST_PAYMENT => {
                let at = subscription.created + FIRST_PAYMENT;
                self.change_subscription(id, at, |subscription| {
                    subscription.status = Status::IncompleteExpired;
                    subscription.ended_at = Some(at);
                });
                self.void_invoices(id, at);
                false
            }
            _ => false,
        }
    }

    /// Changes a subscription and emits an event with its previous values.
    pub(super) fn change_subscription(
        &mut self,
        id: &str,
        at: i64,
        change: impl FnOnce(&mut Subscription),
    ) {
        let Some(subscription) = self.subscriptions.get_mut(id) else {
            return;
        };
        let before = subscription.shown();
        change(subscription);
        let after = subscription.shown();
        let previous = difference(&before, &after);
        if previous
            .as_object()
            .is_some_and(|fields| !fields.is_empty())
        {
            self.happened("customer.subscription.updated", after, Some(previous), at);
        }
    }

    /// Announces that the trial will end.
    pub(super) fn remind(&mut self, id: &str, at: i64) {
        if let Some(subscription) = self.subscriptions.get(id) {
            let shown = subscription.shown();
            self.reminded.insert(id.to_owned());
            self.happened("customer.subscription.trial_will_end", shown, None, at);
        }
    }

    /// Ends a trial. `outcome` overrides whether the card pays; otherwise the settings and the card decide.
    pub(super) fn end_trial(&mut self, id: &str, outcome: Option<PaymentOutcome>, at: i64) {
        let Some(subscription) = self.subscriptions.get(id) else {
            return;
        };
        let missing = subscription
            .trial_settings
            .end_behavior
            .missing_payment_method;
        if subscription.cancel_at_period_end {
            self.end(id, at);
            return;
        }
        let has_card = outcome.is_some() || self.payment_method_for(id).is_some();
        match missing {
            MissingPaymentMethod::Cancel if !has_card => self.end(id, at),
            MissingPaymentMethod::Pause if !has_card => {
                self.change_subscription(id, at, |subscription| {
                    subscription.status = Status::Paused;
                    subscription.trial_end = Some(at);
                });
            }
            _ => {
                self.change_subscription(id, at, |subscription| {
                    subscription.trial_end = Some(at);
                    subscription.status = Status::Active;
                    subscription.set_period(at, month_after(at));
                    subscription.billing_cycle_anchor = at;
                });
                self.charge(id, "subscription_cycle", outcome, at);
            }
        }
    }

    /// Starts the next period and charges for it.
    pub(super) fn renew(&mut self, id: &str, outcome: Option<PaymentOutcome>, at: i64) {
        self.change_subscription(id, at, |subscription| {
            subscription.set_period(at, month_after(at));
        });
        self.charge(id, "subscription_cycle", outcome, at);
    }

    /// Ends a subscription for good; its open invoices will not be collected any more.
    pub(super) fn end(&mut self, id: &str, at: i64) {
        let Some(subscription) = self.subscriptions.get_mut(id) else {
            return;
        };
        if subscription.status.is_final() {
            return;
        }
        subscription.status = Status::Canceled;
        subscription.canceled_at = subscription.canceled_at.or(Some(at));
        subscription.ended_at = Some(at);
        let shown = subscription.shown();
        self.happened("customer.subscription.deleted", shown, None, at);
    }

    /// Gives up collecting an open invoice.
    pub(super) fn give_up(&mut self, id: &str, at: i64) {
        self.change_subscription(id, at, |subscription| {
            if subscription.status == Status::PastDue {
                subscription.status = Status::Unpaid;
            }
        });
    }

    /// Creates the invoice of the subscription's current period, and charges it immediately.
    pub(super) fn charge(
        &mut self,
        subscription: &str,
        reason: &str,
        outcome: Option<PaymentOutcome>,
        at: i64,
    ) -> Option<PaymentOutcome> {
        let invoice = self.make_invoice(subscription, reason, at)?;
        Some(self.attempt(&invoice, None, outcome, at))
    }

    /// Creates an open invoice and returns its id.
    pub(super) fn make_invoice(&mut self, id: &str, reason: &str, at: i64) -> Option<String> {
        let subscription = self.subscriptions.get_mut(id)?;
        let amount = subscription.amount();
        self.invoices_made += 1;
        let invoice = Invoice {
            id: new_id("in"),
            object: "invoice".to_owned(),
            created: at,
            livemode: false,
            number: format!("SANDBOX-{:04}", self.invoices_made),
            customer: subscription.customer.clone(),
            customer_email: self
                .customers
                .get(&subscription.customer)
                .and_then(|customer| customer.email.clone()),
            subscription: id.to_owned(),
            parent: InvoiceParent {
                kind: "subscription_details".to_owned(),
                subscription_details: SubscriptionDetails {
                    subscription: id.to_owned(),
                },
            },
            status: InvoiceStatus::Open,
            billing_reason: reason.to_owned(),
            collection_method: "charge_automatically".to_owned(),
            currency: subscription.currency.clone(),
            total: amount,
            amount_due: amount,
            amount_paid: 0,
            amount_remaining: amount,
            attempt_count: 0,
            attempted: false,
            period_start: subscription.current_period_start,
            period_end: subscription.current_period_end,
            status_transitions: StatusTransitions {
                finalized_at: Some(at),
                ..StatusTransitions::default()
            },
            hosted_invoice_url: String::new(),
            metadata: subscription.metadata.clone(),
        };
        subscription.latest_invoice = Some(invoice.id.clone());
        let invoice = Invoice {
            hosted_invoice_url: format!("{}/invoices/{}", self.address, invoice.id),
            ..invoice
        };
        let made = invoice.id.clone();
        for kind in ["invoice.created", "invoice.finalized"] {
            self.happened(kind, json!(invoice), None, at);
        }
        self.invoices.insert(made.clone(), invoice);
        Some(made)
    }

    /// Charges an open invoice to `method`, or else to the subscription's card. `outcome` overrides the card's.
    pub(super) fn attempt(
        &mut self,
        invoice: &str,
        method: Option<&str>,
        outcome: Option<PaymentOutcome>,
        at: i64,
    ) -> PaymentOutcome {
        let Some(found) = self.invoices.get(invoice) else {
            return PaymentOutcome::Declined("resource_missing");
        };
        let card = method
            .and_then(|id| self.payment_methods.get(id))
            .or_else(|| self.payment_method_for(&found.subscription));
        let outcome = match (outcome, card) {
            (Some(outcome), _) => outcome,
            (None, _) if found.amount_remaining == 0 => PaymentOutcome::Paid,
            (None, None) => PaymentOutcome::Declined("missing_payment_method"),
            (None, Some(card)) => card.pays(),
        };
        if let Some(invoice) = self.invoices.get_mut(invoice) {
            invoice.attempt_count += 1;
            invoice.attempted = true;
        }
        match outcome {
            PaymentOutcome::Paid => self.settle(invoice, at),
            PaymentOutcome::Declined(_) => {
                self.payment_failed(invoice, "invoice.payment_failed", at);
            }
            PaymentOutcome::ActionRequired => {
                self.payment_failed(invoice, "invoice.payment_action_required", at);
            }
        }
        outcome
    }

    fn settle(&mut self, id: &str, at: i64) {
        let Some(invoice) = self.invoices.get_mut(id) else {
            return;
        };
        invoice.status = InvoiceStatus::Paid;
        invoice.status_transitions.paid_at = Some(at);
        invoice.amount_paid = invoice.amount_due;
        invoice.amount_remaining = 0;
        let (shown, subscription) = (json!(invoice), invoice.subscription.clone());
        for kind in ["invoice.paid", "invoice.payment_succeeded"] {
            self.happened(kind, shown.clone(), None, at);
        }
        let is_latest = self
            .subscriptions
            .get(&subscription)
            .is_some_and(|found| found.latest_invoice.as_deref() == Some(id));
        self.change_subscription(&subscription, at, |subscription| {
            let waits = matches!(
                subscription.status,
                Status::PastDue | Status::Unpaid | Status::Incomplete
            );
            if waits && is_latest {
                subscription.status = Status::Active;
            }
        });
    }

    fn payment_failed(&mut self, id: &str, event: &str, at: i64) {
        let Some(invoice) = self.invoices.get(id) else {
            return;
        };
        let (shown, subscription) = (json!(invoice), invoice.subscription.clone());
        self.happened(event, shown, None, at);
        self.change_subscription(&subscription, at, |subscription| {
            if matches!(subscription.status, Status::Active | Status::Trialing) {
                subscription.status = Status::PastDue;
            }
        });
    }

    fn void_invoices(&mut self, subscription: &str, at: i64) {
        let invoices = self.invoices.values_mut();
        for invoice in invoices.filter(|invoice| invoice.subscription == subscription) {
            if invoice.status == InvoiceStatus::Open {
                invoice.status = InvoiceStatus::Void;
                invoice.status_transitions.voided_at = Some(at);
            }
        }
    }
}

/// The fields of `before` that differ in `after`.
fn difference(before: &Value, after: &Value) -> Value {
    let fields = before.as_object().into_iter().flatten();
    fields
        .filter(|(name, value)| after.get(name.as_str()) != Some(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect::<serde_json::Map<String, Value>>()
        .into()
}
