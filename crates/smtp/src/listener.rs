//! Accepts connections, up to the connection limits.

use std::io::{self, Write as _};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{Backend, ConnectionSettings, serve};
use super::protocol::proxy::{self, InvalidProxyHeader, Progress};
pub use mailgate_types::connection_limits::ConnectionLimits;
use mailgate_types::connection_limits::ConnectionPermit;

/// The pause after a failed accept, usually because the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time limit for a load balancer's PROXY header.
const PROXY_HEADER: Duration = Duration::from_secs(5);

const TOO_MANY: &[u8] = b"421 4.3.2 Too many connections, try again later\r\n";

/// The state that a listener's connections share.
struct Shared<B> {
    settings: ConnectionSettings,
    backend: B,
    stop: CancellationToken,
    end: CancellationToken,
}

/// Accepts until `stop`; each connection is a task of `tracker`, and ends with `end` at the latest.
pub async fn run<B: Backend>(
    listener: TcpListener,
    settings: ConnectionSettings,
    backend: B,
    limits: ConnectionLimits,
    tracker: TaskTracker,
    stop: CancellationToken,
    end: CancellationToken,
) {
    let shared = Arc::new(Shared {
        settings,
        backend,
        stop: stop.clone(),
        end,
    });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_of_one_connection(&error) => continue,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        match limits.take() {
            Some(place) => {
                let peer = peer.ip().to_canonical();
                tracker.spawn(connection(socket, peer, place, Arc::clone(&shared)));
            }
            None => refuse(socket, shared.settings.implicit_tls),
        }
    }
}

/// The size of a connection's task, in bytes: an idle connection's memory apart from its TLS state.
#[must_use]
pub fn task_size<B: Backend>() -> usize {
    fn returned<S, F>(_: impl Fn(TcpStream, IpAddr, ConnectionPermit, S) -> F) -> usize {
        size_of::<F>()
    }
    returned(connection::<B>)
}

/// The client disconnected before its connection was accepted (accept(2)); others may be waiting.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionReset)
}

async fn connection<B: Backend>(
    socket: TcpStream,
    peer: IpAddr,
    place: ConnectionPermit,
    shared: Arc<Shared<B>>,
) {
    tokio::select! {
        () = serve_accepted(socket, peer, place, &shared) => {}
        () = shared.end.cancelled() => {}
    }
}

async fn serve_accepted<B: Backend>(
    socket: TcpStream,
    peer: IpAddr,
    place: ConnectionPermit,
    shared: &Shared<B>,
) {
    let Shared {
        settings,
        backend,
        stop,
        ..
    } = shared;
    let (socket, client) = if settings.balancers.contain(peer) {
        match Box::pin(behind_balancer(socket, peer, stop)).await {
            Some(arrived) => arrived,
            None => return,
        }
    } else {
        (socket, peer)
    };
    let Some(_place) = place.named(client) else {
        return refuse(socket, settings.implicit_tls);
    };
    let _session = CountedSession::begin(settings.listener);
    serve(socket, client, settings, backend, stop).await;
}

/// A load balancer's connection, and its client; `None` if it is closed.
async fn behind_balancer(
    mut socket: TcpStream,
    peer: IpAddr,
    stop: &CancellationToken,
) -> Option<(TcpStream, IpAddr)> {
    let header = tokio::select! {
        header = timeout(PROXY_HEADER, proxy_header(&mut socket)) => header.unwrap_or(Err(NoProxyHeader::Late)),
        () = stop.cancelled() => return None,
    };
    match header {
        Ok(address) => Some((socket, address.unwrap_or(peer))),
        // A load balancer's check that the port is open.
        Err(NoProxyHeader::Nothing) => None,
        Err(error) => {
            metrics::counter!("mailgate_smtp_proxy_header_failures_total").increment(1);
            tracing::warn!(%peer, %error, "a connection from smtp.proxy_protocol_from was closed: no PROXY protocol header (version 2) came");
            None
        }
    }
}

/// A session, counted as open in the metrics until it is dropped.
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

/// Why the client's address is unknown.
#[derive(Debug, thiserror::Error)]
enum NoProxyHeader {
    #[error("it was closed at once")]
    Nothing,
    #[error("it came too slowly")]
    Late,
    #[error(transparent)]
    Invalid(#[from] InvalidProxyHeader),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads the header and not a byte more.
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
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
            }
        }
    }
}

/// Refuses and closes the connection, without waiting: nothing was sent yet, so the reply fits the socket's buffer.
fn refuse(socket: TcpStream, implicit_tls: bool) {
    metrics::counter!("mailgate_smtp_refused_connections_total").increment(1);
    // A client with implicit TLS doesn't understand plaintext.
    if !implicit_tls && let Ok(mut socket) = socket.into_std() {
        // It is still nonblocking.
        drop(socket.write(TOO_MANY));
    }
}
