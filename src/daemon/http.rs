//! Serves a router over HTTP/1.1 and HTTP/2: the accept loop, and the bounds on what a stranger may
//! hold without asking for anything. What is asked and answered is the router's.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::shutdown::Shutdown;
use crate::types::trusted_peers::TrustedPeers;

/// A pause after a failed accept, which mostly means that files have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a client may take for the header of its next request. The pause before it counts too, so
/// this is longer than the minute that proxies keep an unused connection.
const HEADER_READ: Duration = Duration::from_secs(75);

/// How often an HTTP/2 client is asked whether it is still there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_ANSWER: Duration = Duration::from_secs(20);

/// Most bytes of a request's header.
const HEADER_BYTES: u32 = 64 * 1024;

/// Most fields of a request's header (HTTP/1.1; in HTTP/2 their bytes bound them).
const HEADER_FIELDS: usize = 100;

/// What the clients of a listener may take.
#[derive(Debug, Clone)]
pub struct HttpLimits {
    /// Connections at once; one that comes beyond them is closed.
    pub connections: usize,
    /// Time for the header of the next request, pauses between requests included (HTTP/1.1), and
    /// for that of the first one (HTTP/2, where pings follow).
    pub header_read: Duration,
    /// Proxies whose `X-Forwarded-For` tells the client's address.
    pub trusted_proxies: TrustedPeers,
}

impl HttpLimits {
    /// So many connections, the usual time, and no proxies.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        Self {
            connections,
            header_read: HEADER_READ,
            trusted_proxies: TrustedPeers::default(),
        }
    }
}

/// Where a program on this machine reaches a listener: nobody connects to 0.0.0.0.
#[must_use]
pub fn connectable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Serves `router` on the shutdown's tracker: takes connections until `soft`, then closes those that
/// are idle and finishes the requests under way; all end at the latest with `hard`.
///
/// Handlers find the client's address as [`ConnectInfo<SocketAddr>`].
pub fn serve(listener: TcpListener, router: Router, limits: HttpLimits, shutdown: &Shutdown) {
    let executor = TrackerExecutor {
        tracker: shutdown.tracker.clone(),
        end: shutdown.hard.clone(),
    };
    let connection = Connection {
        router,
        builder: builder(executor, limits.header_read),
        header_read: limits.header_read,
        trusted_proxies: limits.trusted_proxies,
        stop: shutdown.soft.clone(),
        end: shutdown.hard.clone(),
    };
    let places = Arc::new(Semaphore::new(
        limits.connections.min(Semaphore::MAX_PERMITS),
    ));
    let tracker = shutdown.tracker.clone();
    shutdown
        .tracker
        .spawn(accept(listener, connection, places, tracker));
}

async fn accept(
    listener: TcpListener,
    connection: Connection,
    places: Arc<Semaphore>,
    tracker: TaskTracker,
) {
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
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            metrics::counter!("mailgate_http_refused_connections_total").increment(1);
            continue;
        };
        let connection = connection.clone();
        tracker.spawn(async move {
            connection.serve(socket, peer).await;
            drop(place);
        });
    }
}

fn builder(executor: TrackerExecutor, header_read: Duration) -> Builder<TrackerExecutor> {
    let mut builder = Builder::new(executor);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_read)
        .max_headers(HEADER_FIELDS)
        .max_buf_size(HEADER_BYTES as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_ANSWER)
        .max_header_list_size(HEADER_BYTES);
    builder
}

/// What each connection is served with.
#[derive(Clone)]
struct Connection {
    router: Router,
    builder: Builder<TrackerExecutor>,
    header_read: Duration,
    trusted_proxies: TrustedPeers,
    stop: CancellationToken,
    end: CancellationToken,
}

impl Connection {
    async fn serve(self, socket: TcpStream, peer: SocketAddr) {
        // Small answers must not wait for a delayed acknowledgement.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "an HTTP connection had ended before it was served");
            return;
        }
        let requested = Arc::new(Notify::new());
        let router = TowerToHyperService::new(self.router);
        let service = service_fn({
            let requested = Arc::clone(&requested);
            let proxies = self.trusted_proxies;
            move |mut request: Request<Incoming>| {
                requested.notify_one();
                let client = client(&proxies, peer, request.headers());
                request.extensions_mut().insert(ConnectInfo(client));
                router.call(request)
            }
        });
        let mut served = pin!(self.builder.serve_connection(TokioIo::new(socket), service));
        // hyper's own time begins only once it has seen which version of HTTP this is.
        let mut first_request = pin!(timeout(self.header_read, requested.notified()));
        let (mut silent, mut stopping) = (true, false);
        loop {
            tokio::select! {
                biased;
                () = self.end.cancelled() => return,
                result = served.as_mut() => {
                    if let Err(error) = result {
                        tracing::debug!(error, "an HTTP connection broke");
                    }
                    return;
                }
                first = first_request.as_mut(), if silent => {
                    if first.is_err() {
                        return;
                    }
                    silent = false;
                }
                () = self.stop.cancelled(), if !stopping => {
                    stopping = true;
                    served.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

/// Whom a request comes from: the connection's other end, unless that is a proxy that says so.
fn client(proxies: &TrustedPeers, peer: SocketAddr, headers: &HeaderMap) -> SocketAddr {
    if !proxies.contain(peer.ip()) {
        return peer;
    }
    let fields = headers.get_all("x-forwarded-for").iter();
    let hops: Vec<&str> = fields
        .flat_map(|field| field.to_str().unwrap_or_default().split(','))
        .collect();
    SocketAddr::new(proxies.client(peer.ip(), hops.into_iter()), peer.port())
}

/// Where hyper puts the streams of an HTTP/2 connection.
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
