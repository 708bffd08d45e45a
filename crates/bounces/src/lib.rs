//! Reads bounces, RFC 3464's and those that each kind of server writes in its own way: which recipients of which
//! message failed, or wait. Pure: bytes in, a [`Bounce`] out. What a bounce says is a stranger's word; whether the
//! message is one of ours is decided elsewhere. Tells the answers of calendars too, by the same parts.
//!
//! A message is read in one pass over its lines; how deep its parts may be nested, how many there may be, and all
//! that is kept of it is bounded.

mod bounce;
mod calendar;
mod candidate;
mod delivery_status;
mod diagnostic;
mod fields;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod inline;
mod lines;
mod mime;
mod notice;
mod original;
mod phrases;
mod recipient;
mod report;
mod status_code;
mod text;

pub use bounce::{Bounce, BouncedRecipient, RECIPIENTS};
pub use calendar::{is_calendar_answer, may_be_calendar_answer};
pub use candidate::{HEADERS, is_candidate};
pub use diagnostic::DIAGNOSTIC;
pub use original::{LOG_IDS, MESSAGE_IDS};
pub use report::read;

#[cfg(test)]
mod tests;
