//! The fuzz target of a submission server's replies.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use bytes::BytesMut;

use super::super::reply::{NotAReply, Reply, take_reply};
use super::extensions::Extensions;
use mailgate_types::fuzzing::{Input, is_printable, pieces};

/// Any stream, however it is split.
pub fn smtp_replies(data: &[u8]) {
    let mut input = Input::new(data);
    let cuts = input.cuts();
    let stream = input.rest();
    let whole = replies(&[stream]);
    assert_eq!(replies(&pieces(stream, cuts)), whole);
    assert_eq!(replies(&pieces(stream, &[1])), whole);
    for reply in whole.0 {
        assert!((200..600).contains(&reply.code) && !reply.lines.is_empty());
        assert!(reply.lines.iter().all(|line| is_printable(line)));
        assert_eq!(reply.failure().code, Some(reply.code));
        assert!(reply.enhanced().is_none_or(|word| word.len() >= 5));
        let _ = (
            Extensions::read(&reply),
            reply.is_positive(),
            reply.is_permanent(),
        );
    }
}

/// The replies, and whether the stream stayed valid.
fn replies(pieces: &[&[u8]]) -> (Vec<Reply>, bool) {
    let (mut buffer, mut replies) = (BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match take_reply(&mut buffer) {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => break,
                Err(NotAReply) => return (replies, false),
            }
        }
    }
    (replies, true)
}
