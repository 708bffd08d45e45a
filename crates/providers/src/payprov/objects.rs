//! The payment provider's objects, reduced to the fields that are used.

mod customer;
mod event;
mod field;
mod invoice;
mod reference;
mod subscription;

use chrono::{DateTime, Utc};
use serde::Deserialize;

pub use self::customer::{Customer, InvoiceSettings};
pub use self::event::{Event, EventData};
pub use self::field::is_id;
pub use self::invoice::Invoice;
pub use self::reference::{IdOnly, Identified, Reference};
pub use self::subscription::{Subscription, SubscriptionItem};

use self::field::moment;

/// One page of a list, newest first.
#[derive(Debug, Clone, Deserialize)]
pub struct List<T> {
    /// The objects.
    pub data: Vec<T>,
    /// Whether there are more.
    #[serde(default)]
    pub has_more: bool,
}

/// Our metadata on an object.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Metadata {
    /// The subscriber that it belongs to.
    pub mailgate_subscriber: Option<String>,
}

/// A payment method.
#[derive(Debug, Clone, Deserialize)]
pub struct PaymentMethod {
    /// `pm_…`
    pub id: String,
    /// When it was entered.
    #[serde(default, deserialize_with = "moment")]
    pub created: Option<DateTime<Utc>>,
}

/// A page hosted by the provider that a subscriber is sent to.
#[derive(Debug, Clone, Deserialize)]
pub struct HostedPage {
    /// Its URL.
    pub url: String,
}
