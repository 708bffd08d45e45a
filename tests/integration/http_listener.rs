//! The HTTP listener over real sockets: what holds a connection open, and what ends it.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::{MethodRouter, get};
use mailgate_server::http::{HttpLimits, serve};
use mailgate_server::shutdown::Shutdown;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::support::gateway::Gateway;
use crate::support::patience;
use crate::support::ports;

/// Longer than anything here takes.
const PATIENCE: Duration = patience::PATIENCE;

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: gateway.example\r\n\r\n";

/// A listener with one page.
async fn listen(page: MethodRouter, limits: HttpLimits, shutdown: &Shutdown) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    serve(listener, Router::new().route("/", page), limits, shutdown);
    address
}

/// A page that tells the client's address.
fn peer() -> MethodRouter {
    get(async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string())
}

/// A client of HTTP/1.1 that says just what it is told.
struct Client(TcpStream);

impl Client {
    async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    async fn write(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// The next answer, its header and its body; nothing when the listener closes the connection.
    async fn answer(&mut self) -> Option<String> {
        let mut received = Vec::new();
        loop {
            let text = String::from_utf8(received.clone()).unwrap();
            if let Some((header, body)) = text.split_once("\r\n\r\n")
                && body.len() >= content_length(header)
            {
                return Some(text);
            }
            let read = timeout(PATIENCE, self.0.read_buf(&mut received)).await;
            match read.expect("the listener answers or closes") {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    async fn get(&mut self) -> Option<String> {
        // A connection that was closed may not even take the request.
        self.0.write_all(REQUEST.as_bytes()).await.ok()?;
        self.answer().await
    }

    /// Whether the listener closes the connection within that time.
    async fn closed_within(&mut self, time: Duration) -> bool {
        match timeout(time, self.0.read(&mut [0])).await {
            Ok(Ok(1)) => panic!("an answer came"),
            Ok(_) => true,
            Err(_) => false,
        }
    }
}

fn http2_client() -> reqwest::Client {
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = reqwest::Client::builder()
        .no_proxy()
        .http2_prior_knowledge();
    client.build().unwrap()
}

fn content_length(header: &str) -> usize {
    let header = header.to_ascii_lowercase();
    let (_, rest) = header.split_once("content-length: ").unwrap();
    rest.lines().next().unwrap().parse().unwrap()
}

fn quick(connections: usize) -> HttpLimits {
    HttpLimits {
        header_read: Duration::from_millis(200),
        ..HttpLimits::new(connections)
    }
}

#[tokio::test]
async fn a_header_that_does_not_come_ends_the_connection() {
    let shutdown = Shutdown::default();
    let address = listen(peer(), quick(10), &shutdown).await;
    // HTTP/1.1 after its first bytes, what may yet become HTTP/2, and HTTP/2 that asks for nothing.
    for beginning in ["", "GET / HTTP/1.1\r\nX: ", "PRI * HTTP"] {
        let mut client = Client::connect(address).await;
        client.write(beginning).await;
        let trickle = async {
            // A byte comes in good time, again and again; "PRI" waits, as any byte would decide.
            while !client.closed_within(Duration::from_millis(20)).await {
                if beginning.starts_with("GET") {
                    drop(client.0.write_all(b"x").await);
                }
            }
        };
        let ended = timeout(PATIENCE, trickle).await;
        assert!(ended.is_ok(), "{beginning:?} keeps its connection");
    }
    let mut client = Client::connect(address).await;
    assert!(client.get().await.is_some());
    assert!(client.closed_within(PATIENCE).await, "idle after an answer");
}

#[tokio::test]
async fn an_http2_connection_without_a_request_ends() {
    let shutdown = Shutdown::default();
    let address = listen(peer(), quick(10), &shutdown).await;
    let mut client = Client::connect(address).await;
    client.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    // An empty SETTINGS frame; the listener's own frames come before the end.
    client.write("\0\0\0\u{4}\0\0\0\0\0").await;
    let mut frames = Vec::new();
    let end = timeout(PATIENCE, client.0.read_to_end(&mut frames)).await;
    assert!(end.is_ok(), "the connection goes on");
    assert_eq!(frames.get(3), Some(&4), "SETTINGS was not answered");
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed() {
    let shutdown = Shutdown::default();
    let address = listen(peer(), HttpLimits::new(2), &shutdown).await;
    let mut first = Client::connect(address).await;
    let mut second = Client::connect(address).await;
    assert!(first.get().await.is_some() && second.get().await.is_some());
    let mut third = Client::connect(address).await;
    assert!(third.closed_within(PATIENCE).await);
    assert!(first.get().await.is_some(), "the others go on");
    drop(second);
    let place = async { while Client::connect(address).await.get().await.is_none() {} };
    let found = timeout(PATIENCE, place).await;
    assert!(found.is_ok(), "the place is not given back");
}

#[tokio::test]
async fn a_connection_serves_several_requests_and_handlers_know_its_client() {
    let shutdown = Shutdown::default();
    let address = listen(peer(), HttpLimits::new(1), &shutdown).await;
    let mut client = Client::connect(address).await;
    let own = client.0.local_addr().unwrap().to_string();
    for _ in 0..2 {
        let answer = client.get().await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.ends_with(&own), "{answer}");
    }
}

#[tokio::test]
async fn http2_is_served_on_the_tracker() {
    let shutdown = Shutdown::default();
    let address = listen(peer(), HttpLimits::new(1), &shutdown).await;
    let client = http2_client();
    for _ in 0..2 {
        let response = client.get(format!("http://{address}/")).send().await;
        let response = response.unwrap();
        assert_eq!(response.version(), reqwest::Version::HTTP_2);
        assert!(response.text().await.unwrap().starts_with("127.0.0.1:"));
    }
    shutdown.soft.cancel();
    shutdown.tracker.close();
    let ended = timeout(PATIENCE, shutdown.tracker.wait()).await;
    assert!(ended.is_ok(), "an idle HTTP/2 connection goes on");
}

#[tokio::test]
async fn the_hard_end_cuts_requests() {
    let shutdown = Shutdown::default();
    let asked = Arc::new(Semaphore::new(0));
    let page = get({
        let asked = Arc::clone(&asked);
        async move || {
            asked.add_permits(1);
            pending::<()>().await;
        }
    });
    let address = listen(page, HttpLimits::new(2), &shutdown).await;
    let mut client = Client::connect(address).await;
    client.write(REQUEST).await;
    let http2 = http2_client().get(format!("http://{address}/")).send();
    let cut = async {
        drop(asked.acquire_many(2).await.unwrap());
        shutdown.soft.cancel();
        shutdown.tracker.close();
        assert!(!client.closed_within(Duration::from_millis(50)).await);
        shutdown.hard.cancel();
        assert!(client.closed_within(PATIENCE).await);
        shutdown.tracker.wait().await;
    };
    let (answer, ended) = tokio::join!(http2, timeout(PATIENCE, cut));
    assert!(ended.is_ok(), "something goes on after the end");
    assert!(answer.is_err(), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_closes_idle_connections_and_waits_for_a_request() {
    // A port that nobody takes once the gateway has left it.
    let gateway = Gateway::builder()
        .set("HTTP__LISTEN", ports::local_address())
        .start()
        .await;
    let address = gateway.daemon.http_address;
    let inbox = gateway.sandbox.inbox.clone();
    let mut silent = Client::connect(address).await;
    let mut idle = Client::connect(address).await;
    idle.write("GET /healthz HTTP/1.1\r\nHost: gateway.example\r\n\r\n")
        .await;
    assert!(idle.answer().await.unwrap().starts_with("HTTP/1.1 200 "));
    let mut busy = Client::connect(address).await;
    let hold = gateway.sandbox.slow.hold();
    let body = json!({
        "pk": gateway.app.pushable_key.expose(),
        "to": "slow@sandbox.example",
        "subject": "Slow",
        "body": "It works.",
    });
    let body = body.to_string();
    busy.write(&format!(
        "POST /send HTTP/1.1\r\nHost: gateway.example\r\nX-Send-Key: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        gateway.app.send_key.expose(),
        body.len(),
    ))
    .await;
    // It is under way once its message is in the gateway's hands.
    gateway
        .eventually("the request", async |gateway| gateway.spooled().await == 1)
        .await;
    let order = async {
        let early = async {
            assert!(silent.closed_within(PATIENCE).await);
            assert!(idle.closed_within(PATIENCE).await);
        };
        let late = async {
            let answer = busy.answer().await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            assert!(busy.closed_within(PATIENCE).await);
        };
        tokio::pin!(late);
        tokio::select! {
            biased;
            () = &mut late => panic!("the idle connections were kept until the request ended"),
            () = early => {}
        }
        assert!(TcpStream::connect(address).await.is_err(), "it listens");
        drop(hold);
        late.await;
    };
    tokio::join!(gateway.stop(), order);
    assert_eq!(inbox.list(usize::MAX).len(), 1);
}
