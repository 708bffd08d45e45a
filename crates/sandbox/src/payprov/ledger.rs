//! The entire state of the payment provider, in one value that is saved as a whole.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::objects::{
    CheckoutSession, Customer, Event, EventData, EventRequest, Invoice, PaymentMethod,
    PortalSession, SetupIntent, Subscription,
};
use super::parameters::Parameters;
use super::refusal::Refusal;

/// Maximum number of events kept; the oldest are removed first.
const KEPT_EVENTS: usize = 1_000;

/// Maximum number of events waiting for delivery; the oldest are removed first.
const WAITING_EVENTS: usize = 1_000;

/// The API version of events.
pub(super) const API_VERSION: &str = "2026-10-28.endive";

/// How long the response to an idempotency key is kept, in seconds.
const KEPT_KEYS: i64 = 24 * 60 * 60;

/// The ledger. Objects are keyed by their ids, which sort by age.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Ledger {
    pub(super) customers: BTreeMap<String, Customer>,
    /// Deleted customers, which are still returned, marked as deleted.
    pub(super) deleted_customers: BTreeSet<String>,
    pub(super) payment_methods: BTreeMap<String, PaymentMethod>,
    pub(super) setup_intents: BTreeMap<String, SetupIntent>,
    pub(super) checkout_sessions: BTreeMap<String, CheckoutSession>,
    pub(super) portal_sessions: BTreeMap<String, PortalSession>,
    pub(super) subscriptions: BTreeMap<String, Subscription>,
    pub(super) invoices: BTreeMap<String, Invoice>,
    /// Oldest first.
    pub(super) events: VecDeque<Event>,
    /// Events that the receiver has not accepted yet, oldest first.
    pub(super) waiting: VecDeque<String>,
    /// Subscriptions for which the end of the trial was announced.
    pub(super) reminded: BTreeSet<String>,
    pub(super) answers: BTreeMap<String, StoredResponse>,
    pub(super) invoices_made: u64,
    /// The base URL of its pages, without a trailing slash.
    #[serde(skip)]
    pub(super) address: String,
    /// The current request, which its events refer to.
    #[serde(skip)]
    pub(super) request: EventRequest,
}

/// The response to a request with an idempotency key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredResponse {
    pub(super) at: i64,
    pub(super) fingerprint: String,
    pub(super) status: u16,
    pub(super) body: Value,
}

/// An object named in a path, as shown; `kind` and `param` describe it in a 404.
pub(super) fn shown<T: Serialize>(
    objects: &BTreeMap<String, T>,
    id: &str,
    parameters: &Parameters,
    (kind, param): (&str, &str),
) -> Result<Value, Refusal> {
    parameters.done()?;
    let found = objects.get(id).map(|object| json!(object));
    found.ok_or_else(|| Refusal::missing(StatusCode::NOT_FOUND, kind, param, id))
}

/// A new id: the prefix, and a part that sorts by age.
pub(super) fn new_id(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::now_v7().simple())
}

impl Ledger {
    /// Records an event of an object, and queues it for delivery.
    pub(super) fn happened(
        &mut self,
        kind: &str,
        object: Value,
        previous_attributes: Option<Value>,
        at: i64,
    ) -> String {
        let id = new_id("evt");
        self.events.push_back(Event {
            id: id.clone(),
            object: "event".to_owned(),
            created: at,
            livemode: false,
            api_version: API_VERSION.to_owned(),
            kind: kind.to_owned(),
            data: EventData {
                object,
                previous_attributes,
            },
            pending_webhooks: 1,
            request: self.request.clone(),
        });
        self.waiting.push_back(id.clone());
        if self.events.len() > KEPT_EVENTS {
            self.events.pop_front();
        }
        if self.waiting.len() > WAITING_EVENTS {
            self.waiting.pop_front();
        }
        id
    }

    /// An event that is still kept.
    pub(super) fn event(&self, id: &str) -> Option<&Event> {
        self.events.iter().find(|event| event.id == id)
    }

    /// The customer in a request's path.
    pub(super) fn customer(&self, id: &str) -> Result<&Customer, Refusal> {
        self.customers
            .get(id)
            .ok_or_else(|| Refusal::missing(StatusCode::NOT_FOUND, "customer", "id", id))
    }

    /// The customer in a parameter.
    pub(super) fn known_customer(&self, id: &str) -> Result<&Customer, Refusal> {
        self.customers
            .get(id)
            .ok_or_else(|| Refusal::missing(StatusCode::BAD_REQUEST, "customer", "customer", id))
    }

    /// The subscription in a request's path.
    pub(super) fn subscription(&mut self, id: &str) -> Result<&mut Subscription, Refusal> {
        self.subscriptions
            .get_mut(id)
            .ok_or_else(|| Refusal::missing(StatusCode::NOT_FOUND, "subscription", "id", id))
    }

    /// The invoice in a request's path.
    pub(super) fn invoice(&mut self, id: &str) -> Result<&mut Invoice, Refusal> {
        self.invoices
            .get_mut(id)
            .ok_or_else(|| Refusal::missing(StatusCode::NOT_FOUND, "invoice", "invoice", id))
    }

    /// The card in `parameter`, which must be the customer's.
    pub(super) fn payment_method_of(
        &self,
        customer: &str,
        parameter: &str,
        id: &str,
    ) -> Result<&PaymentMethod, Refusal> {
        let status = StatusCode::BAD_REQUEST;
        let method = self
            .payment_methods
            .get(id)
            .ok_or_else(|| Refusal::missing(status, "PaymentMethod", parameter, id))?;
        if method.customer.as_deref() != Some(customer) {
            let text = "The customer does not have a payment method with the ID given. The payment method must be attached to the customer.";
            return Err(Refusal::parameter(parameter, "resource_missing", text));
        }
        Ok(method)
    }

    /// The payment method for a subscription's invoices.
    pub(super) fn payment_method_for(&self, subscription: &str) -> Option<&PaymentMethod> {
        let subscription = self.subscriptions.get(subscription)?;
        let of_customer = || {
            let customer = self.customers.get(&subscription.customer)?;
            customer.invoice_settings.default_payment_method.as_ref()
        };
        let id = subscription
            .default_payment_method
            .as_ref()
            .or_else(of_customer)?;
        self.payment_methods.get(id)
    }

    /// The object with this id, as the API shows it.
    pub(super) fn object(&self, id: &str) -> Option<Value> {
        let value = match id.split_once('_')?.0 {
            "cus" => serde_json::to_value(self.customers.get(id)?),
            "pm" => serde_json::to_value(self.payment_methods.get(id)?),
            "seti" => serde_json::to_value(self.setup_intents.get(id)?),
            "sub" => return self.subscriptions.get(id).map(Subscription::shown),
            "in" => serde_json::to_value(self.invoices.get(id)?),
            _ => return None,
        };
        value.ok()
    }

    /// Drops the responses that are a day old.
    pub(super) fn forget_answers(&mut self, now: i64) {
        self.answers.retain(|_, answer| now - answer.at < KEPT_KEYS);
    }
}
