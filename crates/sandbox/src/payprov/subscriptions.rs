//! `/v1/subscriptions`.

use axum::http::StatusCode;
use serde_json::Value;

use super::ledger::{Ledger, new_id};
use super::lifecycle::{PaymentOutcome, month_after};
use super::objects::{
    EndBehavior, Item, Metadata, MissingPaymentMethod, Price, Recurring, Status, Subscription,
    TrialSettings,
};
use super::parameters::Parameters;
use super::refusal::Refusal;

/// The only price: per mailbox and month.
pub(super) const PRICE: &str = "price_sandbox_mailbox";

/// Its amount, in cents.
const UNIT_AMOUNT: i64 = 500;

const CURRENCY: &str = "eur";

/// Longest trial that the real provider accepts, in days.
const TRIAL_DAYS: i64 = 730;

const DAY: i64 = 24 * 60 * 60;

/// The handling of a failed first payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstPayment {
    /// It is kept as incomplete.
    Allow,
    /// It is not created.
    Error,
    /// No payment is attempted yet.
    Wait,
}

/// The proration behaviors; none of them creates an invoice here.
const PRORATIONS: [(&str, ()); 3] = [
    ("none", ()),
    ("create_prorations", ()),
    ("always_invoice", ()),
];

fn price() -> Price {
    Price {
        id: PRICE.to_owned(),
        object: "price".to_owned(),
        active: true,
        kind: "recurring".to_owned(),
        currency: CURRENCY.to_owned(),
        billing_scheme: "per_unit".to_owned(),
        unit_amount: UNIT_AMOUNT,
        unit_amount_decimal: UNIT_AMOUNT.to_string(),
        recurring: Recurring {
            interval: "month".to_owned(),
            interval_count: 1,
            usage_type: "licensed".to_owned(),
        },
    }
}

/// The only price, as the API shows it.
pub(super) fn show_price(id: &str, parameters: &Parameters) -> Result<Value, Refusal> {
    parameters.done()?;
    if id == PRICE {
        Ok(serde_json::json!(price()))
    } else {
        Err(Refusal::missing(
            StatusCode::NOT_FOUND,
            "price",
            "price",
            id,
        ))
    }
}

fn known_price(id: &str) -> Result<(), Refusal> {
    if id == PRICE {
        return Ok(());
    }
    let parameter = "items[0][price]";
    Err(Refusal::missing(
        StatusCode::BAD_REQUEST,
        "price",
        parameter,
        id,
    ))
}

fn missing_payment_method(
    parameters: &mut Parameters,
) -> Result<Option<MissingPaymentMethod>, Refusal> {
    parameters.choice(
        "trial_settings[end_behavior][missing_payment_method]",
        &[
            ("cancel", MissingPaymentMethod::Cancel),
            ("create_invoice", MissingPaymentMethod::CreateInvoice),
            ("pause", MissingPaymentMethod::Pause),
        ],
    )
}

fn first_payment(parameters: &mut Parameters) -> Result<FirstPayment, Refusal> {
    let choice = parameters.choice(
        "payment_behavior",
        &[
            ("allow_incomplete", FirstPayment::Allow),
            ("error_if_incomplete", FirstPayment::Error),
            ("default_incomplete", FirstPayment::Wait),
        ],
    )?;
    Ok(choice.unwrap_or(FirstPayment::Allow))
}

fn trial_end(parameters: &mut Parameters, now: i64) -> Result<Option<i64>, Refusal> {
    if let Some(days) = parameters.number::<i64>("trial_period_days")? {
        if !(0..=TRIAL_DAYS).contains(&days) {
            let text = format!("The maximum number of trial period days is {TRIAL_DAYS}.");
            let parameter = "trial_period_days";
            return Err(Refusal::parameter(
                parameter,
                "parameter_invalid_integer",
                text,
            ));
        }
        return Ok((days > 0).then_some(now + days * DAY));
    }
    match parameters.text("trial_end").as_deref() {
        None | Some("now") => Ok(None),
        Some(moment) => match moment.parse::<i64>() {
            Ok(moment) if moment > now => Ok(Some(moment)),
            _ => Err(Refusal::parameter(
                "trial_end",
                "parameter_invalid_integer",
                "Invalid timestamp: must be an integer Unix timestamp in the future.",
            )),
        },
    }
}

