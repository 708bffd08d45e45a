//! Limits on a listener's connections, in total and per address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::neighbourhood::neighbourhood;

/// The connections of one protocol, across all its listeners. An IPv6 address counts as its /64.
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

/// A slot for a connection, released on drop.
#[derive(Debug)]
pub struct ConnectionPermit {
    limits: ConnectionLimits,
    /// The client's address, once it is known.
    address: Option<IpAddr>,
    /// Whether it is for a connection, not for a request that a proxy forwards.
    is_connection: bool,
}

impl ConnectionLimits {
    /// Sets the limits, in total and per address.
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

    /// A slot for a connection from any address.
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

    /// Whether this address is below its limit.
    #[must_use]
    pub fn has_room_for(&self, address: IpAddr) -> bool {
        let open = self.open();
        let from_here = open.by_address.get(&neighbourhood(address));
        from_here.is_none_or(|count| *count < self.inner.per_address)
    }

    /// The counters, in total and per address.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, HashMap<IpAddr, usize>) {
        let open = self.open();
        (open.in_all, open.by_address.clone())
    }

    /// A slot for a client behind a proxy, without its own connection.
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
    /// Counts the slot for this address as well; `None` if the address is at its limit.
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
