//! Whether a message has attachments, seen without parsing its parts.

use bytes::Bytes;
use mail_parser::{Header, HeaderName};

use super::private_headers::is_named;

/// Whether the message, or a part of a multipart message, is declared as an attachment.
pub(super) fn has_attachments(headers: &[Header<'_>], content: &[u8], others: &[Bytes]) -> bool {
    let is_attachment = |header: &Header<'_>| {
        is_named(header, &HeaderName::ContentDisposition)
            && header
                .value
                .as_content_type()
                .is_some_and(|value| value.c_type.eq_ignore_ascii_case("attachment"))
    };
    let is_multipart = headers.iter().any(|header| {
        is_named(header, &HeaderName::ContentType)
            && header
                .value
                .as_content_type()
                .is_some_and(|value| value.c_type.eq_ignore_ascii_case("multipart"))
    });
    headers.iter().any(is_attachment) || (is_multipart && says_attachment(content, others))
}

/// Searches each piece, and across the seams between them.
fn says_attachment(content: &[u8], others: &[Bytes]) -> bool {
    const SEAM: usize = 256;
    let mut before = content;
    a_line_says_attachment(content)
        || others.iter().any(|piece| {
            let seam = [
                &before[before.len().saturating_sub(SEAM)..],
                &piece[..piece.len().min(SEAM)],
            ]
            .concat();
            before = piece;
            a_line_says_attachment(&seam) || a_line_says_attachment(piece)
        })
}

/// Searches for a part's header without parsing the message, which would copy it.
fn a_line_says_attachment(content: &[u8]) -> bool {
    const FIELD: &[u8] = b"content-disposition:";
    const ATTACHMENT: &[u8] = b"attachment";
    memchr::memchr_iter(b'\n', content).any(|line_end| {
        let line = &content[line_end + 1..];
        line.get(..FIELD.len())
            .is_some_and(|name| name.eq_ignore_ascii_case(FIELD))
            && line[FIELD.len()..]
                .trim_ascii_start()
                .get(..ATTACHMENT.len())
                .is_some_and(|value| value.eq_ignore_ascii_case(ATTACHMENT))
    })
}
