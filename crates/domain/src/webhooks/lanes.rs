//! Schedules deliveries. Each endpoint has a lane of its own: deliveries that this process has leased for it, and the
//! number of places that it may use concurrently. A lane begins with few places, gains one with each success up to
//! the limit, and loses half of them with each failure, so that a hanging endpoint holds few of the shared places.
//! Lanes are served in turn. A subscriber, whatever the number of its endpoints, has no more in flight than it leaves
//! places to the others.

mod lane;
mod owner;
mod share_out;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use self::lane::{FIRST, Lane};
use self::owner::{Owned, Owner};
use mailgate_types::ids::EndpointId;

/// The largest number of lanes kept, beyond which empty ones are dropped.
const REMEMBERED: usize = 10_000;

/// An item that waits in a lane.
pub(super) trait Leased {
    /// When its lease ends.
    fn until(&self) -> Instant;
}

/// The number of a subscriber's lanes that rejoin the queue when one of its deliveries ends, or on its turn when
/// others' end.
const BACK_IN_LINE: usize = 2;

/// All lanes of a process.
#[derive(Debug)]
pub(super) struct Lanes<T> {
    by_endpoint: HashMap<EndpointId, Lane<T>>,
    by_owner: HashMap<Owner, Owned>,
    /// Subscribers that have lanes set aside, in turn.
    aside: VecDeque<Owner>,
    line: VecDeque<EndpointId>,
    waiting: usize,
    in_flight: usize,
    concurrency: usize,
    endpoint_concurrency: usize,
}

impl<T: Leased> Lanes<T> {
    /// Creates lanes with `concurrency` places in total, and `endpoint_concurrency` for one endpoint.
    pub(super) fn new(concurrency: usize, endpoint_concurrency: usize) -> Self {
        Self {
            by_endpoint: HashMap::new(),
            by_owner: HashMap::new(),
            aside: VecDeque::new(),
            line: VecDeque::new(),
            waiting: 0,
            in_flight: 0,
            concurrency,
            endpoint_concurrency,
        }
    }

    /// Deliveries in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Deliveries waiting for a place.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Puts a leased delivery into its endpoint's lane.
    pub(super) fn push(&mut self, endpoint: EndpointId, owner: Owner, delivery: T) {
        let places = FIRST.min(self.endpoint_concurrency);
        let lane = self
            .by_endpoint
            .entry(endpoint)
            .or_insert_with(|| Lane::new(owner, places));
        lane.waiting.push_back(delivery);
        self.by_owner.entry(lane.owner).or_default().leased += 1;
        self.waiting += 1;
        Self::queue_up(&mut self.line, endpoint, lane);
    }

    /// The next delivery to start, if there is a place for one.
    pub(super) fn start(&mut self) -> Option<T> {
        while self.in_flight < self.concurrency {
            let endpoint = self.line.pop_front()?;
            let Some(lane) = self.by_endpoint.get_mut(&endpoint) else {
                continue;
            };
            lane.in_line = false;
            if lane.in_flight >= lane.places || lane.waiting.is_empty() {
                continue;
            }
            let owned = self.by_owner.entry(lane.owner).or_default();
            let free = self.concurrency - self.in_flight;
            // One is always admitted, so a subscriber with lanes set aside has a delivery whose end requeues them.
            if owned.in_flight > 0 && owned.in_flight + 2 > free {
                lane.in_line = true;
                if !owned.in_turn {
                    owned.in_turn = true;
                    self.aside.push_back(lane.owner);
                }
                owned.aside.push_back(endpoint);
                continue;
            }
            let Some(delivery) = lane.waiting.pop_front() else {
                continue;
            };
            self.waiting -= 1;
            lane.in_flight += 1;
            owned.in_flight += 1;
            self.in_flight += 1;
            Self::queue_up(&mut self.line, endpoint, lane);
            return Some(delivery);
        }
        None
    }

    /// Records that a delivery has ended, and how long it took; returns whether to poll for more of its endpoint's.
    pub(super) fn end(&mut self, endpoint: EndpointId, success: bool, took: Duration) -> bool {
        let Some(lane) = self.by_endpoint.get_mut(&endpoint) else {
            return false;
        };
        self.in_flight = self.in_flight.saturating_sub(1);
        lane.in_flight = lane.in_flight.saturating_sub(1);
        if let Entry::Occupied(mut owned) = self.by_owner.entry(lane.owner) {
            let Owned {
                leased,
                in_flight,
                aside,
                ..
            } = owned.get_mut();
            *leased = leased.saturating_sub(1);
            *in_flight = in_flight.saturating_sub(1);
            let back = match *in_flight {
                0 => aside.len(),
                _ => aside.len().min(BACK_IN_LINE),
            };
            self.line.extend(aside.drain(..back));
            if *leased == 0 && *in_flight == 0 && aside.is_empty() {
                owned.remove();
            }
        }
        lane.pace = (lane.pace * 7 + took) / 8;
        lane.places = if success {
            (lane.places + 1).min(self.endpoint_concurrency)
        } else {
            (lane.places / 2).max(1)
        };
        Self::queue_up(&mut self.line, endpoint, lane);
        self.bring_back();
        let Some(lane) = self.by_endpoint.get_mut(&endpoint) else {
            return false;
        };
        let is_time = lane.has_more && lane.room() >= (lane.window() / 2).max(1);
        lane.has_more &= !is_time;
        is_time
    }

    /// Removes waiting deliveries whose lease ends before `until`.
    pub(super) fn take_short(&mut self, until: Instant) -> Vec<T> {
        self.take_while(|delivery| delivery.until() < until)
    }

    fn take_while(&mut self, is_taken: impl Fn(&T) -> bool) -> Vec<T> {
        let mut short = Vec::new();
        for lane in self.by_endpoint.values_mut() {
            // The oldest lease is in front.
            while lane.waiting.front().is_some_and(&is_taken) {
                short.extend(lane.waiting.pop_front());
                if let Some(owned) = self.by_owner.get_mut(&lane.owner) {
                    owned.leased = owned.leased.saturating_sub(1);
                }
            }
        }
        self.waiting -= short.len();
        short
    }

    /// Removes all waiting deliveries.
    pub(super) fn take_waiting(&mut self) -> Vec<T> {
        self.take_while(|_| true)
    }

    /// Drops empty lanes, once there are many.
    pub(super) fn forget_idle(&mut self) {
        if self.by_endpoint.len() > REMEMBERED {
            self.by_endpoint
                .retain(|_, lane| lane.in_flight > 0 || !lane.waiting.is_empty());
        }
        self.by_owner
            .retain(|_, owned| owned.leased > 0 || owned.in_flight > 0);
    }

    /// Requeues lanes of the next subscriber with some set aside: one more place is free for all.
    fn bring_back(&mut self) {
        while let Some(owner) = self.aside.pop_front() {
            let Some(owned) = self.by_owner.get_mut(&owner) else {
                continue;
            };
            let back = owned.aside.len().min(BACK_IN_LINE);
            self.line.extend(owned.aside.drain(..back));
            owned.in_turn = !owned.aside.is_empty();
            if owned.in_turn {
                self.aside.push_back(owner);
            }
            if back > 0 {
                return;
            }
        }
    }

    fn queue_up(queue: &mut VecDeque<EndpointId>, endpoint: EndpointId, lane: &mut Lane<T>) {
        if !lane.in_line && !lane.waiting.is_empty() && lane.in_flight < lane.places {
            lane.in_line = true;
            queue.push_back(endpoint);
        }
    }
}

#[cfg(test)]
mod tests;
