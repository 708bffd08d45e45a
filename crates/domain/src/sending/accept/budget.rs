//! Limits the bytes of messages held in memory. Past the limit further messages are refused, and their senders keep
//! them. Memory is bounded under any load, and no subscriber can starve the others, whatever the number of its apps.

use mailgate_settings::Limits;
use mailgate_types::budget;
use mailgate_types::ids::SubscriberId;

/// A holder of bytes of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A subscriber: messages of all its apps.
    Subscriber(SubscriberId),
    /// Subscribers whose apps were deleted, together.
    Gone,
}

/// The bytes of messages that may be held.
pub type Budget = budget::Budget<Holder>;

/// A reserved part of the budget.
pub type Share = budget::Share<Holder>;

/// The budget for the configured limits. Every holder's share has room for the largest message: a request may take
/// two bytes for each byte of its message, and holds both.
#[must_use]
pub fn in_flight(limits: &Limits) -> Budget {
    let largest = limits.message_bytes.saturating_mul(4);
    let share = limits.in_flight_bytes / 100 * limits.in_flight_share;
    Budget::new(limits.in_flight_bytes, share.max(largest))
}
