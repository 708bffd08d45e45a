//! The lane of one endpoint: its leased deliveries, its places, and how fast it responds.

use std::collections::VecDeque;
use std::time::Duration;

use super::owner::Owner;

/// Places that a new endpoint begins with.
pub(super) const FIRST: usize = 4;

/// How much work is leased ahead of an endpoint's places, based on how fast it responded recently.
const AHEAD: Duration = Duration::from_millis(200);

/// The largest number of deliveries leased for one endpoint.
pub(super) const WINDOW: usize = 1_024;

/// The assumed pace of a new endpoint: nothing is leased ahead.
const UNKNOWN: Duration = AHEAD;

/// An endpoint's lane.
#[derive(Debug)]
pub(super) struct Lane<T> {
    pub(super) owner: Owner,
    pub(super) waiting: VecDeque<T>,
    pub(super) in_flight: usize,
    pub(super) places: usize,
    /// A moving average of how long its deliveries take.
    pub(super) pace: Duration,
    /// Whether it is in the queue of lanes that have something to start.
    pub(super) in_line: bool,
    /// Whether the last poll of the queue found more for it.
    pub(super) has_more: bool,
}

impl<T> Lane<T> {
    /// The lane of an endpoint that nothing has been delivered to yet.
    pub(super) fn new(owner: Owner, places: usize) -> Self {
        Self {
            owner,
            waiting: VecDeque::new(),
            in_flight: 0,
            places,
            pace: UNKNOWN,
            in_line: false,
            has_more: false,
        }
    }

    /// How many deliveries may be leased for it at the same time.
    pub(super) fn window(&self) -> usize {
        let rounds = AHEAD.as_micros() / self.pace.as_micros().max(1);
        let ahead = self
            .places
            .saturating_mul(usize::try_from(rounds).unwrap_or(WINDOW));
        ahead.min(WINDOW).max(self.places)
    }

    pub(super) fn room(&self) -> usize {
        self.window()
            .saturating_sub(self.waiting.len() + self.in_flight)
    }
}
