//! Floor 3: what the SMTP listeners do with a message. The protocol is in its own crate, `mailgate_smtp`.

pub mod backend;
mod suppressed;
