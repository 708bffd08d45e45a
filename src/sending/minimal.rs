//! What is left of a message's words where the database refuses to store them: its ids, its outcome, and
//! nothing that a stranger wrote. So a message is logged, counted and told of whatever stands in it.

use super::ending::Ending;
use super::facts::Facts;
use crate::storage::spool::{Closing, Deferral, Opening};
use mailgate_types::event::{EmailEvent, Emission, Event};

/// Stands for what a provider said.
const UNSTORABLE: &str = "The provider's words could not be stored";

/// A message as it comes in, with what it takes to send it.
pub(super) fn opening(opening: &Opening) -> Opening {
    Opening {
        to_address: String::new(),
        cc_addresses: Vec::new(),
        bcc_addresses: Vec::new(),
        subject: String::new(),
        message_id: None,
        ..opening.clone()
    }
}

/// How it ended. Its idempotency key is answered by its log row.
pub(super) fn ending(ending: &Ending) -> Ending {
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

/// A message that waits.
pub(super) fn facts(facts: &Facts) -> Facts {
    Facts {
        to_address: String::new(),
        subject: String::new(),
        message_id: None,
        ..facts.clone()
    }
}

/// Why it waits.
pub(super) fn deferral(deferral: &Deferral) -> Deferral {
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
        ..email.clone()
    }
}
