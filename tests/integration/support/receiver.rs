//! A receiver of webhooks: it keeps what it is sent and answers what the test says.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What it answers.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A status and a body.
    Status(u16, &'static str),
    /// A status and one header.
    Header(u16, &'static str, String),
    /// Nothing, as long as the receiver lives.
    Hang,
    /// 200, and a body without an end.
    Endless,
    /// 200, and a body of one byte every 100 ms.
    Drip,
    /// 200 with these bytes as its body.
    Bytes(u16, Vec<u8>),
}

/// What it was sent.
#[derive(Clone, Debug)]
pub struct Received {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

#[derive(Default)]
struct Inner {
    received: Mutex<Vec<Received>>,
    /// The next answers; then `always`.
    next: Mutex<VecDeque<Reply>>,
    always: Mutex<Option<Reply>>,
    stop: CancellationToken,
}

/// Ends with its last copy.
#[derive(Clone)]
pub struct Receiver {
    inner: Arc<Inner>,
    pub address: SocketAddr,
    _running: Arc<DropGuard>,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner::default());
        let router = Router::new()
            .fallback(receive)
            .with_state(Arc::clone(&inner));
        let stopped = inner.stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                served = axum::serve(listener, router) => served.unwrap(),
                () = stopped.cancelled() => {}
            }
        });
        Self {
            _running: Arc::new(inner.stop.clone().drop_guard()),
            inner,
            address,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The answers to the next requests, in their order.
    pub fn then(&self, replies: impl IntoIterator<Item = Reply>) {
        self.inner.next.lock().unwrap().extend(replies);
    }

    /// The answer to all others; 200 by itself.
    pub fn always(&self, reply: Reply) {
        *self.inner.always.lock().unwrap() = Some(reply);
    }

    pub fn received(&self) -> Vec<Received> {
        self.inner.received.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.inner.received.lock().unwrap().len()
    }
}

async fn receive(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    inner.received.lock().unwrap().push(Received {
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        body,
    });
    let next = inner.next.lock().unwrap().pop_front();
    let reply = next.or_else(|| inner.always.lock().unwrap().clone());
    let status = |code| StatusCode::from_u16(code).unwrap();
    match reply.unwrap_or(Reply::Status(200, "thanks")) {
        Reply::Status(code, text) => (status(code), text).into_response(),
        Reply::Header(code, name, value) => (status(code), [(name, value)]).into_response(),
        Reply::Bytes(code, bytes) => (status(code), bytes).into_response(),
        Reply::Hang => {
            inner.stop.cancelled().await;
            status(503).into_response()
        }
        Reply::Endless => stream(Duration::ZERO, &[b'x'; 8_192]),
        Reply::Drip => stream(Duration::from_millis(100), b"x"),
    }
}

/// The same piece again and again.
fn stream(pause: Duration, piece: &'static [u8]) -> Response {
    let pieces = futures_util::stream::unfold((), move |()| async move {
        tokio::time::sleep(pause).await;
        Some((Ok::<_, std::convert::Infallible>(piece), ()))
    });
    Body::from_stream(pieces).into_response()
}
