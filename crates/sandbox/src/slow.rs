//! Delays mail to `slow@…`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// The delay, unless mail is held.
const PAUSE: Duration = Duration::from_secs(2);

/// Delays mail by two seconds, or for as long as it is held.
#[derive(Debug, Clone, Default)]
pub struct SlowMail {
    /// The number of holders.
    holders: Arc<watch::Sender<usize>>,
    /// The number of waiting messages.
    waiting: Arc<AtomicUsize>,
}

impl SlowMail {
    /// Holds mail to `slow@…` that arrives from now on, until the returned value is dropped.
    #[must_use]
    pub fn hold(&self) -> Hold {
        self.holders.send_modify(|holders| *holders += 1);
        Hold(self.clone())
    }

    /// The number of messages that have arrived completely but aren't accepted yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) async fn pause(&self) {
        let _waits = Waits::new(&self.waiting);
        let mut holders = self.holders.subscribe();
        if *holders.borrow_and_update() == 0 {
            tokio::time::sleep(PAUSE).await;
        } else {
            // The sender lives as long as this value.
            drop(holders.wait_for(|holders| *holders == 0).await);
        }
    }
}

/// A waiting message, until it is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Holds mail to `slow@…` until dropped.
#[derive(Debug)]
pub struct Hold(SlowMail);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.holders.send_modify(|holders| *holders -= 1);
    }
}
