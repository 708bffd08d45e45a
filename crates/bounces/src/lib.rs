//! Parses bounces, in the format of RFC 3464 and in servers' own formats: which recipients of which message failed or
//! are delayed. Does no I/O: bytes in, a [`Bounce`] out. A bounce's content isn't trusted; whether the message is one
//! of ours is decided elsewhere. Recognizes calendar replies too, with the same parsers.
//!
//! A message is read in one pass over its lines; the depth and number of its parts, and all results, are bounded.

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
pub use status_code::within as enhanced_code;

#[cfg(test)]
mod tests;
