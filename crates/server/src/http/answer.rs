//! A response body in pieces, each of which reports when it has been sent, so that clients that don't read are
//! detected. In HTTP/2 a client controls the window of each response, and may leave it closed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};

use super::in_hand::Request;

/// Bytes of a piece.
const PIECE: usize = 16 * 1024;

/// The body of the response to a request in progress.
pub(super) struct TrackedBody {
    body: Body,
    /// The rest of the body's last frame.
    rest: Bytes,
    request: Arc<Request>,
}

/// Bytes that are dropped once they have been sent.
struct Piece {
    bytes: Bytes,
    request: Arc<Request>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.request.moved();
    }
}

impl TrackedBody {
    pub(super) fn new(body: Body, request: Request) -> Self {
        request.moved();
        Self {
            body,
            rest: Bytes::new(),
            request: Arc::new(request),
        }
    }
}

impl hyper::body::Body for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        while self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            // Also for an empty piece, by which a body reports that the next one takes a while.
            self.request.moved();
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let length = self.rest.len().min(PIECE);
        let piece = Piece {
            bytes: self.rest.split_to(length),
            request: Arc::clone(&self.request),
        };
        self.request.moved();
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let body = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower().saturating_add(rest));
        if let Some(upper) = body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}
