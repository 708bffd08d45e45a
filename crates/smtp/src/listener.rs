//! Accepts connections, up to the connection limits.

use std::net::IpAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{Backend, ConnectionSettings, serve};
use super::protocol::proxy::{self, InvalidProxyHeader, Progress};
pub use mailgate_types::connection_limits::ConnectionLimits;
use mailgate_types::connection_limits::ConnectionPermit;

/// The pause after a failed accept, which mostly means that the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time limit for a load balancer's PROXY header.
const PROXY_HEADER: Duration = Duration::from_secs(5);

/// Time limit for telling a client that it exceeds the connection limit.
const REFUSAL: Duration = Duration::from_secs(5);

const TOO_MANY: &[u8] = b"421 4.3.2 Too many connections, try again later\r\n";

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
    place: ConnectionPermit,
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
            // A load balancer's check that the port is open.
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
    Io(#[from] std::io::Error),
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
                    return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
                }
            }
        }
    }
}

async fn refuse(mut socket: TcpStream, implicit_tls: bool) {
    metrics::counter!("mailgate_smtp_refused_connections_total").increment(1);
    // A client of implicit TLS would understand nothing sent in clear.
    if !implicit_tls {
        drop(timeout(REFUSAL, socket.write_all(TOO_MANY)).await);
    }
}
