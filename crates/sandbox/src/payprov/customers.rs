//! `/v1/customers` and `/v1/payment_methods`.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::ledger::{Ledger, new_id, shown};
use super::lifecycle::PaymentOutcome;
use super::objects::{CardDetails, Customer, InvoiceSettings, PaymentMethod};
use super::parameters::Parameters;
use super::refusal::Refusal;

/// The available cards. Their last digits are those of the real provider's test cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Card {
    /// Payments succeed.
    Works,
    /// Can be entered, but all payments are declined.
    DeclinedLater,
    /// Each payment must be confirmed by its owner.
    AsksEachTime,
}

impl Card {
    fn last_digits(self) -> &'static str {
        match self {
            Self::Works => "4242",
            Self::DeclinedLater => "0341",
            Self::AsksEachTime => "3184",
        }
    }
}

impl PaymentMethod {
    /// A customer's card.
    pub(super) fn new(card: Card, customer: Option<&str>, at: i64) -> Self {
        Self {
            id: new_id("pm"),
            object: "payment_method".to_owned(),
            created: at,
            livemode: false,
            kind: "card".to_owned(),
            customer: customer.map(str::to_owned),
            card: CardDetails {
                brand: "visa".to_owned(),
                last4: card.last_digits().to_owned(),
                exp_month: 12,
                exp_year: 2099,
            },
            metadata: super::objects::Metadata::default(),
        }
    }

    /// The outcome of a payment with it.
    pub(super) fn pays(&self) -> PaymentOutcome {
        match self.card.last4.as_str() {
            "0341" => PaymentOutcome::Declined("card_declined"),
            "3184" => PaymentOutcome::ActionRequired,
            _ => PaymentOutcome::Paid,
        }
    }
}

impl Ledger {
    pub(super) fn create_customer(
        &mut self,
        parameters: &mut Parameters,
        now: i64,
    ) -> Result<Value, Refusal> {
        let customer = Customer {
            id: new_id("cus"),
            object: "customer".to_owned(),
            created: now,
            livemode: false,
            email: parameters.text("email"),
            name: parameters.text("name"),
            description: parameters.text("description"),
            invoice_settings: InvoiceSettings::default(),
            metadata: parameters.metadata(),
        };
        parameters.done()?;
        let shown = json!(customer);
        self.customers.insert(customer.id.clone(), customer);
        self.happened("customer.created", shown.clone(), None, now);
        Ok(shown)
    }

    pub(super) fn show_customer(
        &self,
        id: &str,
        parameters: &Parameters,
    ) -> Result<Value, Refusal> {
        parameters.done()?;
        if self.deleted_customers.contains(id) {
            return Ok(json!({ "id": id, "object": "customer", "deleted": true }));
        }
        Ok(json!(self.customer(id)?))
    }

    pub(super) fn change_customer(
        &mut self,
        id: &str,
        parameters: &mut Parameters,
        now: i64,
    ) -> Result<Value, Refusal> {
        let mut customer = self.customer(id)?.clone();
        let some = |text: String| (!text.is_empty()).then_some(text);
        for (name, field) in [
            ("email", &mut customer.email),
            ("name", &mut customer.name),
            ("description", &mut customer.description),
        ] {
            if let Some(text) = parameters.text(name) {
                *field = some(text);
            }
        }
        let setting = "invoice_settings[default_payment_method]";
        if let Some(method) = parameters.text(setting) {
            if !method.is_empty() {
                self.payment_method_of(id, setting, &method)?;
            }
            customer.invoice_settings.default_payment_method = some(method);
        }
        customer.metadata.extend(parameters.metadata());
        customer.metadata.retain(|_, value| !value.is_empty());
        parameters.done()?;
        let shown = json!(customer);
        self.customers.insert(id.to_owned(), customer);
        self.happened("customer.updated", shown.clone(), None, now);
        Ok(shown)
    }

    /// Also ends the customer's subscriptions.
    pub(super) fn delete_customer(
        &mut self,
        id: &str,
        parameters: &Parameters,
        now: i64,
    ) -> Result<Value, Refusal> {
        parameters.done()?;
        let shown = json!(self.customer(id)?);
        let subscriptions: Vec<String> = self
            .subscriptions
            .values()
            .filter(|subscription| subscription.customer == id)
            .map(|subscription| subscription.id.clone())
            .collect();
        for subscription in subscriptions {
            self.end(&subscription, now);
        }
        self.customers.remove(id);
        self.deleted_customers.insert(id.to_owned());
        self.happened("customer.deleted", shown, None, now);
        Ok(json!({ "id": id, "object": "customer", "deleted": true }))
    }

    /// Newest first.
    pub(super) fn list_payment_methods(
        &self,
        customer: &str,
        parameters: &mut Parameters,
    ) -> Result<Vec<Value>, Refusal> {
        let kind = parameters.text("type");
        self.known_customer(customer)?;
        let methods = self.payment_methods.values().rev();
        Ok(methods
            .filter(|method| method.customer.as_deref() == Some(customer))
            .filter(|method| kind.as_ref().is_none_or(|kind| *kind == method.kind))
            .map(|method| json!(method))
            .collect())
    }

    pub(super) fn show_payment_method(
        &self,
        id: &str,
        parameters: &Parameters,
    ) -> Result<Value, Refusal> {
        let name = ("PaymentMethod", "payment_method");
        shown(&self.payment_methods, id, parameters, name)
    }

    /// `pm_card_visa` and the like stand for a new card each time, as at the real provider.
    pub(super) fn attach_payment_method(
        &mut self,
        id: &str,
        parameters: &mut Parameters,
        now: i64,
    ) -> Result<Value, Refusal> {
        let customer = parameters.required("customer")?;
        parameters.done()?;
        self.known_customer(&customer)?;
        let card = match id {
            "pm_card_visa" => Some(Card::Works),
            "pm_card_chargeCustomerFail" => Some(Card::DeclinedLater),
            "pm_card_authenticationRequired" => Some(Card::AsksEachTime),
            _ => None,
        };
        let method = if let Some(card) = card {
            PaymentMethod::new(card, Some(&customer), now)
        } else {
            let status = StatusCode::NOT_FOUND;
            let found = self.payment_methods.get(id).cloned();
            let missing = || Refusal::missing(status, "PaymentMethod", "payment_method", id);
            PaymentMethod {
                customer: Some(customer),
                ..found.ok_or_else(missing)?
            }
        };
        Ok(self.attach(method, now))
    }

    pub(super) fn attach(&mut self, method: PaymentMethod, now: i64) -> Value {
        let shown = json!(method);
        self.payment_methods.insert(method.id.clone(), method);
        self.happened("payment_method.attached", shown.clone(), None, now);
        shown
    }
}
