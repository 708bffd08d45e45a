//! Headers from an SMTP client that are meant for the gateway alone: Bcc, Idempotency-Key, and the gateway's own,
//! `X-Mailgate-…`. They are read, and removed before the message is sent, as are those that only receivers write.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use mail_parser::{Header, HeaderName};

use super::RawMessageError;
use super::fields::is_empty;
use crate::compose::is_of_receivers;
use crate::sending::accept::idempotency::{IdempotencyKey, read_key};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::encoded_words;
use mailgate_types::ids::LOG_ID_HEADER;
use mailgate_types::metadata::{InvalidMetadata, Metadata};
use mailgate_types::send_at::SendAt;

/// The name of a header that mail-parser has no variant for.
const fn other(name: &'static str) -> HeaderName<'static> {
    HeaderName::Other(std::borrow::Cow::Borrowed(name))
}

/// Names a submission, so that repeating it sends nothing twice.
const IDEMPOTENCY_KEY: HeaderName<'static> = other("Idempotency-Key");

/// The scheduled time.
const SEND_AT: HeaderName<'static> = other("X-Mailgate-Send-At");

/// The prefix of headers with the app's metadata; a key follows.
const METADATA: &str = "X-Mailgate-Metadata-";

/// The log id, which only the gateway may set.
const LOG_ID: HeaderName<'static> = other(LOG_ID_HEADER);

/// The headers that are removed, besides those with [`METADATA`].
pub(super) const PRIVATE: [HeaderName<'static>; 5] = [
    HeaderName::Bcc,
    HeaderName::ResentBcc,
    IDEMPOTENCY_KEY,
    SEND_AT,
    LOG_ID,
];

/// Compares names case-insensitively, without the white space that may follow them (RFC 5322 §4.5).
pub(super) fn is_named(header: &Header<'_>, name: &HeaderName<'_>) -> bool {
    header.name().trim_end().eq_ignore_ascii_case(name.as_str())
}

/// A header that is allowed only once is repeated, or is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NotOne;

/// The value of a header that is allowed only once, still folded; `None` if there is none.
fn sole_value<'a>(
    headers: &[Header<'_>],
    content: &'a [u8],
    name: &HeaderName<'_>,
) -> Result<Option<&'a str>, NotOne> {
    let mut named = headers.iter().filter(|header| is_named(header, name));
    match (named.next(), named.next()) {
        (None, _) => Ok(None),
        (Some(only), None) => {
            let value = content.get(only.offset_start as usize..only.offset_end as usize);
            let text = value.and_then(|value| std::str::from_utf8(value).ok());
            text.map(Some).ok_or(NotOne)
        }
        (Some(_), Some(_)) => Err(NotOne),
    }
}

/// The key of a submission, with a digest over its envelope and all of its content.
pub(super) fn idempotency_key(
    headers: &[Header<'_>],
    recipients: &[EmailAddress],
    content: &Bytes,
    others: &[Bytes],
) -> Result<Option<IdempotencyKey>, RawMessageError> {
    let value = sole_value(headers, content, &IDEMPOTENCY_KEY);
    let Some(value) = value.map_err(|NotOne| RawMessageError::IdempotencyKey)? else {
        return Ok(None);
    };
    let key = read_key(value).ok_or(RawMessageError::IdempotencyKey)?;
    let envelope = recipients
        .iter()
        .flat_map(|recipient| [recipient.as_str().as_bytes(), b"\n"]);
    let parts = envelope
        .chain(std::iter::once(content.as_ref()))
        .chain(others.iter().map(AsRef::as_ref));
    Ok(Some(IdempotencyKey::over(key, parts)))
}

/// The scheduled time of a submission.
pub(super) fn send_at(
    headers: &[Header<'_>],
    content: &[u8],
    now: DateTime<Utc>,
) -> Result<Option<SendAt>, RawMessageError> {
    let value = sole_value(headers, content, &SEND_AT);
    let value = value.map_err(|NotOne| RawMessageError::SendAtTwice)?;
    let parsed = value.map(|value| SendAt::parse_header(value, now));
    parsed.transpose().map_err(RawMessageError::SendAt)
}

/// The content without its private headers and those of receivers, and without an empty Date or Message-ID, which the
/// gateway writes instead.
pub(super) fn without_removed(headers: &[Header<'_>], content: &Bytes) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let is_removed = |header: &&Header<'_>| {
        is_private(header)
            || is_of_receivers(header.name().trim_end())
            || is_empty_one(header, content)
    };
    for header in headers.iter().filter(is_removed) {
        let (field, end) = (header.offset_field as usize, header.offset_end as usize);
        if start <= field && field <= end && end <= content.len() {
            pieces.push(content.slice(start..field));
            start = end;
        }
    }
    pieces.push(content.slice(start..));
    pieces
}

fn is_private(header: &Header<'_>) -> bool {
    PRIVATE.iter().any(|name| is_named(header, name)) || metadata_key(header).is_some()
}

pub(super) fn is_empty_one(header: &Header<'_>, content: &[u8]) -> bool {
    let value = content.get(header.offset_start as usize..header.offset_end as usize);
    [HeaderName::Date, HeaderName::MessageId]
        .iter()
        .any(|name| is_named(header, name))
        && value.is_some_and(is_empty)
}

/// The key of a metadata header, as spelled.
pub(super) fn metadata_key<'a>(header: &'a Header<'_>) -> Option<&'a str> {
    let name = header.name().trim_end();
    let (prefix, key) = name.split_at_checked(METADATA.len())?;
    prefix.eq_ignore_ascii_case(METADATA).then_some(key)
}

/// The app's metadata of the message. Encoded words (RFC 2047) are decoded, folded lines joined.
pub(super) fn metadata(
    headers: &[Header<'_>],
    content: &[u8],
) -> Result<Metadata, InvalidMetadata> {
    let mut metadata = Metadata::default();
    for header in headers {
        let Some(key) = metadata_key(header) else {
            continue;
        };
        let value = content.get(header.offset_start as usize..header.offset_end as usize);
        let value = value.and_then(|value| std::str::from_utf8(value).ok());
        let value = value.ok_or(InvalidMetadata::Control)?;
        metadata.insert(key, encoded_words::decoded(value.as_bytes()).trim())?;
    }
    Ok(metadata)
}
