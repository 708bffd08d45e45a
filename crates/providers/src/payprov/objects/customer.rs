//! A customer.

use serde::Deserialize;
use serde_json::Value;

use super::Metadata;
use super::field::{id, words};
use super::payment_method::PaymentMethod;
use super::reference::{IdOnly, Reference};
use mailgate_types::billing_details::{Recipient, SavedPaymentMethod};

/// Longest name and address that are shown, in bytes: as the provider has them.
const LENGTH: usize = 512;

/// A customer.
#[derive(Debug, Clone, Deserialize)]
pub struct Customer {
    /// `cus_…`
    #[serde(deserialize_with = "id")]
    pub id: String,
    /// It has been deleted.
    #[serde(default)]
    pub deleted: bool,
    /// Its default payment settings.
    #[serde(default)]
    pub invoice_settings: InvoiceSettings,
    /// A payment source of the older kind.
    #[serde(default)]
    pub default_source: Option<IdOnly>,
    /// Its address.
    #[serde(default)]
    email: Value,
    /// Its name.
    #[serde(default)]
    name: Value,
    /// A discount on all its invoices.
    #[serde(default)]
    discount: Value,
    /// A credit, below zero, or a debt that the next invoice settles.
    #[serde(default)]
    balance: Value,
    /// Our metadata.
    #[serde(default)]
    pub metadata: Metadata,
}

/// A customer's default payment settings.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct InvoiceSettings {
    /// The default payment method.
    #[serde(default)]
    pub default_payment_method: Option<Reference<PaymentMethod>>,
}

impl Customer {
    /// Whether it has a payment method for its invoices.
    #[must_use]
    pub fn has_payment_method(&self) -> bool {
        self.payment_method().is_some()
    }

    /// What may be shown of the payment method for its invoices. Of one of the older kind only the type is known.
    #[must_use]
    pub fn payment_method(&self) -> Option<SavedPaymentMethod> {
        let method = self.invoice_settings.default_payment_method.as_ref();
        let older = || {
            self.default_source
                .as_ref()
                .map(|_| SavedPaymentMethod::default())
        };
        method.map(Reference::saved).or_else(older)
    }

    /// Who gets the invoices.
    #[must_use]
    pub fn recipient(&self) -> Recipient {
        Recipient {
            name: words(Some(&self.name), LENGTH),
            email: words(Some(&self.email), LENGTH),
        }
    }

    /// Whether its invoices have other amounts than their items.
    #[must_use]
    pub fn is_adjusted(&self) -> bool {
        !self.discount.is_null() || self.balance.as_i64().is_some_and(|balance| balance != 0)
    }
}
