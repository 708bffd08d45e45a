//! Accepts connections, within the limits of how many there may be.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{Backend, ConnectionSettings, serve};
use super::protocol::proxy::{self, InvalidProxyHeader, Progress};
use crate::types::neighbourhood::neighbourhood;

/// A pause after a failed accept, which mostly means that files have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a balancer may take to say whose connection it passes on.
const PROXY_HEADER: Duration = Duration::from_secs(5);

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
    /// Whose it is, once that is known.
    address: Option<IpAddr>,
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

    /// A place for whoever it is.
    fn take(&self) -> Option<Place> {
        let mut open = self.open();
        if open.in_all >= self.inner.in_all {
            return None;
        }
        open.in_all += 1;
        Some(Place {
            limits: self.clone(),
            address: None,
        })
    }
}

impl Place {
    /// Counts it for this address as well; `None` when that one has all of its places.
    fn named(mut self, address: IpAddr) -> Option<Self> {
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

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.limits.open();
        open.in_all = open.in_all.saturating_sub(1);
        let Some(address) = self.address else { return };
        if let Some(count) = open.by_address.get_mut(&address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.by_address.remove(&address);
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
        let peer = peer.ip().to_canonical();
        let Some(place) = limits.take() else {
            tracker.spawn(refuse(socket, settings.implicit_tls));
            continue;
        };
        let (settings, backend) = (settings.clone(), backend.clone());
        let (stop, end) = (stop.clone(), end.clone());
        tracker.spawn(async move {
            tokio::select! {
                () = serve_accepted(socket, peer, place, settings, backend, stop) => {}
                () = end.cancelled() => {}
            }
        });
    }
}

async fn serve_accepted<B: Backend>(
    mut socket: TcpStream,
    peer: IpAddr,
    place: Place,
    settings: ConnectionSettings,
    backend: B,
    stop: CancellationToken,
) {
    let mut client = peer;
    if settings.balancers.contain(peer) {
        let header = timeout(PROXY_HEADER, proxy_header(&mut socket));
        let header = tokio::select! {
            header = header => header.unwrap_or(Err(NoProxyHeader::Late)),
            () = stop.cancelled() => return,
        };
        match header {
            Ok(address) => client = address.unwrap_or(peer),
            // A balancer that looks whether the port is open.
            Err(NoProxyHeader::Nothing) => return,
            Err(error) => {
                metrics::counter!("mailgate_smtp_proxy_header_failures_total").increment(1);
                tracing::warn!(%peer, %error, "a connection from smtp.proxy_protocol_from was closed: no PROXY protocol header (version 2) came");
                return;
            }
        }
    }
    let Some(_place) = place.named(client) else {
        return refuse(socket, settings.implicit_tls).await;
    };
    let _session = CountedSession::begin(settings.listener);
    serve(socket, client, settings, backend, stop).await;
}

/// A session that the metrics count as open until it is dropped.
struct CountedSession {
    open: metrics::Gauge,
}

impl CountedSession {
    fn begin(listener: &'static str) -> Self {
        metrics::counter!("mailgate_smtp_sessions_total", "listener" => listener).increment(1);
        let open = metrics::gauge!("mailgate_smtp_sessions_open", "listener" => listener);
        open.increment(1);
        Self { open }
    }
}

impl Drop for CountedSession {
    fn drop(&mut self) {
        self.open.decrement(1);
    }
}

/// Why nobody knows whose connection it is.
#[derive(Debug, thiserror::Error)]
enum NoProxyHeader {
    #[error("it was closed at once")]
    Nothing,
    #[error("it came too slowly")]
    Late,
    #[error(transparent)]
    Invalid(#[from] InvalidProxyHeader),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Reads the header and no byte more.
async fn proxy_header(socket: &mut TcpStream) -> Result<Option<IpAddr>, NoProxyHeader> {
    let mut header = Vec::new();
    loop {
        match proxy::parse(&header)? {
            Progress::Whole { client } => return Ok(client),
            Progress::Wants(count) => {
                let wanted = u64::try_from(count).unwrap_or(u64::MAX);
                let read = (&mut *socket).take(wanted).read_buf(&mut header).await?;
                if read == 0 && header.is_empty() {
                    return Err(NoProxyHeader::Nothing);
                }
                if read == 0 {
                    return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
                }
            }
        }
    }
}

async fn refuse(mut socket: TcpStream, implicit_tls: bool) {
    metrics::counter!("mailgate_smtp_refused_connections_total").increment(1);
    // In clear there is nothing that a client of implicit TLS would understand.
    if !implicit_tls {
        drop(timeout(REFUSAL, socket.write_all(TOO_MANY)).await);
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
        drop(first);
        assert!(take(two).is_some());
        drop(second);
        drop(third);
        let nameless = limits.take();
        assert!(nameless.is_some());
        drop(nameless);
        assert!(
            limits
                .inner
                .open
                .lock()
                .is_ok_and(|open| open.in_all == 0 && open.by_address.is_empty())
        );
    }
}
