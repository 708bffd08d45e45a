//! How many connections a listener keeps, in all and from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::neighbourhood::neighbourhood;

/// Connections of one protocol, shared by all of its listeners. An IPv6 address stands for its /64.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    in_all: usize,
    per_address: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    in_all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A place among the connections, given back when dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    limits: ConnectionLimits,
    /// Whose it is, once that is known.
    address: Option<IpAddr>,
    /// One of a connection's own, rather than of a request that a proxy passes on.
    is_connection: bool,
}

impl ConnectionLimits {
    /// At most so many in all, and from one address.
    #[must_use]
    pub fn new(in_all: usize, per_address: usize) -> Self {
        Self {
            inner: Arc::new(Inner {
                in_all,
                per_address,
                open: Mutex::default(),
            }),
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        let open = self.inner.open.lock();
        open.unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection, from wherever it comes.
    #[must_use]
    pub fn take(&self) -> Option<ConnectionPermit> {
        let mut open = self.open();
        if open.in_all >= self.inner.in_all {
            return None;
        }
        open.in_all += 1;
        Some(ConnectionPermit {
            limits: self.clone(),
            address: None,
            is_connection: true,
        })
    }

    /// A place for a client that has no connection of its own here: a proxy passes on its requests.
    #[must_use]
    pub fn take_behind_proxy(&self, address: IpAddr) -> Option<ConnectionPermit> {
        let place = ConnectionPermit {
            limits: self.clone(),
            address: None,
            is_connection: false,
        };
        place.named(address)
    }
}

impl ConnectionPermit {
    /// Counts it for this address as well; `None` when that one has all of its places.
    #[must_use]
    pub fn named(mut self, address: IpAddr) -> Option<Self> {
        let address = neighbourhood(address);
        let taken = {
            let mut open = self.limits.open();
            let from_here = open.by_address.entry(address).or_default();
            let is_free = *from_here < self.limits.inner.per_address;
            *from_here += usize::from(is_free);
            is_free
        };
        taken.then(|| {
            self.address = Some(address);
            self
        })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limits.open();
        if self.is_connection {
            open.in_all = open.in_all.saturating_sub(1);
        }
        let Some(address) = self.address else { return };
        if let Some(count) = open.by_address.get_mut(&address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_and_given_back() {
        let limits = ConnectionLimits::new(3, 2);
        let (one, two) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        let take = |address| limits.take().and_then(|place| place.named(address));
        let first = take(one);
        let second = take(one);
        assert!(first.is_some() && second.is_some());
        assert!(take(one).is_none(), "two from one address");
        let third = take(two);
        assert!(third.is_some());
        assert!(limits.take().is_none(), "three in all");
        let behind = limits.take_behind_proxy(two);
        assert!(behind.is_some(), "it is no connection");
        assert!(limits.take_behind_proxy(two).is_none(), "two from there");
        drop(behind);
        drop(first);
        assert!(take(two).is_some());
        drop(second);
        drop(third);
        let nameless = limits.take();
        assert!(nameless.is_some());
        drop(nameless);
        let open = limits.open();
        assert!(open.in_all == 0 && open.by_address.is_empty());
    }
}
