//! The body of a request that sends a message: it is streamed in chunks, never held twice, and its last piece is sent
//! only with permission. A server doesn't act on an incomplete request.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use reqwest::header::CONTENT_LENGTH;
use reqwest::{Body, RequestBuilder, Response};
use tokio::sync::oneshot;

use super::transport::SendPermit;
use mailgate_types::message::Message;

/// What precedes the message in JSON. Base64 needs no escaping.
const JSON_START: &[u8] = br#"{"raw":""#;
const JSON_END: &[u8] = br#""}"#;

/// The body of a request.
pub(super) struct WithheldContent {
    /// In bytes.
    length: usize,
    body: Body,
    last: LastPiece,
}

/// The end of a body, which waits for permission.
struct LastPiece {
    /// Everything before it has been taken.
    reached: oneshot::Receiver<()>,
    /// Permission to send it.
    permission: oneshot::Sender<()>,
}

/// Why there is no response to a request.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// We withheld its last piece, for this reason.
    Withheld(String),
    /// It was not completed.
    NotWhole(reqwest::Error),
    /// It may have been received.
    Broken(reqwest::Error),
}

impl WithheldContent {
    /// The message in plain form.
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

    /// A body that is already in memory.
    pub(super) fn text(text: String) -> Self {
        let mut start = Bytes::from(text);
        let length = start.len();
        let end = start.split_off(length.saturating_sub(1));
        Self::over(length, [start, end].into_iter())
    }

    fn over(length: usize, parts: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        let (tell, reached) = oneshot::channel();
        let (permission, permitted) = oneshot::channel();
        let mut end = Some((tell, permitted));
        let mut left = length;
        let parts = stream::iter(parts).then(move |part| {
            left = left.saturating_sub(part.len());
            let end = if left == 0 { end.take() } else { None };
            async move {
                if let Some((tell, permitted)) = end {
                    // If the receiver is gone, it gives no permission either.
                    let _ = tell.send(());
                    permitted
                        .await
                        .map_err(|_| io::Error::from(io::ErrorKind::ConnectionAborted))?;
                }
                Ok::<_, io::Error>(part)
            }
        });
        Self {
            length,
            body: Body::wrap_stream(parts),
            last: LastPiece {
                reached,
                permission,
            },
        }
    }

    /// Sends a request with this body. `permit` is checked once all but its last piece has been sent.
    pub(super) async fn send(
        self,
        request: RequestBuilder,
        permit: &dyn SendPermit,
    ) -> Result<Response, Unanswered> {
        let LastPiece {
            reached,
            permission,
        } = self.last;
        let answering = request
            .header(CONTENT_LENGTH, self.length)
            .body(self.body)
            .send();
        tokio::pin!(answering);
        let asked = async {
            match reached.await {
                Ok(()) => permit.check().await,
                // The request has ended, and reports the outcome itself.
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            early = &mut answering => return early.map_err(Unanswered::NotWhole),
            asked = asked => asked.map_err(Unanswered::Withheld)?,
        }
        // If the receiver is gone, the request reports the outcome itself.
        let _ = permission.send(());
        answering.await.map_err(|error| {
            if error.is_connect() {
                Unanswered::NotWhole(error)
            } else {
                Unanswered::Broken(error)
            }
        })
    }
}

/// Three bytes become four characters: the remainder of each chunk is carried over to the next.
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

    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;
    use http_body_util::BodyExt;
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    fn collected(content: WithheldContent) -> Vec<u8> {
        content.last.permission.send(()).unwrap();
        let read = async { content.body.collect().await.unwrap().to_bytes() };
        let bytes = read.now_or_never().unwrap();
        assert_eq!(bytes.len(), content.length);
        bytes.to_vec()
    }

    proptest! {
        #[test]
        fn each_content_holds_the_message(
            pieces in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..50), 1..8
            )
        ) {
            let whole = pieces.concat();
            let message = Message::from_pieces(pieces.into_iter().map(Bytes::from).collect());
            let json: serde_json::Value =
                serde_json::from_slice(&collected(WithheldContent::json(&message))).unwrap();
            prop_assert_eq!(URL_SAFE.decode(json["raw"].as_str().unwrap()).unwrap(), &whole[..]);
            if !whole.is_empty() {
                let text = URL_SAFE.encode(&whole);
                prop_assert_eq!(collected(WithheldContent::text(text.clone())), text.into_bytes());
                prop_assert_eq!(collected(WithheldContent::plain(&message)), whole);
            }
        }
    }

    /// Gives a preset answer and counts the calls.
    #[derive(Debug)]
    struct CountingPermit {
        answer: Result<(), String>,
        times: AtomicUsize,
    }

    impl SendPermit for CountingPermit {
        fn check(&self) -> BoxFuture<'_, Result<(), String>> {
            self.times.fetch_add(1, Ordering::Relaxed);
            std::future::ready(self.answer.clone()).boxed()
        }
    }

    const LETTER: &str = "Subject: a letter\r\n\r\nof three pieces\r\n";

    /// Sends a letter to a server that reads until the end of it or of the connection; returns what it received, and
    /// how the request ended.
    async fn exchange(
        content: WithheldContent,
        answer: Result<(), String>,
        is_early: bool,
    ) -> (String, Result<u16, Unanswered>, usize) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut got, mut buffer) = (Vec::new(), [0; 1024]);
            if is_early {
                stream
                    .write_all(b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n")
                    .await
                    .unwrap();
            }
            while !got.ends_with(b"pieces\r\n") {
                match stream.read(&mut buffer).await {
                    Ok(0) | Err(_) => return got,
                    Ok(count) => got.extend_from_slice(&buffer[..count]),
                }
            }
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                .await
                .unwrap();
            got
        };
        let server = tokio::spawn(server);
        let client = crate::answer::fuzzing::client();
        let permit = CountingPermit {
            answer,
            times: AtomicUsize::new(0),
        };
        let sent = content
            .send(client.post(format!("http://{address}/")), &permit)
            .await;
        drop(client);
        let got = String::from_utf8(server.await.unwrap()).unwrap();
        let body = got.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        (
            body.unwrap_or_default(),
            sent.map(|response| response.status().as_u16()),
            permit.times.into_inner(),
        )
    }

    fn letter() -> WithheldContent {
        let pieces = LETTER.as_bytes().chunks(14).map(Bytes::from_static);
        WithheldContent::plain(&Message::from_pieces(pieces.collect()))
    }

    #[tokio::test]
    async fn the_last_piece_leaves_with_permission_alone() {
        let (got, sent, times) = exchange(letter(), Ok(()), false).await;
        assert!(matches!(sent, Ok(200)), "{sent:?}");
        assert_eq!((got.as_str(), times), (LETTER, 1));

        let (got, sent, times) = exchange(letter(), Err("not now".to_owned()), false).await;
        assert!(
            matches!(&sent, Err(Unanswered::Withheld(why)) if why == "not now"),
            "{sent:?}"
        );
        assert!(
            LETTER.starts_with(&got) && got.len() < LETTER.len(),
            "{got:?}"
        );
        assert_eq!(times, 1);

        // Even a body of a single piece is held back.
        let one = || WithheldContent::text(LETTER.to_owned());
        let (got, sent, _) = exchange(one(), Err("not now".to_owned()), false).await;
        assert!(matches!(sent, Err(Unanswered::Withheld(_))), "{sent:?}");
        assert!(got.len() < LETTER.len(), "{got:?}");
        let (got, sent, _) = exchange(one(), Ok(()), false).await;
        assert!(matches!(sent, Ok(200)), "{sent:?}");
        assert_eq!(got, LETTER);
    }
}
