//! The receiver of webhooks: takes every request, counts it and forgets it. It listens on an address of
//! its own for each endpoint, so that each has connections of its own.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use super::child::left_alone;
use super::{Outcome, one_thread};

/// What it does.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// Endpoints.
    pub endpoints: u16,
}

/// The address of an endpoint, the first one being 127.0.1.1.
pub fn address(endpoint: u16) -> Ipv4Addr {
    let (high, low) = (endpoint / 250, endpoint % 250);
    Ipv4Addr::new(
        127,
        0,
        u8::try_from(high + 1).unwrap_or(u8::MAX),
        u8::try_from(low + 1).unwrap_or(u8::MAX),
    )
}

/// Serves until standard input ends; says its port.
pub fn run(job: &str) -> Outcome<()> {
    let job: Job = serde_json::from_str(job)?;
    one_thread()?.block_on(serve(&job))
}

async fn serve(job: &Job) -> Outcome<()> {
    let taken = Arc::<AtomicU64>::default();
    let mut port = 0;
    for endpoint in 0..job.endpoints {
        let listener = TcpListener::bind(SocketAddr::from((address(endpoint), port))).await?;
        port = listener.local_addr()?.port();
        tokio::spawn(accept(listener, Arc::clone(&taken)));
    }
    println!("{port}");
    left_alone().await
}

async fn accept(listener: TcpListener, taken: Arc<AtomicU64>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let taken = Arc::clone(&taken);
        drop(socket.set_nodelay(true));
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, Arc::clone(&taken)));
            // However it ended: what was taken is counted.
            drop(
                http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service)
                    .await,
            );
        });
    }
}

/// A webhook is counted; whoever asks by GET is told the number.
async fn answer(
    request: Request<Incoming>,
    taken: Arc<AtomicU64>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() == Method::GET {
        let number = taken.load(Ordering::Relaxed).to_string();
        return Ok(Response::new(Full::new(number.into())));
    }
    if request.into_body().collect().await.is_ok() {
        taken.fetch_add(1, Ordering::Relaxed);
    }
    Ok(Response::new(Full::default()))
}