impl Ledger {
    pub(super) fn create_subscription(
        &mut self,
        parameters: &mut Parameters,
        now: i64,
    ) -> Result<Value, Refusal> {
        let customer = parameters.required("customer")?;
        let price = parameters.required("items[0][price]")?;
        let quantity = parameters.number("items[0][quantity]")?.unwrap_or(1);
        let missing = missing_payment_method(parameters)?;
        let behavior = first_payment(parameters)?;
        let trial_end = trial_end(parameters, now)?;
        let default_payment_method = parameters.text("default_payment_method");
        parameters.choice("off_session", &[("true", ()), ("false", ())])?;
        parameters.choice("proration_behavior", &PRORATIONS)?;
        let method = [("charge_automatically", ())];
        parameters.choice("collection_method", &method)?;
        let metadata = parameters.metadata();
        parameters.done()?;
        self.known_customer(&customer)?;
        known_price(&price)?;
        if let Some(method) = &default_payment_method {
            self.payment_method_of(&customer, "default_payment_method", method)?;
        }
        let subscription = Subscription {
            trial_settings: TrialSettings {
                end_behavior: EndBehavior {
                    missing_payment_method: missing.unwrap_or(MissingPaymentMethod::CreateInvoice),
                },
            },
            default_payment_method,
            metadata,
            ..new_subscription(customer, quantity, trial_end, now)
        };
        let id = subscription.id.clone();
        let can_pay = subscription.default_payment_method.is_some()
            || self
                .known_customer(&subscription.customer)?
                .invoice_settings
                .default_payment_method
                .is_some();
        if trial_end.is_none()
            && subscription.amount() > 0
            && !can_pay
            && behavior != FirstPayment::Wait
        {
            let text = "This customer has no attached payment source or default payment method. Please consider adding a default payment method.";
            return Err(Refusal::parameter("customer", "resource_missing", text));
        }
        if trial_end.is_none() && behavior == FirstPayment::Error {
            self.may_be_paid(&subscription)?;
        }
        self.begin(subscription, behavior, now);
        self.shown_subscription(&id)
    }

    /// Checks whether the first payment would succeed.
    fn may_be_paid(&self, subscription: &Subscription) -> Result<(), Refusal> {
        let customer = self.known_customer(&subscription.customer)?;
        let method = subscription
            .default_payment_method
            .as_ref()
            .or(customer.invoice_settings.default_payment_method.as_ref())
            .and_then(|id| self.payment_methods.get(id));
        match method.map(super::objects::PaymentMethod::pays) {
            Some(PaymentOutcome::Paid) => Ok(()),
            _ if subscription.amount() == 0 => Ok(()),
            Some(PaymentOutcome::ActionRequired) => Err(Refusal::card(
                "subscription_payment_intent_requires_action",
                "Payment for this subscription requires additional user action before it can be completed successfully.",
            )),
            _ => Err(Refusal::card("card_declined", "Your card was declined.")),
        }
    }

    /// The first payment follows the subscription's event, and may change it.
    fn begin(&mut self, subscription: Subscription, behavior: FirstPayment, now: i64) {
        let id = subscription.id.clone();
        let pays_at_once = subscription.status == Status::Incomplete;
        let is_free = subscription.amount() == 0;
        let shown = subscription.shown();
        self.subscriptions.insert(id.clone(), subscription);
        self.happened("customer.subscription.created", shown, None, now);
        if !pays_at_once {
            return;
        }
        if let Some(invoice) = self.make_invoice(&id, "subscription_create", now)
            && (is_free || behavior != FirstPayment::Wait)
        {
            self.attempt(&invoice, None, None, now);
        }
    }

    fn shown_subscription(&self, id: &str) -> Result<Value, Refusal> {
        self.object(id)
            .ok_or_else(|| Refusal::missing(StatusCode::NOT_FOUND, "subscription", "id", id))
    }

    pub(super) fn show_subscription(
        &self,
        id: &str,
        parameters: &Parameters,
    ) -> Result<Value, Refusal> {
        parameters.done()?;
        self.shown_subscription(id)
    }

    /// Newest first; without a status filter, those that have not ended.
    pub(super) fn list_subscriptions(&self, parameters: &mut Parameters) -> Vec<Value> {
        let customer = parameters.text("customer");
        let price = parameters.text("price");
        let status = parameters.text("status");
        let fits = |subscription: &&Subscription| match status.as_deref() {
            None => !subscription.status.is_final(),
            Some("all") => true,
            Some("ended") => subscription.status.is_final(),
            Some(word) => subscription.status.as_str() == word,
        };
        let subscriptions = self.subscriptions.values().rev();
        subscriptions
            .filter(|subscription| {
                let of_customer = customer.as_ref();
                of_customer.is_none_or(|customer| *customer == subscription.customer)
            })
            .filter(|_| price.as_ref().is_none_or(|price| price == PRICE))
            .filter(fits)
            .map(Subscription::shown)
            .collect()
    }

