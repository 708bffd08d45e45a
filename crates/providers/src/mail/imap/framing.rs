//! Splits an IMAP server's byte stream into complete responses (RFC 9051 §7), however it is fragmented. A response is a
//! line, or several with literals (§4.3) between them.

use bytes::{Buf, BytesMut};

use crate::mail::received::BOUNCE_BYTES;

/// Longest text of a response, without its literals. The longest is the response to a SEARCH: half a million messages.
const MAXIMUM_TEXT: usize = 4 * 1024 * 1024;

/// Bytes of a literal that are kept; the rest is read and dropped, so that one message with a huge header doesn't block
/// later ones. Postfix accepts 100 kB of header, Gmail 500 kB; a bounce is fetched up to this size.
const KEPT_OF_LITERAL: usize = BOUNCE_BYTES;

/// The longest literal that is read at all.
const MAXIMUM_LITERAL: usize = 64 * 1024 * 1024;

/// Maximum literals in one response; our requests yield at most one.
const MAXIMUM_LITERALS: usize = 4;

/// A complete response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Frame {
    /// Its lines, joined; each `{n}` in it stands for the next literal.
    pub(super) text: Vec<u8>,
    /// Its literals, each truncated to the limit.
    pub(super) literals: Vec<Vec<u8>>,
}

/// The received bytes are not a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server's answer isn't an IMAP response")]
pub(super) struct NotAResponse;

/// Splits received bytes into responses.
#[derive(Debug, Default)]
pub(super) struct Framing {
    frame: Frame,
    /// Bytes of the current literal that are still to be received.
    literal_left: usize,
    /// Bytes of the current line already searched for a line end.
    searched: usize,
}

impl Framing {
    /// Removes one complete response from the front of `buffer`; `None` while it is incomplete.
    pub(super) fn take(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, NotAResponse> {
        loop {
            self.take_literal(buffer);
            if self.literal_left > 0 {
                return Ok(None);
            }
            let Some(end) = memchr::memchr(b'\n', &buffer[self.searched..]) else {
                self.searched = buffer.len();
                return if self.frame.text.len() + buffer.len() > MAXIMUM_TEXT {
                    Err(NotAResponse)
                } else {
                    Ok(None)
                };
            };
            let end = self.searched + end;
            self.searched = 0;
            if self.frame.text.len() + end > MAXIMUM_TEXT {
                return Err(NotAResponse);
            }
            let line = &buffer[..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let begin = self.frame.text.len();
            self.frame.text.extend_from_slice(line);
            buffer.advance(end + 1);
            match announced_literal(&self.frame.text, begin) {
                None => return Ok(Some(std::mem::take(&mut self.frame))),
                Some(length)
                    if length <= MAXIMUM_LITERAL
                        && self.frame.literals.len() < MAXIMUM_LITERALS =>
                {
                    self.literal_left = length;
                    self.frame.literals.push(Vec::new());
                }
                Some(_) => return Err(NotAResponse),
            }
        }
    }

    fn take_literal(&mut self, buffer: &mut BytesMut) {
        let Some(literal) = self.frame.literals.last_mut() else {
            return;
        };
        let taken = self.literal_left.min(buffer.len());
        let kept = taken.min(KEPT_OF_LITERAL - literal.len());
        literal.extend_from_slice(&buffer[..kept]);
        buffer.advance(taken);
        self.literal_left -= taken;
    }
}

/// The length of the literal that follows the line at `begin`. Human-readable text may end with anything: only data has
/// literals.
fn announced_literal(text: &[u8], begin: usize) -> Option<usize> {
    let data = text.strip_prefix(b"* ")?;
    let word = data.split(|byte| *byte == b' ').next()?;
    let is_status = [&b"OK"[..], b"NO", b"BAD", b"BYE", b"PREAUTH"]
        .iter()
        .any(|status| word.eq_ignore_ascii_case(status));
    if is_status {
        return None;
    }
    let line = &text[begin..];
    let open = memchr::memrchr(b'{', line)?;
    let digits = line[open + 1..].strip_suffix(b"}")?;
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // A number too large to parse exceeds the limit anyway.
    let length = std::str::from_utf8(digits).ok()?.parse();
    Some(length.unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use proptest::prelude::*;

    fn take_all(bytes: &[u8], splits: &[usize]) -> Result<Vec<Frame>, NotAResponse> {
        let mut framing = Framing::default();
        let mut buffer = BytesMut::new();
        let mut frames = Vec::new();
        let mut rest = bytes;
        for split in splits.iter().copied().chain([usize::MAX]) {
            let (now, later) = rest.split_at(split.min(rest.len()));
            buffer.extend_from_slice(now);
            rest = later;
            while let Some(frame) = framing.take(&mut buffer)? {
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    const SEVERAL: &[u8] = b"* OK hi {3}\r\n* 1 FETCH (BODY[] {5}\r\na\r\nb\n UID 7)\r\n\
        * LIST () \"/\" {0}\r\n\r\n+ \r\nA1 OK done\n* half";

    #[test]
    fn responses_with_and_without_literals() {
        let frames = take_all(SEVERAL, &[]).unwrap();
        let texts: Vec<_> = frames
            .iter()
            .map(|frame| std::str::from_utf8(&frame.text).unwrap())
            .collect();
        assert_eq!(
            texts,
            [
                "* OK hi {3}",
                "* 1 FETCH (BODY[] {5} UID 7)",
                "* LIST () \"/\" {0}",
                "+ ",
                "A1 OK done"
            ]
        );
        assert_eq!(frames[1].literals, [b"a\r\nb\n"]);
        assert_eq!(frames[2].literals, [b""]);
    }

    #[test]
    fn what_is_too_long_is_refused_or_cut() {
        assert_eq!(
            take_all(&vec![b'x'; MAXIMUM_TEXT + 1], &[]),
            Err(NotAResponse)
        );
        for announced in ["99999999999999999999999", "67108865"] {
            let line = format!("* 1 FETCH (BODY[] {{{announced}}}\r\n");
            assert_eq!(take_all(line.as_bytes(), &[]), Err(NotAResponse));
        }
        let many = "* 1 FETCH ({0}\r\n".to_owned() + &" {0}\r\n".repeat(MAXIMUM_LITERALS);
        assert_eq!(take_all(many.as_bytes(), &[]), Err(NotAResponse));

        let mut long = b"* 1 FETCH (BODY[] {400000}\r\n".to_vec();
        long.extend(vec![b'x'; 400_000]);
        long.extend(b")\r\nA1 OK\r\n");
        let frames = take_all(&long, &[70_000, 270_000]).unwrap();
        assert_eq!(frames[0].literals[0].len(), KEPT_OF_LITERAL);
        assert_eq!(frames[1].text, b"A1 OK");
    }

    proptest! {
        #[test]
        fn any_split_reads_the_same(splits in proptest::collection::vec(0_usize..12, 0..20)) {
            prop_assert_eq!(take_all(SEVERAL, &splits), take_all(SEVERAL, &[]));
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = take_all(&bytes, &[]);
        }
    }
}
