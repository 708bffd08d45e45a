//! The bytes of a message being composed: large parts become pieces of their own, so that nothing is copied twice.

use bytes::Bytes;

use mailgate_types::message::Message;

/// Minimum octets of a separate piece: copying fewer is cheaper than another write.
const LARGE: usize = 16 * 1024;

/// The finished pieces, and the one being written.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    done: Vec<Bytes>,
    open: Vec<u8>,
}

impl Pieces {
    /// Appends a small part.
    pub(super) fn push(&mut self, text: &str) {
        self.open.extend_from_slice(text.as_bytes());
    }

    /// Appends a whole body or file.
    pub(super) fn push_piece(&mut self, piece: Vec<u8>) {
        if piece.len() < LARGE {
            self.open.extend_from_slice(&piece);
            return;
        }
        self.close();
        self.done.push(Bytes::from(piece));
    }

    /// Ends the last line, unless it has ended already.
    pub(super) fn end_line(&mut self) {
        let last: &[u8] = if self.open.is_empty() {
            self.done.last().map_or(&[], AsRef::as_ref)
        } else {
            &self.open
        };
        if !last.ends_with(b"\r\n") {
            self.push("\r\n");
        }
    }

    pub(super) fn into_message(mut self) -> Message {
        self.close();
        Message::from_pieces(self.done)
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.done.push(Bytes::from(std::mem::take(&mut self.open)));
        }
    }
}
