//! Reduces a message that the database refuses to store to its ids and outcome, without untrusted text. So every
//! message is logged, counted and reported, whatever it contains.

use super::ending::Ending;
use crate::sending::outcome::facts::Facts;
use mailgate_storage::spool::{Closing, Deferral, Opening};
use mailgate_types::event::{EmailEvent, Emission, Event};
use mailgate_types::metadata::Metadata;

/// Replaces the provider's reply.
const UNSTORABLE: &str = "The provider's words could not be stored";

/// An opening, reduced to the data needed for sending the message.
pub(in crate::sending) fn opening(opening: &Opening) -> Opening {
    Opening {
        to_address: String::new(),
        cc_addresses: Vec::new(),
        bcc_addresses: Vec::new(),
        subject: String::new(),
        message_id: None,
        metadata: Metadata::default(),
        ..opening.clone()
    }
}

/// An ending without untrusted text. Its idempotency key is answered from its log row.
pub(in crate::sending) fn ending(ending: &Ending) -> Ending {
    Ending {
        closing: Closing {
            error_message: error(ending.closing.error_message.as_deref()),
            message_id: None,
            ..ending.closing.clone()
        },
        emission: Emission {
            event: event(&ending.emission.event),
            ..ending.emission.clone()
        },
        answer: None,
        freed_key: ending.freed_key.clone(),
    }
}

/// The facts of a waiting message, without untrusted text.
pub(in crate::sending) fn facts(facts: &Facts) -> Facts {
    Facts {
        to_address: String::new(),
        subject: String::new(),
        message_id: None,
        metadata: Metadata::default(),
        ..facts.clone()
    }
}

/// A deferral without the provider's reply.
pub(in crate::sending) fn deferral(deferral: &Deferral) -> Deferral {
    Deferral {
        error_message: UNSTORABLE.to_owned(),
        ..deferral.clone()
    }
}

fn error(error: Option<&str>) -> Option<String> {
    error.map(|_| UNSTORABLE.to_owned())
}

fn event(event: &Event) -> Event {
    match event {
        Event::EmailSent { email, .. } => Event::EmailSent {
            email: named(email),
            message_id: None,
        },
        Event::EmailFailedPerm { email, r#final, .. } => Event::EmailFailedPerm {
            email: named(email),
            error: UNSTORABLE.to_owned(),
            r#final: *r#final,
        },
        // No other event ends a message.
        other => other.clone(),
    }
}

fn named(email: &EmailEvent) -> EmailEvent {
    EmailEvent {
        to_address: String::new(),
        subject: String::new(),
        metadata: Metadata::default(),
        ..email.clone()
    }
}
