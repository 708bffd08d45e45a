//! The connection slots of a listener. For one-request protocols, a silent connection is evicted when a new one finds
//! all slots taken.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::connection_limits::{ConnectionLimits, ConnectionPermit};
use super::neighbourhood::neighbourhood;

/// The slots of one listener.
#[derive(Debug, Clone)]
pub struct ConnectionSeats {
    limits: ConnectionLimits,
    /// Connections without a request so far, by number, oldest first; `None`: none is evicted.
    silent: Option<Arc<Mutex<Silent>>>,
}

#[derive(Debug, Default)]
struct Silent {
    last: u64,
    waiting: BTreeMap<u64, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    address: IpAddr,
    evicted: CancellationToken,
    /// Released on drop.
    place: ConnectionPermit,
}

/// A connection's slot, released on drop, or earlier if it is evicted.
#[derive(Debug)]
pub struct Seat {
    silent: Option<(Arc<Mutex<Silent>>, u64)>,
    evicted: CancellationToken,
    /// The permit, until the connection is evicted.
    kept: Mutex<Option<ConnectionPermit>>,
}

impl ConnectionSeats {
    /// Creates slots within these limits; with `makes_room`, silent connections are evicted for new ones.
    #[must_use]
    pub fn new(limits: ConnectionLimits, makes_room: bool) -> Self {
        let silent = makes_room.then(Arc::default);
        Self { limits, silent }
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &ConnectionLimits {
        &self.limits
    }

    /// A slot for a connection; a trusted proxy's counts for no address. `None`: the address is at its limit, or all
    /// slots are taken by connections that have sent a request.
    #[must_use]
    pub fn take(&self, peer: IpAddr, is_proxy: bool) -> Option<Seat> {
        let named = |place: ConnectionPermit| {
            if is_proxy {
                Some(place)
            } else {
                place.named(peer)
            }
        };
        let evicted = CancellationToken::new();
        let Some(all) = &self.silent else {
            return Some(Seat {
                silent: None,
                evicted,
                kept: Mutex::new(Some(named(self.limits.take()?)?)),
            });
        };
        let mut silent = lock(all);
        // An address at its limit evicts nobody.
        if !is_proxy && !self.limits.has_room_for(peer) {
            return None;
        }
        let place = self.limits.take().or_else(|| {
            silent.evict();
            self.limits.take()
        });
        let place = named(place?)?;
        silent.last += 1;
        let number = silent.last;
        let waiting = Waiting {
            address: neighbourhood(peer),
            evicted: evicted.clone(),
            place,
        };
        silent.waiting.insert(number, waiting);
        Some(Seat {
            silent: Some((Arc::clone(all), number)),
            evicted,
            kept: Mutex::default(),
        })
    }
}

impl Silent {
    /// Evicts the oldest connection of the address that has the most, so that a flood evicts itself. Scans all of them,
    /// which is fine for a few hundred slots.
    fn evict(&mut self) {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for waiting in self.waiting.values() {
            *counts.entry(waiting.address).or_default() += 1;
        }
        let most = counts.values().max().copied();
        let oldest = self.waiting.iter();
        let mut oldest =
            oldest.filter(|(_, waiting)| counts.get(&waiting.address).copied() == most);
        let number = oldest.next().map(|(number, _)| *number);
        if let Some(waiting) = number.and_then(|number| self.waiting.remove(&number)) {
            waiting.evicted.cancel();
        }
    }
}

impl Seat {
    /// The client has sent a request: its connection is no longer evicted.
    pub fn asked(&self) {
        let Some((all, number)) = &self.silent else {
            return;
        };
        if let Some(waiting) = lock(all).waiting.remove(number) {
            *lock(&self.kept) = Some(waiting.place);
        }
    }

    /// Returns once the connection has been evicted.
    pub async fn evicted(&self) {
        self.evicted.cancelled().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some((all, number)) = &self.silent {
            lock(all).waiting.remove(number);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLACES: usize = 5;
    const PER_ADDRESS: usize = 3;

    fn address(number: u8) -> IpAddr {
        [192, 0, 2, number].into()
    }

    fn seats() -> ConnectionSeats {
        ConnectionSeats::new(ConnectionLimits::new(PLACES, PER_ADDRESS), true)
    }

    /// A connection in a test.
    struct Known {
        seat: Seat,
        from: u8,
        has_asked: bool,
    }

    impl Known {
        fn holds(&self) -> bool {
            !self.seat.evicted.is_cancelled()
        }
    }

    #[test]
    fn who_has_most_makes_room_and_who_has_asked_stays() {
        let seats = seats();
        let mut taken = Vec::new();
        for from in [1, 2, 2, 3, 3] {
            taken.push(seats.take(address(from), false));
        }
        taken
            .iter()
            .flatten()
            .nth(1)
            .into_iter()
            .for_each(Seat::asked);
        let newcomer = seats.take(address(4), false);
        assert!(newcomer.is_some());
        let evicted: Vec<bool> = taken
            .iter()
            .flatten()
            .map(|it| it.evicted.is_cancelled())
            .collect();
        assert_eq!(evicted, [false, false, false, true, false]);
        taken
            .iter()
            .flatten()
            .chain(&newcomer)
            .for_each(Seat::asked);
        assert!(
            seats.take(address(5), false).is_none(),
            "all of them have asked"
        );
    }

    #[test]
    fn where_nobody_makes_room_the_newcomer_is_refused() {
        let seats = ConnectionSeats::new(ConnectionLimits::new(1, 1), false);
        let first = seats.take(address(1), false);
        assert!(first.is_some() && seats.take(address(2), false).is_none());
        drop(first);
        assert!(seats.take(address(2), true).is_some());
    }

    proptest! {
        #[test]
        fn the_books_balance(steps in proptest::collection::vec((0..3_u8, 0..5_u8, 0..8_usize), 0..60)) {
            let seats = seats();
            let mut known: Vec<Known> = Vec::new();
            for (step, from, which) in steps {
                match step {
                    0 => {
                        let own = known.iter().filter(|it| it.holds() && it.from == from).count();
                        let held = known.iter().filter(|it| it.holds()).count();
                        let all_asked = known.iter().all(|it| !it.holds() || it.has_asked);
                        let seat = seats.take(address(from), false);
                        let is_full = held == PLACES && all_asked;
                        prop_assert_eq!(seat.is_none(), own == PER_ADDRESS || is_full);
                        known.extend(seat.map(|seat| Known { seat, from, has_asked: false }));
                    }
                    1 if which < known.len() => drop(known.swap_remove(which)),
                    2 if which < known.len() => {
                        let one = &mut known[which];
                        one.seat.asked();
                        one.has_asked |= one.holds();
                    }
                    _ => {}
                }
                prop_assert!(known.iter().all(|it| !it.has_asked || it.holds()));
                let mut by_address: HashMap<IpAddr, usize> = HashMap::new();
                for one in known.iter().filter(|it| it.holds()) {
                    *by_address.entry(address(one.from)).or_default() += 1;
                }
                let held: usize = by_address.values().sum();
                prop_assert!(held <= PLACES);
                prop_assert_eq!(seats.limits.counts(), (held, by_address));
            }
            drop(known);
            prop_assert_eq!(seats.limits.counts(), (0, HashMap::new()));
        }
    }
}
