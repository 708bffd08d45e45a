//! The payment provider's objects, in the shape in which its API shows them and the ledger stores them.
//!
//! Times are seconds since 1970, amounts are in the currency's smallest unit. A field that newer versions of the API
//! have moved is in both places.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The metadata that clients attach to an object.
pub(super) type Metadata = BTreeMap<String, String>;

/// A customer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Customer {
    pub(super) id: String,
    pub(super) object: String,
    pub(super) created: i64,
    pub(super) livemode: bool,
    pub(super) email: Option<String>,
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) invoice_settings: InvoiceSettings,
    pub(super) metadata: Metadata,
}

/// A customer's payment settings for invoices.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct InvoiceSettings {
    pub(super) default_payment_method: Option<String>,
}

/// A card.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PaymentMethod {
    pub(super) id: String,
    pub(super) object: String,
    pub(super) created: i64,
    pub(super) livemode: bool,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) customer: Option<String>,
    pub(super) card: CardDetails,
    pub(super) metadata: Metadata,
}

/// The details shown of a card.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CardDetails {
    pub(super) brand: String,
    pub(super) last4: String,
    pub(super) exp_month: u32,
    pub(super) exp_year: u32,
}

/// The entry of a card (a setup intent).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SetupIntent {
    pub(super) id: String,
    pub(super) object: String,
    pub(super) created: i64,
    pub(super) livemode: bool,
    pub(super) customer: Option<String>,
    pub(super) status: String,
    pub(super) usage: String,
    pub(super) payment_method: Option<String>,
    pub(super) metadata: Metadata,
}

/// A page for entering a card.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CheckoutSession {
    pub(super) id: String,
    pub(super) object: String,
    pub(super) created: i64,
    pub(super) expires_at: i64,
    pub(super) livemode: bool,
    pub(super) mode: String,
    pub(super) customer: String,
    pub(super) currency: Option<String>,
    pub(super) setup_intent: String,
    pub(super) status: String,
    pub(super) payment_status: String,
    pub(super) success_url: String,
    pub(super) cancel_url: Option<String>,
    pub(super) url: Option<String>,
    pub(super) metadata: Metadata,
}

/// A page for managing the subscription.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PortalSession {
    pub(super) id: String,
    pub(super) object: String,
    pub(super) created: i64,
    pub(super) livemode: bool,
    pub(super) customer: String,
    pub(super) return_url: String,
    pub(super) url: String,
}

/// A subscription.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Subscription {
    pub(super) id: String,
    pub(super) object: String,
    pub(super) created: i64,
    pub(super) livemode: bool,
    pub(super) customer: String,
    pub(super) status: Status,
    pub(super) collection_method: String,
    pub(super) currency: String,
    pub(super) default_payment_method: Option<String>,
    /// The API returns them as a list object.
    pub(super) items: Vec<Item>,
    pub(super) start_date: i64,
    pub(super) billing_cycle_anchor: i64,
    pub(super) current_period_start: i64,
    pub(super) current_period_end: i64,
    pub(super) trial_start: Option<i64>,
    pub(super) trial_end: Option<i64>,
    pub(super) trial_settings: TrialSettings,
    pub(super) cancel_at_period_end: bool,
    pub(super) cancel_at: Option<i64>,
    pub(super) canceled_at: Option<i64>,
    pub(super) ended_at: Option<i64>,
    pub(super) latest_invoice: Option<String>,
    pub(super) metadata: Metadata,
}

/// A subscription's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Incomplete,
    IncompleteExpired,
    Trialing,
    Active,
    PastDue,
    Unpaid,
    Paused,
    Canceled,
}

impl Status {
    /// The name in the API.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::IncompleteExpired => "incomplete_expired",
            Self::Trialing => "trialing",
            Self::Active => "active",
            Self::PastDue => "past_due",
            Self::Unpaid => "unpaid",
            Self::Paused => "paused",
            Self::Canceled => "canceled",
        }
    }

    /// Whether the status is final.
    pub(super) const fn is_final(self) -> bool {
        matches!(self, Self::Canceled | Self::IncompleteExpired)
    }
}

/// The settings for the end of a trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TrialSettings {
    pub(super) end_behavior: EndBehavior,
}

/// What happens at its end without a card.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EndBehavior {
    pub(super) missing_payment_method: MissingPaymentMethod,
}

/// What happens at the end of a trial if there is no card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MissingPaymentMethod {
    Cancel,
    CreateInvoice,
    Pause,
}

/// A subscription's one item.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) object: String,
    pub(super) created: i64,
    pub(super) subscription: String,
    pub(super) price: Price,
    pub(super) quantity: u32,
    pub(super) current_period_start: i64,
    pub(super) current_period_end: i64,
    pub(super) metadata: Metadata,
}

/// The price of one unit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Price {
    pub(super) id: String,
    pub(super) object: String,
    pub(super) active: bool,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) currency: String,
    #[serde(default)]
    pub(super) billing_scheme: String,
    pub(super) unit_amount: i64,
    #[serde(default)]
    pub(super) unit_amount_decimal: String,
    pub(super) recurring: Recurring,
}

/// The billing interval.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Recurring {
    pub(super) interval: String,
    pub(super) interval_count: u32,
    #[serde(default)]
    pub(super) usage_type: String,
}

/// The invoice of one period.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Invoice {
    pub(super) id: String,
    pub(super) object: String,
    pub(super) created: i64,
    pub(super) livemode: bool,
    pub(super) number: String,
    pub(super) customer: String,
    pub(super) customer_email: Option<String>,
    pub(super) subscription: String,
    pub(super) parent: InvoiceParent,
    pub(super) status: InvoiceStatus,
    pub(super) billing_reason: String,
    pub(super) collection_method: String,
    pub(super) currency: String,
    pub(super) total: i64,
    pub(super) amount_due: i64,
    pub(super) amount_paid: i64,
    pub(super) amount_remaining: i64,
    pub(super) attempt_count: u32,
    pub(super) attempted: bool,
    pub(super) period_start: i64,
    pub(super) period_end: i64,
    #[serde(default)]
    pub(super) status_transitions: StatusTransitions,
    pub(super) hosted_invoice_url: String,
    pub(super) metadata: Metadata,
}

/// When an invoice's status changed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names in the API")]
pub(super) struct StatusTransitions {
    pub(super) finalized_at: Option<i64>,
    pub(super) marked_uncollectible_at: Option<i64>,
    pub(super) paid_at: Option<i64>,
    pub(super) voided_at: Option<i64>,
}

/// The place of an invoice's subscription in newer versions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct InvoiceParent {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) subscription_details: SubscriptionDetails,
}

/// An invoice's subscription.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SubscriptionDetails {
    pub(super) subscription: String,
}

/// An invoice's status. There are no drafts: each invoice is finalized immediately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InvoiceStatus {
    Open,
    Paid,
    Void,
}

impl InvoiceStatus {
    /// The name in the API.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paid => "paid",
            Self::Void => "void",
        }
    }
}

/// An event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Event {
    pub(super) id: String,
    pub(super) object: String,
    pub(super) created: i64,
    pub(super) livemode: bool,
    pub(super) api_version: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) data: EventData,
    pub(super) pending_webhooks: u32,
    pub(super) request: EventRequest,
}

/// The object of an event, as it was at the time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EventData {
    pub(super) object: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) previous_attributes: Option<Value>,
}

/// The request that caused it; empty if caused by time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct EventRequest {
    pub(super) id: Option<String>,
    pub(super) idempotency_key: Option<String>,
}
