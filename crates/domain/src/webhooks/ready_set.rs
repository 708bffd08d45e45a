//! The known endpoints with ready deliveries, and the oldest one of each. Claims begin there, so that they don't scan
//! deliveries that were already delivered.

use std::collections::BTreeMap;
use std::ops::Bound;

use chrono::{DateTime, TimeDelta, Utc};

use mailgate_storage::webhook_queue::claim::Wanted;
use mailgate_storage::webhook_queue::ready::Ready;
use mailgate_types::ids::EndpointId;

/// The largest number of endpoints. The others wait until one of these has nothing left, or until something new becomes
/// ready for them.
pub(super) const MOST: usize = 10_000;

/// The due time of the oldest known delivery in one of an endpoint's two queues.
#[derive(Debug, Clone, Copy, Default)]
struct Oldest {
    known: Option<DateTime<Utc>>,
    /// Of those found since the last claim began, which may not have seen them.
    found: Option<DateTime<Utc>>,
}

/// At least one of the two is known.
#[derive(Debug, Clone, Copy, Default)]
struct Queues {
    /// The regular deliveries, which go first.
    first: Oldest,
    /// The replayed ones, which go after them.
    behind: Oldest,
    /// The endpoint has had a turn.
    served: bool,
}

impl Queues {
    fn of(&mut self, is_behind: bool) -> &mut Oldest {
        if is_behind {
            &mut self.behind
        } else {
            &mut self.first
        }
    }
}

/// The earlier of two times, as far as there are any.
fn earlier(one: Option<DateTime<Utc>>, other: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
    one.into_iter().chain(other).min()
}

/// The endpoints with ready deliveries.
#[derive(Debug, Default)]
pub(super) struct ReadySet {
    by_endpoint: BTreeMap<EndpointId, Queues>,
    /// Where the next poll begins, so that all endpoints get their turn.
    after: Option<EndpointId>,
}

impl ReadySet {
    /// Adds an endpoint, or an older delivery of one that is there; `false` if there is no room.
    pub(super) fn add(&mut self, ready: Ready) -> bool {
        let is_full = self.by_endpoint.len() >= MOST;
        if is_full && !self.by_endpoint.contains_key(&ready.endpoint) {
            return false;
        }
        let queues = self.by_endpoint.entry(ready.endpoint).or_default();
        let oldest = queues.of(ready.is_behind);
        oldest.known = earlier(oldest.known, Some(ready.due_at));
        oldest.found = earlier(oldest.found, Some(ready.due_at));
        true
    }

    /// As [`ReadySet::add`], for a newly ready delivery: if there is no room, it replaces the endpoint whose turn was
    /// last, so that one subscriber's many endpoints can't keep out others'. Returns `false` then: the replaced one
    /// must be found again.
    pub(super) fn admit(&mut self, ready: Ready) -> bool {
        if self.add(ready) {
            return true;
        }
        let up_to = self.after.map_or(Bound::Unbounded, Bound::Included);
        let before = self.by_endpoint.range((Bound::Unbounded, up_to)).rev();
        let mut served = before.chain(self.by_endpoint.iter().rev());
        let served = served.find(|(_, queues)| queues.served);
        if let Some(endpoint) = served.map(|(endpoint, _)| *endpoint) {
            self.by_endpoint.remove(&endpoint);
            self.add(ready);
        }
        false
    }

    /// How many more endpoints there is room for.
    pub(super) fn room(&self) -> usize {
        MOST - self.by_endpoint.len()
    }

    /// The next endpoints, `most` at most: those after the last ones, and then from the beginning.
    pub(super) fn next(&mut self, most: usize) -> Vec<EndpointId> {
        let after = self.after.map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.by_endpoint.range((after, Bound::Unbounded));
        let begin = self.by_endpoint.keys();
        let endpoints: Vec<EndpointId> = (rest.map(|(endpoint, _)| endpoint).chain(begin))
            .take(most.min(self.by_endpoint.len()))
            .copied()
            .collect();
        self.after = endpoints.last().copied();
        for endpoint in &endpoints {
            if let Some(queues) = self.by_endpoint.get_mut(endpoint) {
                queues.served = true;
            }
        }
        endpoints
    }

