//! The header section (RFC 5322 §2.1) of a message that arrives in pieces.

use bytes::Bytes;

use super::RawMessageError;

/// Largest size of a message's headers, in bytes.
const HEADER_BYTES: usize = 1024 * 1024;

/// The first piece, joined with as many more as it takes to hold all headers, and the remaining ones.
pub(super) fn with_whole_headers(
    mut pieces: Vec<Bytes>,
) -> Result<(Bytes, Vec<Bytes>), RawMessageError> {
    let mut others = pieces.split_off(pieces.len().min(1));
    let first = pieces.pop().unwrap_or_default();
    if has_header_end(&first) || others.is_empty() {
        return Ok((first, others));
    }
    let mut joined = first.to_vec();
    let mut taken = 0;
    while taken < others.len() && !has_header_end(&joined) {
        if joined.len() > HEADER_BYTES {
            return Err(RawMessageError::TooManyHeaders);
        }
        joined.extend_from_slice(&others[taken]);
        taken += 1;
    }
    Ok((Bytes::from(joined), others.split_off(taken)))
}

fn has_header_end(content: &[u8]) -> bool {
    content.starts_with(b"\r\n") || memchr::memmem::find(content, b"\r\n\r\n").is_some()
}
