//! The headers of a message without fields of their own: a few as headers, the others as MAPI properties.

use std::collections::HashSet;

use mail_parser::{Header, HeaderName, Message};
use serde_json::{Value, json};

use crate::mail::verdict::Failure;

/// Maximum number of custom headers (Graph's `internetMessageHeaders`).
const OWN_HEADERS: usize = 5;

/// Longest value of such a header, in bytes.
const OWN_HEADER_BYTES: usize = 995;

/// The namespace of named properties that Exchange writes as headers ([MS-OXPROPS] `PS_INTERNET_HEADERS`), for headers
/// that exceed or don't qualify for `internetMessageHeaders`.
const AS_HEADER: &str = "String {00020386-0000-0000-C000-000000000046} Name";

/// Maximum number of headers sent as properties, and the longest value of one in bytes: Graph's documentation gives no
/// limit for the first, and 4 KB for a property's value.
const FURTHER_HEADERS: usize = 50;
const FURTHER_HEADER_BYTES: usize = 4_000;

/// Headers that have fields of their own here, or that Exchange writes itself.
const FIELDS: [&str; 13] = [
    "from",
    "sender",
    "to",
    "cc",
    "bcc",
    "reply-to",
    "subject",
    "date",
    "message-id",
    "in-reply-to",
    "references",
    "importance",
    "mime-version",
];

/// Headers from the message's path, which don't apply to a rebuilt message: a signature over it is broken.
const OF_THE_WAY: [&str; 7] = [
    "received",
    "return-path",
    "delivered-to",
    "received-spf",
    "authentication-results",
    "dkim-signature",
    "domainkey-signature",
];

/// The MAPI properties behind In-Reply-To and References ([MS-OXPROPS] `PidTagInReplyToId`,
/// `PidTagInternetReferences`).
const IN_REPLY_TO: &str = "String 0x1042";
const REFERENCES: &str = "String 0x1039";

/// The message's other headers: the first few whose names begin with `x-` as headers, since Graph accepts no others
/// there, and the rest as properties.
pub(super) fn headers(message: &Message<'_>) -> Result<(Vec<Value>, Vec<Value>), Failure> {
    let (mut own, mut further) = (Vec::new(), Vec::new());
    let mut names = HashSet::new();
    for header in message.headers() {
        let name = header.name().trim();
        let key = name.to_ascii_lowercase();
        let value = unfolded(message, header);
        if !is_to_be_kept(&key) || value.is_empty() {
            continue;
        }
        let fits = own.len() < OWN_HEADERS && value.len() <= OWN_HEADER_BYTES;
        if key.starts_with("x-") && fits {
            own.push(json!({ "name": name, "value": value }));
            continue;
        }
        // A property has one value, and none is truncated.
        let is_new = names.insert(key);
        if !is_new || value.len() > FURTHER_HEADER_BYTES || further.len() == FURTHER_HEADERS {
            return Err(Failure::own(format!(
                "5.6.0 The message is too large to go to Microsoft Graph whole, and in pieces its header {name} \
                 would be lost, which is there twice, longer than {FURTHER_HEADER_BYTES} bytes, or one of more \
                 than {FURTHER_HEADERS}: leave it out, or make the message smaller than 3 MB"
            )));
        }
        further.push(json!({ "id": format!("{AS_HEADER} {name}"), "value": value }));
    }
    Ok((own, further))
}

/// The properties with the ids of the message's thread.
pub(super) fn thread_ids(message: &Message<'_>) -> impl Iterator<Item = Value> {
    [
        (IN_REPLY_TO, HeaderName::InReplyTo),
        (REFERENCES, HeaderName::References),
    ]
    .into_iter()
    .filter_map(|(id, name)| {
        let header = message
            .headers()
            .iter()
            .find(|header| header.name == name)?;
        let value = shortened(unfolded(message, header));
        (!value.is_empty()).then(|| json!({ "id": id, "value": value }))
    })
}

/// Whether a header matters to the recipient, and has no field of its own.
fn is_to_be_kept(key: &str) -> bool {
    // Exchange reserves these for itself.
    let begins = ["content-", "arc-", "x-ms-"];
    !FIELDS.contains(&key)
        && !OF_THE_WAY.contains(&key)
        && !begins.iter().any(|prefix| key.starts_with(prefix))
}

/// A header's raw value, on one line.
fn unfolded(message: &Message<'_>, header: &Header<'_>) -> String {
    String::from_utf8_lossy(raw(message, header))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The ids of a thread that fit a property: the first and the last ones, as RFC 5537 §3.4.4 shortens References. An id
/// longer than a property is dropped.
fn shortened(ids: String) -> String {
    let mut from = ids.len().saturating_sub(FURTHER_HEADER_BYTES);
    if from == 0 {
        return ids;
    }
    let first = ids.split(' ').next().unwrap_or_default();
    from = ids.ceil_char_boundary(from + first.len() + 1);
    let last = ids.get(from..).and_then(|rest| rest.split_once(' '));
    last.map_or(String::new(), |(_, last)| format!("{first} {last}"))
}

/// A header's value as it is written.
pub(super) fn raw<'a>(message: &'a Message<'_>, header: &Header<'_>) -> &'a [u8] {
    let (start, end) = (header.offset_start as usize, header.offset_end as usize);
    message.raw_message.get(start..end).unwrap_or_default()
}
