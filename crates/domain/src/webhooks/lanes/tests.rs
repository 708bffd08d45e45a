//! Endpoints and subscribers leave places to each other, and nothing is lost between them.

use proptest::prelude::*;
use uuid::Uuid;

use super::lane::FIRST;
use super::share_out::PARTS;
use super::*;
use mailgate_types::ids::SubscriberId;

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
