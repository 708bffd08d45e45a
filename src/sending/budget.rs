//! How many bytes of messages the gateway holds: past it, further ones are refused, so that their senders keep
//! them. Memory is bounded whatever comes, and no app takes it from the others.

use crate::config::Limits;
use mailgate_types::budget;
use mailgate_types::ids::AppId;

/// Who holds bytes of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// An app, of what it is handing over and what is on its way.
    App(AppId),
    /// The queue, of the stored messages that are tried again.
    Queue,
}

/// The bytes of messages that may be held.
pub type Budget = budget::Budget<Holder>;

/// Some of these bytes.
pub type Share = budget::Share<Holder>;

/// The room that the limits give. The largest message finds room in every holder's share: a request may have two
/// bytes for each of its message's, and holds both.
#[must_use]
pub fn in_flight(limits: &Limits) -> Budget {
    let largest = limits.message_bytes.saturating_mul(4);
    let share = limits.in_flight_bytes / 100 * limits.in_flight_share;
    Budget::new(limits.in_flight_bytes, share.max(largest))
}
