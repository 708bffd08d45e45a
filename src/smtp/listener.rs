//! Accepts connections, within the limits of how many there may be.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{Backend, ConnectionSettings, serve};
use crate::types::neighbourhood::neighbourhood;

/// A pause after a failed accept, which mostly means that files have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a client that is one too many may take to be told so.
const REFUSAL: Duration = Duration::from_secs(5);

const TOO_MANY: &[u8] = b"421 4.3.2 Too many connections, please come again\r\n";

/// Connections at once, shared by all listeners of a door.
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
struct Place {
    limits: ConnectionLimits,
    address: IpAddr,
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

    fn take(&self, address: IpAddr) -> Option<Place> {
        let inner = &self.inner;
        let mut open = inner.open.lock().unwrap_or_else(PoisonError::into_inner);
        let from_here = open.by_address.get(&address).copied().unwrap_or(0);
        if open.in_all >= inner.in_all || from_here >= inner.per_address {
            return None;
        }
        open.in_all += 1;
        open.by_address.insert(address, from_here + 1);
        Some(Place {
            limits: self.clone(),
            address,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self
            .limits
            .inner
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        open.in_all = open.in_all.saturating_sub(1);
        if let Some(count) = open.by_address.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.by_address.remove(&self.address);
            }
        }
    }
}

/// Accepts until `stop`; each connection is a task of `tracker`, and ends at the latest with `end`.
pub async fn run<B: Backend>(
    listener: TcpListener,
    settings: ConnectionSettings,
    backend: B,
    limits: ConnectionLimits,
    tracker: TaskTracker,
    stop: CancellationToken,
    end: CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let address = peer.ip().to_canonical();
        let neighbourhood = neighbourhood(address);
        let Some(place) = limits.take(neighbourhood) else {
            metrics::counter!("mailgate_smtp_refused_connections_total").increment(1);
            tracker.spawn(refuse(socket, settings.implicit_tls));
            continue;
        };
        let (settings, backend) = (settings.clone(), backend.clone());
        let (stop, end) = (stop.clone(), end.clone());
        tracker.spawn(async move {
            let _place = place;
            tokio::select! {
                () = serve(socket, address, settings, backend, stop) => {}
                () = end.cancelled() => {}
            }
        });
    }
}

async fn refuse(mut socket: TcpStream, implicit_tls: bool) {
    // In clear there is nothing that a client of implicit TLS would understand.
    if !implicit_tls {
        drop(tokio::time::timeout(REFUSAL, socket.write_all(TOO_MANY)).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_and_given_back() {
        let limits = ConnectionLimits::new(3, 2);
        let (one, two) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        let first = limits.take(one);
        let second = limits.take(one);
        assert!(first.is_some() && second.is_some());
        assert!(limits.take(one).is_none(), "two from one address");
        let third = limits.take(two);
        assert!(third.is_some());
        assert!(limits.take(two).is_none(), "three in all");
        drop(first);
        assert!(limits.take(two).is_some());
        drop(second);
        drop(third);
        assert!(
            limits
                .inner
                .open
                .lock()
                .is_ok_and(|open| open.in_all == 0 && open.by_address.is_empty())
        );
    }
}
