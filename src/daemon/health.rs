//! Checks whether a gateway running on this machine is ready: a container's health check.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::HOST;
use axum::http::{Request, StatusCode};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use mailgate_server::http::connectable;

/// The timeout of the whole check; callers' own timeouts are a few seconds longer.
const LIMIT: Duration = Duration::from_secs(5);

/// Why the gateway isn't ready, or its state is unknown. Each text is one line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    /// The address has no port.
    #[error("http.listen: the port is 0, so the actual port is unknown; set a port")]
    NoPort,
    /// Nothing listens there.
    #[error(
        "nothing answers on {0}: {1}; start the gateway, or give this command the gateway's http.listen"
    )]
    Unreachable(SocketAddr, std::io::Error),
    /// The server there doesn't speak HTTP.
    #[error(
        "{0} doesn't answer in HTTP ({1}): something else listens there; give this command the gateway's http.listen"
    )]
    NoAnswer(SocketAddr, hyper::Error),
    /// It takes too long.
    #[error("{0} has not answered within {seconds} seconds: the gateway there hangs, or something else listens", seconds = LIMIT.as_secs())]
    Late(SocketAddr),
    /// The gateway is not ready.
    #[error("{0} is not ready: GET /readyz answers {1}; its log says why")]
    NotReady(SocketAddr, StatusCode),
}

/// Requests `/readyz` of the gateway whose REST interface listens on `listen`.
///
/// # Errors
///
/// [`HealthError`] unless it answers 200 within five seconds.
pub async fn check(listen: SocketAddr) -> Result<(), HealthError> {
    if listen.port() == 0 {
        return Err(HealthError::NoPort);
    }
    let address = connectable(listen);
    let status = timeout(LIMIT, ask(address))
        .await
        .map_err(|_| HealthError::Late(address))??;
    if status != StatusCode::OK {
        return Err(HealthError::NotReady(address, status));
    }
    Ok(())
}

async fn ask(address: SocketAddr) -> Result<StatusCode, HealthError> {
    let stream = TcpStream::connect(address)
        .await
        .map_err(|error| HealthError::Unreachable(address, error))?;
    let no_answer = |error| HealthError::NoAnswer(address, error);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(no_answer)?;
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = axum::http::Uri::from_static("/readyz");
    if let Ok(host) = address.to_string().parse() {
        request.headers_mut().insert(HOST, host);
    }
    let answer = sender.send_request(request);
    tokio::pin!(connection, answer);
    // The connection does the I/O, and may end along with the response.
    let response = tokio::select! {
        biased;
        response = &mut answer => response,
        _ = &mut connection => answer.await,
    };
    response
        .map(|response| response.status())
        .map_err(no_answer)
}
