//! Base64 in MIME form: lines of 76 characters (RFC 2045 §6.8).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Bytes that make one line.
const LINE_BYTES: usize = 57;

/// Characters of one line, without and with its line end.
const LINE: usize = 76;
const LINE_WITH_END: usize = LINE + 2;

/// Encodes data that arrives in parts. The last line has no line end.
#[derive(Debug)]
pub(super) struct Base64Lines {
    encoded: Vec<u8>,
    /// The beginning of the next line, not encoded yet.
    waiting: Vec<u8>,
}

impl Base64Lines {
    /// For `length` bytes in total, whose memory is allocated up front.
    pub(super) fn for_length(length: usize) -> Self {
        let lines = length.div_ceil(LINE_BYTES);
        Self {
            encoded: Vec::with_capacity(lines * LINE_WITH_END),
            waiting: Vec::with_capacity(LINE_BYTES),
        }
    }

    /// Appends bytes.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        if !self.waiting.is_empty() {
            let missing = (LINE_BYTES - self.waiting.len()).min(bytes.len());
            let (first, rest) = bytes.split_at(missing);
            self.waiting.extend_from_slice(first);
            bytes = rest;
            if self.waiting.len() == LINE_BYTES {
                write_line(&mut self.encoded, &self.waiting);
                self.waiting.clear();
            }
        }
        let mut lines = bytes.chunks_exact(LINE_BYTES);
        for line in &mut lines {
            write_line(&mut self.encoded, line);
        }
        self.waiting.extend_from_slice(lines.remainder());
    }

    /// The encoded data.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if !self.waiting.is_empty() {
            write_line(&mut self.encoded, &self.waiting);
        }
        self.encoded
    }
}

fn write_line(encoded: &mut Vec<u8>, line: &[u8]) {
    if !encoded.is_empty() {
        encoded.extend_from_slice(b"\r\n");
    }
    let mut characters = [0; LINE];
    // It can't fail: the buffer fits the longest line.
    let length = STANDARD.encode_slice(line, &mut characters).unwrap_or(0);
    encoded.extend_from_slice(&characters[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_same_in_any_parts(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..10)) {
            let whole = parts.concat();
            let mut lines = Base64Lines::for_length(whole.len());
            let room = lines.encoded.capacity();
            for part in &parts {
                lines.push(part);
            }
            let encoded = lines.finish();
            prop_assert_eq!(encoded.capacity(), room, "no room was added");
            let text = String::from_utf8_lossy(&encoded).into_owned();
            let lines: Vec<&str> = text.split("\r\n").collect();
            prop_assert!(lines[..lines.len() - 1].iter().all(|line| line.len() == LINE));
            let joined = text.replace("\r\n", "");
            prop_assert_eq!(joined, STANDARD.encode(&whole));
        }
    }
}
