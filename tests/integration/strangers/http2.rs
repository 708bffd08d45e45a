//! A client of HTTP/2 that gives no room for answers, and goes on answering pings.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::raw::PATIENCE;
use crate::command_line::serve::replica;
use crate::support::gateway::Gateway;

const SETTINGS: u8 = 4;
const PING: u8 = 6;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;

/// `SETTINGS_INITIAL_WINDOW_SIZE` and `SETTINGS_MAX_CONCURRENT_STREAMS` (RFC 9113 §6.5.2).
const INITIAL_WINDOW: u16 = 4;
const CONCURRENT_STREAMS: u16 = 3;

/// A connection whose answers have no window.
struct Unmoved {
    /// Ends with the connection.
    reading: JoinHandle<()>,
    /// Answers that have begun, and streams that were refused.
    begun: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
    /// What the server allows.
    streams: Arc<AtomicUsize>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// GET of a path (RFC 7541: static names, literal values).
fn get(stream: u32, path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x04];
    block.push(u8::try_from(path.len()).unwrap());
    block.extend(path.bytes());
    block.extend([0x01, 1, b'x']);
    // END_STREAM, END_HEADERS.
    frame(HEADERS, 0x5, stream, &block)
}

impl Unmoved {
    async fn open(address: SocketAddr, path: &str, streams: u32) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let (reader, mut writer) = stream.into_split();
        let mut opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        let mut settings = INITIAL_WINDOW.to_be_bytes().to_vec();
        settings.extend(0_u32.to_be_bytes());
        opening.extend(frame(SETTINGS, 0, 0, &settings));
        for number in 0..streams {
            opening.extend(get(number * 2 + 1, path));
        }
        writer.write_all(&opening).await.unwrap();
        let this = Self {
            reading: tokio::spawn(async {}),
            begun: Arc::default(),
            refused: Arc::default(),
            streams: Arc::default(),
        };
        let (begun, refused, allowed) = (
            Arc::clone(&this.begun),
            Arc::clone(&this.refused),
            Arc::clone(&this.streams),
        );
        let reading = tokio::spawn(async move {
            let mut reader = reader;
            while let Some((kind, flags, payload)) = next(&mut reader).await {
                let answer = match kind {
                    SETTINGS if flags & 1 == 0 => {
                        for setting in payload.chunks_exact(6) {
                            if setting[..2] == CONCURRENT_STREAMS.to_be_bytes() {
                                let value = u32::from_be_bytes(setting[2..].try_into().unwrap());
                                allowed.store(value as usize, Ordering::Relaxed);
                            }
                        }
                        frame(SETTINGS, 1, 0, &[])
                    }
                    PING if flags & 1 == 0 => frame(PING, 1, 0, &payload),
                    HEADERS => {
                        begun.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    RST_STREAM => {
                        refused.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    _ => continue,
                };
                if writer.write_all(&answer).await.is_err() {
                    return;
                }
            }
        });
        Self { reading, ..this }
    }

    /// Waits until every stream was answered or refused.
    async fn settled(&self, streams: usize) {
        let settled = async {
            loop {
                let seen = [&self.begun, &self.refused].map(|it| it.load(Ordering::Relaxed));
                if seen[0] + seen[1] >= streams {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, settled)
            .await
            .expect("every stream is answered");
    }
}

/// The next frame: its type, flags and payload.
async fn next(reader: &mut OwnedReadHalf) -> Option<(u8, u8, Vec<u8>)> {
    let mut head = [0; 9];
    reader.read_exact(&mut head).await.ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    reader.read_exact(&mut payload).await.ok()?;
    Some((head[3], head[4], payload))
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_takes_end() {
    let gateway = Gateway::builder()
        .set("LIMITS__HTTP_BODY_IDLE_SECONDS", 1)
        .start()
        .await;
    let pk = gateway.app.pushable_key.expose();
    let connect = format!("/connect/{pk}");
    for path in [
        "/openapi.json",
        "/docs/swagger-ui-bundle.js",
        connect.as_str(),
        "/nothing",
    ] {
        let client = Unmoved::open(gateway.daemon.http_address, path, 20).await;
        let ended = timeout(PATIENCE, client.reading).await;
        assert!(ended.is_ok(), "{path}: the connection goes on");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_waits_for_no_answer_that_nobody_takes() {
    let gateway = Gateway::start().await;
    let client = Unmoved::open(gateway.daemon.http_address, "/openapi.json", 5).await;
    client.settled(5).await;
    let began = std::time::Instant::now();
    gateway.stop().await;
    println!("the end took {:?} with stalled answers", began.elapsed());
    // Far from shutdown.seconds, which is 30.
    assert!(began.elapsed() < PATIENCE);
    client.reading.await.unwrap();
}

/// `VmRSS`, in bytes.
fn resident(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.unwrap().trim().trim_end_matches(" kB");
    kibibytes.parse::<usize>().unwrap() * 1_024
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_without_a_window_share_one_copy() {
    const CONNECTIONS: usize = 20;
    const STREAMS: u32 = 200;
    let gateway = Gateway::start().await;
    let mut serve = replica(&gateway).start();
    let address = serve.ready().await.http;
    // What is made once is there.
    for path in ["/openapi.json", "/docs/swagger-ui-bundle.js"] {
        let response = gateway.http.get(format!("http://{address}{path}")).send();
        response.await.unwrap().bytes().await.unwrap();
    }
    let before = resident(serve.pid());
    let mut clients = Vec::new();
    for number in 0..CONNECTIONS {
        let path = ["/openapi.json", "/docs/swagger-ui-bundle.js"][number % 2];
        clients.push(Unmoved::open(address, path, STREAMS).await);
    }
    for client in &clients {
        client.settled(STREAMS as usize).await;
        let allowed = client.streams.load(Ordering::Relaxed);
        assert!((1..=64).contains(&allowed), "{allowed} streams");
        let begun = client.begun.load(Ordering::Relaxed);
        assert!(begun <= allowed, "{begun} answers have begun");
    }
    let grown = resident(serve.pid()).saturating_sub(before);
    println!(
        "{CONNECTIONS} connections of {STREAMS} streams: {} KiB more",
        grown / 1_024
    );
    // A copy for each stream would be hundreds of MiB.
    assert!(grown < 48 << 20, "{} KiB more", grown / 1_024);
    serve.terminate().await;
    gateway.stop().await;
}