    /// The next claim for an endpoint: replayed deliveries only if no other is known. Those due from `ahead` on count
    /// as replayed.
    pub(super) fn wanted(
        &mut self,
        endpoint: EndpointId,
        places: i64,
        ahead: DateTime<Utc>,
    ) -> Option<Wanted> {
        let queues = self.by_endpoint.get_mut(&endpoint)?;
        let is_behind = queues.first.known.is_none();
        let oldest = queues.of(is_behind);
        oldest.found = None;
        let from = oldest.known?;
        // The clock may have been set back.
        let before = ahead.max(from + TimeDelta::seconds(1));
        Some(Wanted {
            endpoint,
            from,
            before: (!is_behind).then_some(before),
            places,
        })
    }

    /// After a claim: the oldest delivery left in its range. Returns whether the endpoint has replayed ones to continue
    /// with.
    pub(super) fn finish(&mut self, claimed: &Wanted, left: Option<DateTime<Utc>>) -> bool {
        let Some(queues) = self.by_endpoint.get_mut(&claimed.endpoint) else {
            return false;
        };
        let is_behind = claimed.before.is_none();
        let oldest = queues.of(is_behind);
        oldest.known = earlier(left, oldest.found);
        match (queues.first.known, queues.behind.known) {
            (None, None) => {
                self.by_endpoint.remove(&claimed.endpoint);
                false
            }
            (first, _) => !is_behind && first.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use uuid::Uuid;

    fn endpoint(number: u128) -> EndpointId {
        EndpointId(Uuid::from_u128(number))
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn ready(number: u128, is_behind: bool, seconds: i64) -> Ready {
        Ready {
            endpoint: endpoint(number),
            is_behind,
            due_at: at(seconds),
        }
    }

    /// Replayed deliveries are due from here on.
    const AHEAD: i64 = 1_000;

    fn wanted(set: &mut ReadySet, number: u128) -> Wanted {
        let Some(wanted) = set.wanted(endpoint(number), 4, at(AHEAD)) else {
            panic!("{number} is not known");
        };
        wanted
    }

    #[test]
    fn replayed_deliveries_go_behind_all_others() {
        let mut set = ReadySet::default();
        assert!(set.add(ready(1, true, AHEAD + 5)) && set.add(ready(1, false, 7)));
        let first = wanted(&mut set, 1);
        assert_eq!((first.from, first.before), (at(7), Some(at(AHEAD))));
        assert!(set.finish(&first, None), "there is more");
        let behind = wanted(&mut set, 1);
        assert_eq!((behind.from, behind.before), (at(AHEAD + 5), None));
        assert!(!set.finish(&behind, None));
        assert!(set.wanted(endpoint(1), 4, at(AHEAD)).is_none());
    }

    #[test]
    fn what_is_found_during_a_claim_is_not_forgotten_by_it() {
        let mut set = ReadySet::default();
        set.add(ready(1, false, 50));
        for found in [3, 70] {
            let claimed = wanted(&mut set, 1);
            set.add(ready(1, false, found));
            set.finish(&claimed, None);
            assert_eq!(wanted(&mut set, 1).from, at(found));
        }
    }

    #[test]
    fn it_is_bounded() {
        let mut set = ReadySet::default();
        for number in 0..MOST as u128 {
            assert!(set.add(ready(number, false, 1)));
        }
        assert!(!set.add(ready(MOST as u128, false, 1)));
        assert!(set.add(ready(0, true, AHEAD)), "a known one");
        let claimed = wanted(&mut set, 9);
        set.finish(&claimed, None);
        assert_eq!(set.room(), 1);
        assert!(set.add(ready(MOST as u128, false, 1)));
    }

    #[test]
    fn many_endpoints_keep_no_other_out() {
        let mut set = ReadySet::default();
        for number in 0..MOST as u128 {
            set.add(ready(number, false, 1));
        }
        let newcomer = MOST as u128;
        assert!(!set.admit(ready(newcomer, false, 1)));
        let first = set.wanted(endpoint(newcomer), 1, at(AHEAD));
        assert!(first.is_none(), "nobody has had a turn");
        assert_eq!(set.next(3).len(), 3);
        for number in 0..3 {
            assert!(!set.admit(ready(newcomer + number, false, 1)));
            assert_eq!(wanted(&mut set, newcomer + number).from, at(1));
            let gone = set.wanted(endpoint(2 - number), 1, at(AHEAD));
            assert!(gone.is_none(), "it is to be found again");
        }
        assert_eq!(set.room(), 0);
    }

    #[test]
    fn endpoints_take_turns() {
        let mut set = ReadySet::default();
        assert!(set.next(2).is_empty());
        for number in 1..=3 {
            set.add(ready(number, false, 1));
        }
        let numbers = |set: &mut ReadySet, most| -> Vec<u128> {
            let next = set.next(most);
            next.iter().map(|endpoint| endpoint.0.as_u128()).collect()
        };
        assert_eq!(numbers(&mut set, 2), [1, 2]);
        assert_eq!(numbers(&mut set, 2), [3, 1]);
        assert_eq!(numbers(&mut set, 9), [2, 3, 1]);
    }

    proptest! {
        /// However deliveries become ready, are claimed by this process and by others, and are found again: none is lost,
        /// and no claim begins before the oldest one that was known.
        #[test]
        fn no_delivery_is_lost(steps in prop::collection::vec((0_u8..6, 0_u128..4, 0_i64..40), 1..200)) {
            let mut set = ReadySet::default();
            let mut rows: BTreeSet<(u128, i64)> = BTreeSet::new();
            let in_range = |rows: &BTreeSet<(u128, i64)>, number, wanted: &Wanted| -> Vec<i64> {
                rows.iter()
                    .filter(|(of, seconds)| *of == number && at(*seconds) >= wanted.from
                            && wanted.before.is_none_or(|before| at(*seconds) < before))
                    .map(|(_, seconds)| *seconds)
                    .collect()
            };
            let due = |seconds: i64| if seconds >= 30 { AHEAD + seconds } else { seconds };
            for (kind, number, seconds) in steps {
                let row = (number, due(seconds));
                match kind {
                    0 | 1 => {
                        rows.insert(row);
                        set.add(ready(number, seconds >= 30, row.1));
                    }
                    // Another process claims it, or releases one that was known here.
                    2 => { rows.remove(&row); }
                    _ => if let Some(wanted) = set.wanted(endpoint(number), 2, at(AHEAD)) {
                        let taken = in_range(&rows, number, &wanted);
                        // Found by a full scan while the claim runs.
                        if kind == 3 {
                            rows.insert(row);
                            set.add(ready(number, seconds >= 30, row.1));
                        }
                        for seconds in taken.iter().take(2) {
                            // One may be locked by another process, and is skipped.
                            if kind != 4 { rows.remove(&(number, *seconds)); }
                        }
                        let left = taken.iter().copied().find(|seconds| rows.contains(&(number, *seconds)));
                        set.finish(&wanted, left.map(at));
                    },
                }
            }
            for number in 0..4 {
                while let Some(wanted) = set.wanted(endpoint(number), 1, at(AHEAD)) {
                    let taken = in_range(&rows, number, &wanted);
                    if let Some(seconds) = taken.first() {
                        rows.remove(&(number, *seconds));
                    }
                    set.finish(&wanted, taken.get(1).copied().map(at));
                }
            }
            prop_assert!(rows.is_empty(), "{rows:?}");
        }
    }
}
