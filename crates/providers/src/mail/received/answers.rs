//! The messages that a received one replies to (RFC 5322 §3.6.4).

use std::collections::HashSet;

use mail_parser::{HeaderName, Message};

use super::raw_values;
use mailgate_types::message_id::{self, both_ends};

/// Message-IDs of one message that are considered.
pub(super) const REFERENCES: usize = 200;

/// Their maximum total length, in bytes.
const BYTES: usize = 32 * 1024;

/// In-Reply-To first, then References starting from the last one, deduplicated. If the thread is too long, both ends
/// are kept: the latest message, and the one that began it.
pub(super) fn answers(headers: &[u8], parsed: &Message<'_>) -> Vec<String> {
    let ids = |name: HeaderName<'static>| -> Vec<String> {
        raw_values(headers, parsed, name)
            .flat_map(|value| {
                let verbatim = message_id::encoded(value);
                message_id::all_in(value).into_iter().chain(verbatim)
            })
            .collect()
    };
    let mut all = ids(HeaderName::InReplyTo);
    all.extend(ids(HeaderName::References).into_iter().rev());
    let mut seen = HashSet::new();
    all.retain(|id| seen.insert(id.clone()));
    both_ends(all, REFERENCES, BYTES)
}
