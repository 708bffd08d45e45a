//! An outgoing message: pieces of shared buffers, so that removing or prepending a header copies nothing.

use bytes::Bytes;

/// Maximum chunk size, in bytes, so that encoding or storing a large message never doubles it.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// An RFC 5322 message in wire form, CRLF line ends throughout.
#[derive(Debug, Clone, Default)]
pub struct Message {
    pieces: Vec<Bytes>,
}

impl Message {
    /// Joins pieces, in order.
    #[must_use]
    pub fn from_pieces(pieces: Vec<Bytes>) -> Self {
        Self { pieces }
    }

    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// Whether every byte is ASCII.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.pieces.iter().all(|piece| piece.is_ascii())
    }

    /// The message in chunks of at most [`CHUNK_BYTES`].
    pub fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces
            .iter()
            .flat_map(|piece| piece.chunks(CHUNK_BYTES))
    }

    /// The message in chunks of at most [`CHUNK_BYTES`], which share its buffers.
    pub fn shared_chunks(&self) -> impl Iterator<Item = Bytes> + use<> {
        self.pieces.clone().into_iter().flat_map(|mut piece| {
            std::iter::from_fn(move || {
                let next = piece.split_to(piece.len().min(CHUNK_BYTES));
                (!next.is_empty()).then_some(next)
            })
        })
    }

    /// The message with `front` prepended, without copying.
    #[must_use]
    pub fn with_front(&self, front: Bytes) -> Self {
        let mut pieces = Vec::with_capacity(self.pieces.len() + 1);
        pieces.push(front);
        pieces.extend_from_slice(&self.pieces);
        Self { pieces }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_bounded() {
        let message =
            Message::from_pieces(vec![Bytes::from(vec![b'x'; 200_000]), Bytes::from("y")]);
        assert!(message.chunks().all(|chunk| chunk.len() <= CHUNK_BYTES));
        assert_eq!(
            message.chunks().map(<[u8]>::len).sum::<usize>(),
            message.size()
        );
        let shared: Vec<Bytes> = message.shared_chunks().collect();
        assert!(shared.iter().all(|chunk| chunk.len() <= CHUNK_BYTES));
        assert_eq!(
            shared.concat(),
            message.chunks().collect::<Vec<_>>().concat()
        );
    }

    #[test]
    fn something_goes_in_front() {
        let message = Message::from_pieces(vec![Bytes::from("b"), Bytes::new(), Bytes::from("c")]);
        let with_front = message.with_front(Bytes::from("a"));
        assert_eq!(
            with_front.shared_chunks().collect::<Vec<_>>().concat(),
            b"abc"
        );
        assert_eq!(message.size(), 2);
    }
}
