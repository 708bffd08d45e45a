//! Headers in which an SMTP client tells something to the gateway alone: Bcc, Idempotency-Key, and the gateway's own,
//! `X-Mailgate-…`. They are read, and removed before the message leaves.

use bytes::Bytes;
use mail_parser::{Header, HeaderName};

/// The name of a header that mail-parser has no variant for.
const fn other(name: &'static str) -> HeaderName<'static> {
    HeaderName::Other(std::borrow::Cow::Borrowed(name))
}

/// Names a submission, so that repeating it sends nothing twice.
pub(super) const IDEMPOTENCY_KEY: HeaderName<'static> = other("Idempotency-Key");

/// The time at which the message is to leave.
pub(super) const SEND_AT: HeaderName<'static> = other("X-Mailgate-Send-At");

/// The headers that are removed.
pub(super) const PRIVATE: [HeaderName<'static>; 4] = [
    HeaderName::Bcc,
    HeaderName::ResentBcc,
    IDEMPOTENCY_KEY,
    SEND_AT,
];

/// Compares names case-insensitively, without the white space that may follow them (RFC 5322 §4.5).
pub(super) fn is_named(header: &Header<'_>, name: &HeaderName<'_>) -> bool {
    header.name().trim_end().eq_ignore_ascii_case(name.as_str())
}

/// A header that may be given once is given twice, or is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotOne;

/// The value of a header that may be given once, still folded; `None` if it isn't given.
pub(super) fn sole_value<'a>(
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

/// The content without its private headers.
pub(super) fn without_private(headers: &[Header<'_>], content: &Bytes) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for header in headers.iter().filter(|header| is_private(header)) {
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
    PRIVATE.iter().any(|name| is_named(header, name))
}
