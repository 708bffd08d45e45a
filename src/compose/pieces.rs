//! The bytes of a message while it is written: what is large becomes a piece of its own, so that
//! nothing is copied twice.

use bytes::Bytes;

use mailgate_types::message::Message;

/// Octets from which on a piece stands by itself: copying fewer costs less than one more write.
const LARGE: usize = 16 * 1024;

/// The pieces that are done, and the one being written.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    done: Vec<Bytes>,
    open: Vec<u8>,
}

impl Pieces {
    /// Appends what is small.
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

    /// Ends the last line, if it has no end yet.
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
