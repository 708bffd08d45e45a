//! Serves a router over HTTP/1.1 and HTTP/2: the accept loop, and the limits on resources that a client may hold before
//! it has sent a request.

mod answer;
mod handshake;
mod in_hand;
mod metered;

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::answer::TrackedBody;
pub use self::handshake::{ChallengeCertificates, Https};
use self::in_hand::InHand;
use self::metered::Metered;
use crate::client::client;
use crate::shutdown::Shutdown;
use crate::stranger::{Crowded, Stranger, Strangers, strangers};
use mailgate_types::connection_limits::ConnectionLimits;
use mailgate_types::connection_seats::{ConnectionSeats, Seat};
use mailgate_types::neighbourhood::neighbourhood;
use mailgate_types::trusted_peers::TrustedPeers;

/// The pause after a failed accept, usually because the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a client may take for the header of its next request. The pause before it counts too, so
/// this is longer than the minute that proxies keep an unused connection.
const HEADER_READ: Duration = Duration::from_secs(75);

/// How often an HTTP/2 client is pinged, and how long it may take to answer.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_ANSWER: Duration = Duration::from_secs(20);

/// How long a client may read nothing of a response.
const ANSWER_IDLE: Duration = Duration::from_secs(30);

/// The same during shutdown; also how long a connection without a request is kept then.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Maximum size of a request's header, in bytes.
const HEADER_BYTES: u32 = 16 * 1024;

/// Maximum number of fields in a request's header (HTTP/1.1; HTTP/2 limits their bytes).
const HEADER_FIELDS: usize = 100;

/// Concurrent requests of one HTTP/2 connection. RFC 9113 §6.5.2 recommends no fewer than 100, but each costs memory
/// before its caller has authenticated; a client with more requests waits or opens another connection.
const STREAMS: u32 = 32;

/// Flow-control windows for HTTP/2 bodies, in bytes: per request, and per connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 64 * 1024;

/// Maximum bytes of each response buffered for an HTTP/2 client.
const SEND_BUFFER: usize = 64 * 1024;

/// Bytes held for unauthenticated clients, by default.
const UNAUTHENTICATED: usize = 16 << 20;

/// The limits on a listener's clients.
#[derive(Debug, Clone)]
pub struct HttpLimits {
    /// Concurrent connections; those above the limit are closed.
    pub connections: usize,
    /// Concurrent connections from one address.
    pub connections_per_address: usize,
    /// Time for the header of the next request, pauses between requests included (HTTP/1.1), or of the first one
    /// (HTTP/2, which then uses pings).
    pub header_read: Duration,
    /// How long a client may read nothing of a response.
    pub answer_idle: Duration,
    /// The budget for unauthenticated clients.
    pub strangers: Strangers,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: TrustedPeers,
    /// One HTTP/1.1 request per connection; a silent connection is evicted when all slots are taken.
    pub one_request: bool,
}

impl HttpLimits {
    /// Limits with this many connections, default timeouts and no proxies.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        Self {
            connections,
            connections_per_address: connections,
            header_read: HEADER_READ,
            answer_idle: ANSWER_IDLE,
            strangers: strangers(UNAUTHENTICATED),
            trusted_proxies: TrustedPeers::default(),
            one_request: false,
        }
    }
}

/// The loopback address for a listener: 0.0.0.0 can't be connected to, and `[::]` includes IPv4, even if the machine
/// has no IPv6.
#[must_use]
pub fn connectable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Serves `router` on the shutdown's tracker: accepts connections until `soft`, then closes idle ones and finishes
/// requests in progress; all end with `hard` at the latest.
///
/// Handlers find the client's address as [`ConnectInfo<SocketAddr>`].
pub fn serve(listener: TcpListener, router: Router, limits: HttpLimits, shutdown: &Shutdown) {
    start(listener, router, limits, None, shutdown);
}

/// The same under TLS.
pub fn serve_tls(
    listener: TcpListener,
    router: Router,
    limits: HttpLimits,
    https: Https,
    shutdown: &Shutdown,
) {
    start(listener, router, limits, Some(https), shutdown);
}

fn start(
    listener: TcpListener,
    router: Router,
    limits: HttpLimits,
    https: Option<Https>,
    shutdown: &Shutdown,
) {
    let executor = TrackerExecutor {
        tracker: shutdown.tracker.clone(),
        end: shutdown.hard.clone(),
    };
    let places = ConnectionLimits::new(limits.connections, limits.connections_per_address);
    let connection = Connection {
        router,
        builder: builder(executor, &limits),
        places: ConnectionSeats::new(places, limits.one_request),
        limits,
        https,
        stop: shutdown.soft.clone(),
        end: shutdown.hard.clone(),
    };
    let tracker = shutdown.tracker.clone();
    shutdown
        .tracker
        .spawn(accept(listener, connection, tracker));
}

