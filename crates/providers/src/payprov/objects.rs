//! The payment provider's objects, reduced to the fields that are used.

mod customer;
mod event;
mod field;
mod invoice;
mod payment_method;
mod price;
mod reference;
mod subscription;

use serde::Deserialize;

pub use self::customer::{Customer, InvoiceSettings};
pub use self::event::{Event, EventData};
pub use self::field::is_id;
pub use self::invoice::Invoice;
pub use self::payment_method::PaymentMethod;
pub use self::price::Price;
pub use self::reference::{HasId, IdOnly, Identified, Reference};
pub use self::subscription::{Subscription, SubscriptionItem};

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

/// A page hosted by the provider that a subscriber is sent to.
#[derive(Debug, Clone, Deserialize)]
pub struct HostedPage {
    /// Its URL.
    pub url: String,
}
