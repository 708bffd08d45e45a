//! A request's body as it arrives: with bounds on its pace, its duration and the sender's share of memory. These bounds
//! hold for every reader.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use mailgate_server::stranger::Stranger;
use mailgate_types::patience::Patience;

/// The time that an unauthenticated caller has for its body.
const OF_STRANGERS: Duration = Duration::from_mins(1);

/// The time left for a body once the process shuts down: a request isn't accepted before its body is complete.
const LAST_BYTES: Duration = Duration::from_secs(5);

/// The bounds on all bodies.
#[derive(Debug, Clone)]
pub(crate) struct BodyLimits {
    /// Longest pause.
    pub(crate) idle: Duration,
    /// The minimum average rate, however fast the body began; pauses up to the longest one are forgiven.
    pub(crate) bytes_per_second: u32,
    /// The process accepts no new requests.
    pub(crate) finishing: CancellationToken,
}

/// A body that was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// A pause was too long, or the body arrived too slowly.
    #[error("the body came too slowly")]
    TooSlow,
    /// The process is shutting down.
    #[error("the process ends")]
    Finishing,
    /// The memory limit is reached.
    #[error("there is no room for the body")]
    NoRoom,
}

/// A body within its bounds.
pub(crate) struct BoundedBody {
    body: Body,
    stranger: Stranger,
    /// When it was first polled.
    began: Option<Instant>,
    /// When data last arrived, or the body was first polled, and the patience since.
    last: Instant,
    patience: Patience,
    received: u64,
    finishing: Pin<Box<WaitForCancellationFutureOwned>>,
    /// When shutdown began.
    last_call: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl BoundedBody {
    /// An unread body.
    pub(crate) fn new(body: Body, limits: &BodyLimits, stranger: Stranger) -> Self {
        Self {
            body,
            stranger,
            began: None,
            last: Instant::now(),
            patience: Patience::new(limits.idle, limits.bytes_per_second, 0),
            received: 0,
            finishing: Box::pin(limits.finishing.clone().cancelled_owned()),
            last_call: None,
            timer: None,
        }
    }

    /// When it was first polled: now, if it never was.
    fn began(&mut self) -> Instant {
        let now = Instant::now();
        if self.began.is_none() {
            self.last = now;
        }
        *self.began.get_or_insert(now)
    }

    /// The deadline, and the error when it passes.
    fn deadline(&mut self, began: Instant) -> (Instant, BodyError) {
        let mut deadline = self.last + self.patience.left(self.received);
        if self.stranger.is_one() {
            deadline = deadline.min(began + OF_STRANGERS);
        }
        match self.last_call {
            Some(at) if self.stranger.is_one() => (at, BodyError::Finishing),
            Some(at) if at + LAST_BYTES < deadline => (at + LAST_BYTES, BodyError::Finishing),
            _ => (deadline, BodyError::TooSlow),
        }
    }

    /// Waits for the deadline while nothing comes.
    fn poll_deadline(&mut self, began: Instant, context: &mut Context<'_>) -> Poll<BodyError> {
        if self.last_call.is_none() && self.finishing.as_mut().poll(context).is_ready() {
            self.last_call = Some(Instant::now());
        }
        let (deadline, error) = self.deadline(began);
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        timer.as_mut().poll(context).map(|()| error)
    }

    fn take(&mut self, data: &Bytes) -> Result<(), BodyError> {
        let now = Instant::now();
        self.patience.waited(now - self.last);
        self.last = now;
        self.received += u64::try_from(data.len()).unwrap_or(u64::MAX);
        self.stranger
            .grow(data.len())
            .map_err(|_| BodyError::NoRoom)
    }
}

impl hyper::body::Body for BoundedBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let began = self.began();
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let taken = frame.data_ref().map_or(Ok(()), |data| self.take(data));
                Poll::Ready(Some(taken.map(|()| frame).map_err(Into::into)))
            }
            Poll::Ready(end) => Poll::Ready(end.map(|result| result.map_err(Into::into))),
            Poll::Pending => self.poll_deadline(began, context).map(|error| {
                metrics::counter!("mailgate_http_cut_bodies_total").increment(1);
                Some(Err(error.into()))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
