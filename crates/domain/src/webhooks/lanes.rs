//! Schedules deliveries. Each endpoint has a lane of its own: deliveries that this process has leased for it, and the
//! number of places that it may use concurrently. A lane begins with few places, gains one with each success up to
//! the limit, and loses half of them with each failure, so that a hanging endpoint holds few of the shared places.
//! Lanes are served in turn. A subscriber, whatever the number of its endpoints, has no more in flight than it leaves
//! places to the others.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use mailgate_types::ids::{EndpointId, SubscriberId};

/// Places that a new endpoint begins with.
const FIRST: usize = 4;

/// How much work is leased ahead of an endpoint's places, based on how fast it responded recently.
const AHEAD: Duration = Duration::from_millis(200);

/// The largest number of deliveries leased for one endpoint.
const WINDOW: usize = 1_024;

/// The largest number of lanes kept, beyond which empty ones are dropped.
const REMEMBERED: usize = 10_000;

/// The assumed pace of a new endpoint: nothing is leased ahead.
const UNKNOWN: Duration = AHEAD;

/// An item that waits in a lane.
pub(super) trait Leased {
    /// When its lease ends.
    fn until(&self) -> Instant;
}

/// The owner of an endpoint; those of deleted apps share one.
type Owner = Option<SubscriberId>;

/// The share of all leases that one subscriber may have.
const PARTS: usize = 4;

/// The number of a subscriber's lanes that rejoin the queue when one of its deliveries ends, or on its turn when
/// others' end.
const BACK_IN_LINE: usize = 2;

#[derive(Debug, Default)]
struct Owned {
    leased: usize,
    in_flight: usize,
    /// Whether its lanes rejoin the queue in turn.
    in_turn: bool,
    /// Lanes that have something to start once the subscriber has fewer in flight, or more places are free.
    aside: VecDeque<EndpointId>,
}

#[derive(Debug)]
struct Lane<T> {
    owner: Owner,
    waiting: VecDeque<T>,
    in_flight: usize,
    places: usize,
    /// A moving average of how long its deliveries take.
    pace: Duration,
    /// Whether it is in the queue of lanes that have something to start.
    in_line: bool,
    /// Whether the last poll of the queue found more for it.
    has_more: bool,
}

impl<T> Lane<T> {
    /// How many deliveries may be leased for it at the same time.
    fn window(&self) -> usize {
        let rounds = AHEAD.as_micros() / self.pace.as_micros().max(1);
        let ahead = self
            .places
            .saturating_mul(usize::try_from(rounds).unwrap_or(WINDOW));
        ahead.min(WINDOW).max(self.places)
    }

