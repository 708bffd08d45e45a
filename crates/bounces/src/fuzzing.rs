//! The fuzz target of bounces.

#![expect(
    clippy::missing_panics_doc,
    reason = "targets panic if an invariant is violated"
)]

use std::collections::BTreeSet;
use std::str::FromStr as _;

use mailgate_types::email_address::EmailAddress;
use mailgate_types::fuzzing::is_printable;
use mailgate_types::ids::LogId;
use mailgate_types::message_id;

use crate::{
    Bounce, DIAGNOSTIC, LOG_IDS, MESSAGE_IDS, RECIPIENTS, is_calendar_answer, is_candidate,
    may_be_calendar_answer, read,
};

/// Any message: the result is bounded, well-formed, and safe for a row, a page and a log line.
pub fn bounces(data: &[u8]) {
    let _ = (is_candidate(data), may_be_calendar_answer(data));
    let _ = is_calendar_answer(data);
    if let Some(bounce) = read(data) {
        check(&bounce);
    }
}

/// Checks the invariants of a result.
pub fn check(bounce: &Bounce) {
    assert!((1..=RECIPIENTS).contains(&bounce.recipients.len()));
    assert!(bounce.message_ids.len() <= MESSAGE_IDS && bounce.log_ids.len() <= LOG_IDS);
    assert!(!bounce.message_ids.is_empty() || !bounce.log_ids.is_empty());
    for id in &bounce.message_ids {
        let is_bracketed = id.starts_with('<') && id.ends_with('>');
        assert!(
            (is_bracketed || id.starts_with("=?")) && id.len() > 2,
            "{id:?}"
        );
        assert!(
            id.len() <= message_id::LONGEST && is_printable(id),
            "{id:?}"
        );
    }
    for id in &bounce.log_ids {
        assert!(LogId::from_str(id).is_ok(), "{id:?}");
    }
    let mut seen = BTreeSet::new();
    for recipient in &bounce.recipients {
        let address = &recipient.address;
        assert!(EmailAddress::parse(address).is_ok(), "{address:?}");
        assert!(
            seen.insert(address.to_lowercase()),
            "{address:?} stands there twice"
        );
        if let Some(status) = &recipient.status {
            assert!(
                status.len() <= "5.999.999".len() && status.starts_with(['4', '5']),
                "{status:?}"
            );
        }
        if let Some(words) = &recipient.diagnostic {
            assert!(
                (1..=DIAGNOSTIC).contains(&words.len()) && is_printable(words),
                "{words:?}"
            );
        }
    }
}