    pub(super) fn change_subscription_by_request(
        &mut self,
        id: &str,
        parameters: &mut Parameters,
        now: i64,
    ) -> Result<Value, Refusal> {
        let current = self.subscription(id)?.clone();
        let item = parameters.text("items[0][id]");
        let price = parameters.text("items[0][price]");
        let quantity = parameters.number("items[0][quantity]")?;
        let cancel = parameters.flag("cancel_at_period_end")?;
        let default_payment_method = parameters.text("default_payment_method");
        let missing = missing_payment_method(parameters)?;
        let trial = parameters.text("trial_end");
        parameters.choice("proration_behavior", &PRORATIONS)?;
        parameters.choice(
            "payment_behavior",
            &[
                ("allow_incomplete", ()),
                ("error_if_incomplete", ()),
                ("default_incomplete", ()),
                ("pending_if_incomplete", ()),
            ],
        )?;
        parameters.choice("off_session", &[("true", ()), ("false", ())])?;
        let metadata = parameters.metadata();
        parameters.done()?;
        if current.status.is_final() {
            let text =
                "A canceled subscription can only update its cancellation_details and metadata.";
            return Err(Refusal::invalid(text));
        }
        if let Some(price) = &price {
            known_price(price)?;
        }
        if let Some(item) = &item
            && current.items.iter().all(|found| found.id != *item)
        {
            let status = StatusCode::BAD_REQUEST;
            return Err(Refusal::missing(
                status,
                "subscription_item",
                "items[0][id]",
                item,
            ));
        }
        if quantity.is_some() && item.is_none() {
            // The real provider would add a second item.
            let text = "items[0][id] is missing: without it another item would be added, and this stand-in keeps one.";
            return Err(Refusal::parameter(
                "items[0][id]",
                "parameter_missing",
                text,
            ));
        }
        if let Some(method) = &default_payment_method
            && !method.is_empty()
        {
            self.payment_method_of(&current.customer, "default_payment_method", method)?;
        }
        let trial = match trial.as_deref() {
            None => None,
            Some("now") => Some(now),
            Some(moment) => Some(moment.parse::<i64>().map_err(|_| {
                Refusal::parameter("trial_end", "parameter_invalid_integer", "Invalid integer")
            })?),
        };
        self.change_subscription(id, now, |subscription| {
            if let Some(quantity) = quantity {
                for item in &mut subscription.items {
                    item.quantity = quantity;
                }
            }
            if let Some(cancel) = cancel {
                subscription.cancel_at_period_end = cancel;
                subscription.cancel_at = cancel.then_some(subscription.current_period_end);
                subscription.canceled_at = cancel.then_some(now);
            }
            if let Some(method) = default_payment_method {
                subscription.default_payment_method = Some(method).filter(|id| !id.is_empty());
            }
            if let Some(missing) = missing {
                let end = &mut subscription.trial_settings.end_behavior;
                end.missing_payment_method = missing;
            }
            if let Some(end) = trial.filter(|end| *end > now) {
                subscription.trial_end = Some(end);
                let start = subscription.current_period_start;
                subscription.set_period(start, end);
            }
            subscription.metadata.extend(metadata);
            subscription.metadata.retain(|_, value| !value.is_empty());
        });
        if trial.is_some_and(|end| end <= now) && current.status == Status::Trialing {
            self.end_trial(id, None, now);
        }
        self.shown_subscription(id)
    }

    pub(super) fn cancel_subscription(
        &mut self,
        id: &str,
        parameters: &mut Parameters,
        now: i64,
    ) -> Result<Value, Refusal> {
        parameters.flag("invoice_now")?;
        parameters.flag("prorate")?;
        parameters.done()?;
        if self.subscription(id)?.status.is_final() {
            let status = StatusCode::NOT_FOUND;
            return Err(Refusal::missing(status, "subscription", "id", id));
        }
        self.end(id, now);
        self.shown_subscription(id)
    }
}

fn new_subscription(
    customer: String,
    quantity: u32,
    trial_end: Option<i64>,
    now: i64,
) -> Subscription {
    let id = new_id("sub");
    let period_end = trial_end.unwrap_or_else(|| month_after(now));
    Subscription {
        object: "subscription".to_owned(),
        created: now,
        livemode: false,
        customer,
        status: if trial_end.is_some() {
            Status::Trialing
        } else {
            Status::Incomplete
        },
        collection_method: "charge_automatically".to_owned(),
        currency: CURRENCY.to_owned(),
        default_payment_method: None,
        items: vec![Item {
            id: new_id("si"),
            object: "subscription_item".to_owned(),
            created: now,
            subscription: id.clone(),
            price: price(),
            quantity,
            current_period_start: now,
            current_period_end: period_end,
            metadata: Metadata::default(),
        }],
        start_date: now,
        billing_cycle_anchor: period_end,
        current_period_start: now,
        current_period_end: period_end,
        trial_start: trial_end.map(|_| now),
        trial_end,
        trial_settings: TrialSettings {
            end_behavior: EndBehavior {
                missing_payment_method: MissingPaymentMethod::CreateInvoice,
            },
        },
        cancel_at_period_end: false,
        cancel_at: None,
        canceled_at: None,
        ended_at: None,
        latest_invoice: None,
        metadata: Metadata::default(),
        id,
    }
}