    fn room(&self) -> usize {
        self.window()
            .saturating_sub(self.waiting.len() + self.in_flight)
    }
}

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

    /// The number that may be leased in total.
    fn most(&self) -> usize {
        self.concurrency.saturating_mul(4).max(2 * WINDOW)
    }

    /// The number that may still be leased in total.
    pub(super) fn room(&self) -> usize {
        self.most().saturating_sub(self.waiting + self.in_flight)
    }

    /// The number that may still be leased for one subscriber.
    fn room_of_owner(&self, owner: Owner) -> usize {
        let leased = self.by_owner.get(&owner).map_or(0, |owned| owned.leased);
        (self.most() / PARTS).saturating_sub(leased)
    }

    /// Divides the room among endpoints with ready deliveries, `most` deliveries at most. Endpoints that have a lane
    /// are marked as having more.
    pub(super) fn share_out(
        &mut self,
        endpoints: &[EndpointId],
        most: usize,
    ) -> Vec<(EndpointId, i64)> {
        let mut left = self.room().min(most);
        // A new endpoint's owner is known only from its first deliveries, so new endpoints leave most of the room to
        // the others.
        let mut left_to_new = self.room() / PARTS;
        let mut waiting = endpoints.len();
        let mut places = Vec::with_capacity(waiting);
        let mut left_of: HashMap<Owner, usize> = HashMap::new();
        for endpoint in endpoints {
            // Room that earlier endpoints leave unused is available to later ones.
            let share = left.div_ceil(waiting.max(1));
            waiting -= 1;
            let wanted = self.room_of(*endpoint);
            let mut number = wanted.min(share);
            if let Some(lane) = self.by_endpoint.get_mut(endpoint) {
                lane.has_more = true;
                let owner = lane.owner;
                let left_of = match left_of.entry(owner) {
                    Entry::Occupied(left_of) => left_of.into_mut(),
                    Entry::Vacant(left_of) => left_of.insert(self.room_of_owner(owner)),
                };
                number = number.min(*left_of);
                *left_of -= number;
            } else {
                number = number.min(left_to_new);
                left_to_new -= number;
            }
            if number > 0 {
                left -= number;
                places.push((*endpoint, i64::try_from(number).unwrap_or(i64::MAX)));
            }
        }
        places
    }

    /// The number that may still be leased for an endpoint: its places, plus its deliveries in [`AHEAD`].
    pub(super) fn room_of(&self, endpoint: EndpointId) -> usize {
        let Some(lane) = self.by_endpoint.get(&endpoint) else {
            return FIRST.min(self.endpoint_concurrency);
        };
        lane.room()
    }

    /// Puts a leased delivery into its endpoint's lane.
    pub(super) fn push(&mut self, endpoint: EndpointId, owner: Owner, delivery: T) {
        let places = FIRST.min(self.endpoint_concurrency);
        let lane = self.by_endpoint.entry(endpoint).or_insert_with(|| Lane {
            owner,
            waiting: VecDeque::new(),
            in_flight: 0,
            places,
            pace: UNKNOWN,
            in_line: false,
            has_more: false,
        });
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Delivery(EndpointId, Instant);

    impl Leased for Delivery {
        fn until(&self) -> Instant {
            self.1
        }
    }

    const FAST: Duration = Duration::from_millis(1);

    fn endpoint(number: u128) -> EndpointId {
        EndpointId(Uuid::from_u128(number))
    }

    fn owner(number: u128) -> Owner {
        (number > 0).then(|| SubscriberId(Uuid::from_u128(number)))
    }

    fn filled(lanes: &mut Lanes<Delivery>, number: u128, deliveries: usize) {
        for _ in 0..deliveries {
            let delivery = Delivery(endpoint(number), Instant::now());
            lanes.push(endpoint(number), owner(number / 10), delivery);
        }
    }

    #[test]
    fn endpoints_take_turns() {
        let mut lanes = Lanes::new(100, 100);
        filled(&mut lanes, 1, 100);
        filled(&mut lanes, 2, 2);
        filled(&mut lanes, 3, 1);
        let order: Vec<u128> = std::iter::from_fn(|| lanes.start())
            .map(|Delivery(endpoint, _)| endpoint.0.as_u128())
            .collect();
        assert_eq!(order, [1, 2, 3, 1, 2, 1, 1]);
        assert_eq!((lanes.in_flight(), lanes.waiting()), (7, 96));
    }

    #[test]
    fn an_endpoint_that_fails_holds_one_place() {
        let mut lanes = Lanes::new(100, 32);
        filled(&mut lanes, 1, 50);
        assert_eq!(std::iter::from_fn(|| lanes.start()).count(), FIRST);
        for _ in 0..FIRST {
            lanes.end(endpoint(1), false, Duration::from_secs(15));
        }
        assert_eq!(std::iter::from_fn(|| lanes.start()).count(), 1);
        assert_eq!(lanes.room_of(endpoint(1)), 0);
        // None of that blocks another endpoint.
        assert_eq!(lanes.room_of(endpoint(2)), FIRST);
        filled(&mut lanes, 2, 1);
        assert_eq!(lanes.start().map(|started| started.0), Some(endpoint(2)));
        // It recovers, and regains all its places.
        for _ in 0..40 {
            lanes.end(endpoint(1), true, FAST);
            lanes.start();
        }
        filled(&mut lanes, 1, 50);
        std::iter::from_fn(|| lanes.start()).count();
        assert_eq!(lanes.by_endpoint[&endpoint(1)].in_flight, 32);
    }

    #[test]
    fn what_answers_fast_is_leased_ahead() {
        let mut lanes: Lanes<Delivery> = Lanes::new(1_000, 32);
        assert_eq!(lanes.room_of(endpoint(1)), FIRST);
        for _ in 0..100 {
            filled(&mut lanes, 1, 1);
            lanes.start();
            lanes.end(endpoint(1), true, FAST);
        }
        assert!(lanes.room_of(endpoint(1)) > 900);
        for _ in 0..100 {
            filled(&mut lanes, 1, 1);
            lanes.start();
            lanes.end(endpoint(1), true, Duration::from_secs(1));
        }
        assert_eq!(lanes.room_of(endpoint(1)), 32);
    }

    #[test]
    fn short_leases_are_given_back() {
        let mut lanes = Lanes::new(1, 1);
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        for seconds in [10, 20, 30] {
            lanes.push(endpoint(1), None, Delivery(endpoint(1), at(seconds)));
        }
        assert_eq!(lanes.take_short(at(20)).len(), 1);
        assert_eq!(lanes.start(), Some(Delivery(endpoint(1), at(20))));
        assert_eq!(lanes.take_waiting().len(), 1);
        assert_eq!((lanes.in_flight(), lanes.waiting()), (1, 0));
        lanes.end(endpoint(1), true, FAST);
        assert_eq!(lanes.start(), None);
    }

    #[test]
    fn places_that_others_leave_are_taken() {
        let mut lanes = Lanes::new(100, 100);
        for number in 20..30 {
            filled(&mut lanes, number, FIRST);
        }
        let count = |lanes: &mut Lanes<Delivery>| std::iter::from_fn(|| lanes.start()).count();
        assert_eq!(count(&mut lanes), 40);
        for number in 10..20 {
            filled(&mut lanes, number, FIRST);
        }
        assert_eq!(count(&mut lanes), 30, "as many as are left to others");
        for number in (20..30).cycle().take(40) {
            lanes.end(endpoint(number), true, FAST);
            count(&mut lanes);
        }
        assert_eq!(
            lanes.in_flight(),
            40,
            "all, though none of its own has ended"
        );
    }

    #[test]
    fn however_many_endpoints_somebody_has_others_find_places() {
        let mut lanes = Lanes::new(100, 100);
        // Endpoints 10 to 19 belong to one subscriber, 20 to another, 30 to a third.
        for number in 10..20 {
            filled(&mut lanes, number, 50);
        }
        let count = |lanes: &mut Lanes<Delivery>| std::iter::from_fn(|| lanes.start()).count();
        assert_eq!(count(&mut lanes), 40, "four for each");
        // They respond late: each gains places until all of them together have half.
        for round in 0..50 {
            lanes.end(endpoint(10 + round % 10), true, Duration::from_secs(14));
            count(&mut lanes);
        }
        assert_eq!(lanes.in_flight(), 50);
        for number in [20, 30] {
            filled(&mut lanes, number, 10);
            assert_eq!(count(&mut lanes), FIRST, "{number}");
        }
        // Their leases ahead are bounded too.
        let endpoints: Vec<EndpointId> = (10..20).map(endpoint).collect();
        let leased = lanes.by_owner[&owner(1)].leased;
        let room = i64::try_from(lanes.most() / PARTS - leased).unwrap_or_default();
        let more: i64 = (lanes.share_out(&endpoints, 10_000).iter())
            .map(|(_, more)| more)
            .sum();
        assert!(more <= room, "{more} of {room}");
    }

    proptest! {
        /// For any sequence of events: no limit is exceeded, nothing is lost, no lane is starved.
        #[test]
        fn books_balance(steps in prop::collection::vec((0_u8..5, 0_u128..25), 1..400)) {
            let mut lanes = Lanes::new(6, 3);
            let long = Instant::now() + Duration::from_mins(1);
            let mut under_way: Vec<EndpointId> = Vec::new();
            let (mut pushed, mut ended) = (0, 0);
            for (kind, number) in steps {
                match kind {
                    0 => { filled(&mut lanes, number, 1); pushed += 1; }
                    1 => under_way.extend(lanes.start().map(|started| started.0)),
                    4 if number == 0 => ended += lanes.take_short(long).len(),
                    _ => if let Some(endpoint) = under_way.pop() {
                        lanes.end(endpoint, kind == 2, FAST);
                        ended += 1;
                    },
                }
                prop_assert_eq!(lanes.in_flight(), under_way.len());
                prop_assert_eq!(lanes.waiting() + lanes.in_flight() + ended, pushed);
                prop_assert!(lanes.in_flight() <= 6);
                prop_assert!(lanes.by_endpoint.values().all(|lane| lane.in_flight <= 3));
                let owned = lanes.by_owner.values();
                prop_assert_eq!(owned.clone().map(|owned| owned.in_flight).sum::<usize>(), lanes.in_flight());
                let leased = owned.map(|owned| owned.leased).sum::<usize>();
                prop_assert_eq!(leased, lanes.in_flight() + lanes.waiting());
                if number == 1 {
                    lanes.forget_idle();
                }
            }
            // Everything is served in the end.
            loop {
                under_way.extend(std::iter::from_fn(|| lanes.start()).map(|started| started.0));
                let Some(endpoint) = under_way.pop() else { break };
                lanes.end(endpoint, true, FAST);
            }
            prop_assert_eq!(lanes.waiting(), 0);
            lanes.forget_idle();
            prop_assert!(lanes.by_owner.is_empty());
        }
    }
}
