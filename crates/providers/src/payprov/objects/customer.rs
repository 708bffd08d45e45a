//! A customer.

use serde::Deserialize;

use super::Metadata;
use super::field::id;
use super::reference::IdOnly;

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
    /// Our metadata.
    #[serde(default)]
    pub metadata: Metadata,
}

/// A customer's default payment settings.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct InvoiceSettings {
    /// The default payment method.
    #[serde(default)]
    pub default_payment_method: Option<IdOnly>,
}

impl Customer {
    /// Whether it has a payment method for its invoices.
    #[must_use]
    pub fn has_payment_method(&self) -> bool {
        self.invoice_settings.default_payment_method.is_some() || self.default_source.is_some()
    }
}
