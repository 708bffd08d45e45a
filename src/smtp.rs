//! Floor 3: what the SMTP listeners do with a message. The protocol is a crate of its own, `mailgate_smtp`.

pub mod backend;
