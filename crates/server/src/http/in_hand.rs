//! The requests in progress on one connection, and whether their responses make progress.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use crate::stranger::Stranger;
use mailgate_types::connection_limits::ConnectionPermit;

/// The requests of a connection.
#[derive(Debug, Default)]
pub(super) struct InHand {
    requests: Mutex<Requests>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Requests {
    /// The number of requests so far.
    begun: u64,
    /// By request number, when its response last made progress; `None` before there is a response.
    answers: HashMap<u64, Option<Instant>>,
}

/// A request, until its response is sent or abandoned.
#[derive(Debug)]
pub(super) struct Request {
    in_hand: Arc<InHand>,
    number: u64,
    /// The slot of a client behind a proxy.
    place: Option<ConnectionPermit>,
    /// The bytes held for an unauthenticated client.
    stranger: Option<Stranger>,
}

impl InHand {
    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a new request.
    pub(super) fn begin(self: &Arc<Self>) -> Request {
        let mut requests = self.requests();
        requests.begun += 1;
        let number = requests.begun;
        requests.answers.insert(number, None);
        drop(requests);
        Request {
            in_hand: Arc::clone(self),
            number,
            place: None,
            stranger: None,
        }
    }

    /// The number of requests so far.
    pub(super) fn begun(&self) -> u64 {
        self.requests().begun
    }

    /// Whether no request is in progress.
    pub(super) fn is_empty(&self) -> bool {
        self.requests().answers.is_empty()
    }

    /// Returns once a response has made no progress for `idle`: its client doesn't read.
    pub(super) async fn stalled(&self, idle: Duration) {
        loop {
            let oldest = self.requests().answers.values().flatten().min().copied();
            let Some(moved) = oldest else {
                self.changed.notified().await;
                continue;
            };
            if moved.elapsed() >= idle {
                return;
            }
            sleep_until(moved + idle).await;
        }
    }

    /// Returns once no request has been in progress for `time`.
    pub(super) async fn quiet(&self, time: Duration) {
        loop {
            let begun = self.begun();
            sleep(time).await;
            if self.is_empty() && self.begun() == begun {
                return;
            }
        }
    }
}

impl Request {
    /// Keeps this slot until the request ends.
    pub(super) fn keep_place(&mut self, place: ConnectionPermit) {
        self.place = Some(place);
    }

    /// Keeps these bytes until the request ends.
    pub(super) fn keep(&mut self, stranger: Option<Stranger>) {
        self.stranger = stranger;
    }

    /// Records that part of its response was sent, or could be.
    pub(super) fn moved(&self) {
        let mut requests = self.in_hand.requests();
        let before = requests.answers.insert(self.number, Some(Instant::now()));
        drop(requests);
        if before == Some(None) {
            self.in_hand.changed.notify_one();
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.in_hand.requests().answers.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn an_answer_that_does_not_move_is_seen_beside_one_that_does() {
        let in_hand = Arc::new(InHand::default());
        let (stuck, moving) = (in_hand.begin(), in_hand.begin());
        let mut stalled = std::pin::pin!(in_hand.stalled(SHORT));
        assert!(futures_util::poll!(stalled.as_mut()).is_pending());
        stuck.moved();
        let moves = async {
            loop {
                moving.moved();
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = stalled => {}
            () = moves => {}
        }
        drop(stuck);
        drop(moving);
        assert!(in_hand.is_empty());
        in_hand.quiet(SHORT).await;
    }
}