async fn accept(listener: TcpListener, connection: Connection, tracker: TaskTracker) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = connection.stop.cancelled() => return,
        };
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let is_proxy = connection.limits.trusted_proxies.contain(peer.ip());
        let Some(seat) = connection.places.take(peer.ip(), is_proxy) else {
            metrics::counter!("mailgate_http_refused_connections_total").increment(1);
            continue;
        };
        let connection = connection.clone();
        tracker.spawn(async move {
            connection.serve(socket, peer, Arc::new(seat)).await;
        });
    }
}

fn builder(executor: TrackerExecutor, limits: &HttpLimits) -> Builder<TrackerExecutor> {
    let mut builder = Builder::new(executor);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_read)
        .keep_alive(!limits.one_request)
        .max_headers(HEADER_FIELDS)
        .max_buf_size(HEADER_BYTES as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_ANSWER)
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(HEADER_BYTES);
    if limits.one_request {
        builder = builder.http1_only();
    }
    builder
}

/// The state shared by all connections.
#[derive(Clone)]
struct Connection {
    router: Router,
    builder: Builder<TrackerExecutor>,
    places: ConnectionSeats,
    limits: HttpLimits,
    https: Option<Https>,
    stop: CancellationToken,
    end: CancellationToken,
}

impl Connection {
    async fn serve(self, socket: TcpStream, peer: SocketAddr, seat: Arc<Seat>) {
        // Small responses must not wait for a delayed acknowledgement.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "an HTTP connection had ended before it was served");
            return;
        }
        let end = self.end.clone();
        let served = async {
            match self.https.clone() {
                None => self.exchange(socket, peer, &seat).await,
                Some(https) => {
                    // No request has arrived yet, so nothing is lost at shutdown.
                    let shaken = self.stop.run_until_cancelled(https.accept(socket)).await;
                    if let Some(stream) = shaken.flatten() {
                        self.exchange(stream, peer, &seat).await;
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = seat.evicted() => {
                metrics::counter!("mailgate_http_refused_connections_total").increment(1);
            }
            _ = end.run_until_cancelled(served) => {}
        }
    }

    async fn exchange<S>(self, socket: S, peer: SocketAddr, seat: &Arc<Seat>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let in_hand = Arc::new(InHand::default());
        let requested = Arc::new(Notify::new());
        let is_proxy = self.limits.trusted_proxies.contain(peer.ip());
        let share = (!is_proxy).then(|| self.limits.strangers.share(neighbourhood(peer.ip())));
        let socket = Metered::new(socket, Arc::clone(&in_hand), share);
        let router = TowerToHyperService::new(self.router);
        let service = service_fn({
            let (requested, in_hand) = (Arc::clone(&requested), Arc::clone(&in_hand));
            let seat = Arc::clone(seat);
            let (proxies, places) = (self.limits.trusted_proxies, self.places);
            move |mut request: Request<Incoming>| {
                requested.notify_one();
                seat.asked();
                let mut in_hand = in_hand.begin();
                let (client, carrier) = client(&proxies, peer, request.headers());
                request.extensions_mut().insert(ConnectInfo(client));
                request.extensions_mut().insert(carrier);
                if is_proxy {
                    match places.limits().take_behind_proxy(client.ip()) {
                        Some(place) => in_hand.keep_place(place),
                        None => drop(request.extensions_mut().insert(Crowded)),
                    }
                }
                let answer = router.call(request);
                async move {
                    let mut response: Response<_> = answer.await?;
                    in_hand.keep(response.extensions_mut().remove::<Stranger>());
                    Ok::<_, std::convert::Infallible>(
                        response.map(|body| TrackedBody::new(body, in_hand)),
                    )
                }
            }
        });
        let mut served = pin!(self.builder.serve_connection(TokioIo::new(socket), service));
        // hyper's own timeout begins only once it knows the HTTP version.
        let mut first_request = pin!(timeout(self.limits.header_read, requested.notified()));
        let mut silent = true;
        let mut stalled = pin!(in_hand.stalled(self.limits.answer_idle));
        loop {
            tokio::select! {
                biased;
                result = served.as_mut() => return ended(result),
                first = first_request.as_mut(), if silent => {
                    if first.is_err() {
                        return;
                    }
                    silent = false;
                }
                () = stalled.as_mut() => return cut_stalled(),
                () = self.stop.cancelled() => break,
            }
        }
        served.as_mut().graceful_shutdown();
        tokio::select! {
            biased;
            result = served => ended(result),
            () = in_hand.stalled(LAST_WORDS) => cut_stalled(),
            () = in_hand.quiet(LAST_WORDS) => {}
        }
    }
}

fn ended(result: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = result {
        tracing::debug!(error, "an HTTP connection broke");
    }
}

/// Counts and logs a connection cut because its client doesn't read.
fn cut_stalled() {
    metrics::counter!("mailgate_http_stalled_total").increment(1);
    tracing::debug!("an HTTP connection was cut: its client doesn't read the response");
}

/// Spawns the streams of an HTTP/2 connection.
#[derive(Debug, Clone)]
struct TrackerExecutor {
    tracker: TaskTracker,
    end: CancellationToken,
}

impl<F> Executor<F> for TrackerExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        let end = self.end.clone();
        self.tracker
            .spawn(async move { end.run_until_cancelled(stream).await });
    }
}
