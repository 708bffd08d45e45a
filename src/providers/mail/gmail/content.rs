//! A message as the content of a request: handed out piece by piece, never held twice.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use reqwest::Body;

use crate::types::message::Message;

/// What stands around the message in JSON. Base64 needs no escapes.
const JSON_START: &[u8] = br#"{"raw":""#;
const JSON_END: &[u8] = br#""}"#;

/// The content of a request.
pub(super) struct Content {
    /// In bytes.
    pub(super) length: usize,
    pub(super) body: Body,
    pub(super) handed_out: HandedOut,
}

/// How much of a content the HTTP client has taken.
#[derive(Clone, Default)]
pub(super) struct HandedOut(Arc<AtomicBool>);

impl HandedOut {
    /// All of it, so that the other side may have it.
    pub(super) fn is_whole(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Content {
    /// The message as it is.
    pub(super) fn plain(message: &Message) -> Self {
        Self::over(message.size(), message.shared_chunks())
    }

    /// `{"raw": …}` with the message in base64url (RFC 4648 §5).
    pub(super) fn json(message: &Message) -> Self {
        let length = JSON_START.len() + message.size().div_ceil(3) * 4 + JSON_END.len();
        let parts = std::iter::once(Bytes::from_static(JSON_START))
            .chain(encoded(message.shared_chunks()))
            .chain(std::iter::once(Bytes::from_static(JSON_END)));
        Self::over(length, parts)
    }

    fn over(length: usize, parts: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        let handed_out = HandedOut::default();
        let whole = Arc::clone(&handed_out.0);
        let mut left = length;
        let parts = parts.map(move |part| {
            left = left.saturating_sub(part.len());
            if left == 0 {
                whole.store(true, Ordering::Release);
            }
            Ok::<_, Infallible>(part)
        });
        Self {
            length,
            body: Body::wrap_stream(stream::iter(parts)),
            handed_out,
        }
    }
}

/// Three bytes become four letters: what is over at the end of a chunk goes in front of the next.
fn encoded(mut chunks: impl Iterator<Item = Bytes>) -> impl Iterator<Item = Bytes> {
    let mut over = BytesMut::new();
    let mut ended = false;
    std::iter::from_fn(move || {
        while !ended {
            if let Some(chunk) = chunks.next() {
                over.extend_from_slice(&chunk);
            } else {
                ended = true;
            }
            let whole = if ended {
                over.len()
            } else {
                over.len() - over.len() % 3
            };
            if whole > 0 {
                return Some(Bytes::from(URL_SAFE.encode(over.split_to(whole))));
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use http_body_util::BodyExt;
    use proptest::prelude::*;

    use super::*;

    fn collected(content: Content) -> Vec<u8> {
        let read = async { content.body.collect().await.unwrap().to_bytes() };
        let bytes = futures_util::FutureExt::now_or_never(read).unwrap();
        assert_eq!(bytes.len(), content.length);
        assert!(content.handed_out.is_whole());
        bytes.to_vec()
    }

    proptest! {
        #[test]
        fn both_contents_hold_the_message(
            pieces in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..50), 1..8
            )
        ) {
            let whole = pieces.concat();
            let message = Message::from_pieces(pieces.into_iter().map(Bytes::from).collect());
            let json: serde_json::Value =
                serde_json::from_slice(&collected(Content::json(&message))).unwrap();
            prop_assert_eq!(URL_SAFE.decode(json["raw"].as_str().unwrap()).unwrap(), &whole[..]);
            if !whole.is_empty() {
                prop_assert_eq!(collected(Content::plain(&message)), whole);
            }
        }
    }

    #[test]
    fn what_nobody_has_taken_is_not_whole() {
        let message = Message::from_pieces(vec![Bytes::from("ab"), Bytes::from("c")]);
        let mut content = Content::plain(&message);
        assert!(!content.handed_out.is_whole());
        let mut next = || futures_util::FutureExt::now_or_never(content.body.frame()).unwrap();
        assert!(next().is_some());
        assert!(!content.handed_out.is_whole());
        assert!(next().is_some());
        assert!(content.handed_out.is_whole());
    }
}
