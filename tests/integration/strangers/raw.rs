//! A client of HTTP/1.1 that says just what it is told, and no more of a body than it likes.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::support::gateway::Gateway;

/// Longer than anything here takes.
pub const PATIENCE: Duration = Duration::from_mins(1);

pub struct Raw {
    pub stream: TcpStream,
    received: Vec<u8>,
}

/// An answer: status, header in lower case, body.
#[derive(Debug)]
pub struct Answered {
    pub status: u16,
    pub header: String,
    pub body: Value,
}

impl Answered {
    pub fn problem(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or_default())
    }
}

impl Raw {
    pub async fn connect(address: SocketAddr) -> Self {
        Self::of(TcpStream::connect(address).await.unwrap())
    }

    pub fn of(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            received: Vec::new(),
        }
    }

    /// From another address of this machine.
    pub async fn connect_from(host: [u8; 4], address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((host, 0).into()).unwrap();
        Self::of(socket.connect(address).await.unwrap())
    }

    pub async fn to(gateway: &Gateway) -> Self {
        Self::connect(gateway.daemon.http_address).await
    }

    pub async fn write(&mut self, text: &str) {
        self.try_write(text).await.unwrap();
    }

    pub async fn try_write(&mut self, text: &str) -> std::io::Result<()> {
        self.stream.write_all(text.as_bytes()).await
    }

    /// A request of which the body is still to come.
    pub async fn begin(&mut self, method: &str, path: &str, fields: &str) {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: gateway.example\r\n{fields}\r\n");
        self.write(&head).await;
    }

    /// The next answer; nothing when the connection ends, or none comes in time.
    pub async fn answer_within(&mut self, time: Duration) -> Option<Answered> {
        timeout(time, self.read()).await.ok().flatten()
    }

    /// The next answer.
    pub async fn answer(&mut self) -> Answered {
        self.answer_within(PATIENCE).await.expect("an answer")
    }

    /// Whether the connection ends, without an answer.
    pub async fn is_closed(&mut self) -> bool {
        self.is_closed_within(PATIENCE).await
    }

    pub async fn is_closed_within(&mut self, time: Duration) -> bool {
        matches!(timeout(time, self.read()).await, Ok(None))
    }

    async fn read(&mut self) -> Option<Answered> {
        loop {
            if let Some(answered) = self.whole() {
                return Some(answered);
            }
            match self.stream.read_buf(&mut self.received).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    fn whole(&mut self) -> Option<Answered> {
        let text = String::from_utf8_lossy(&self.received);
        let (header, body) = text.split_once("\r\n\r\n")?;
        let header = header.to_ascii_lowercase();
        let status: u16 = header.split(' ').nth(1)?.parse().ok()?;
        let length = header
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.trim().parse().unwrap());
        let body = body.get(..length)?;
        let answered = Answered {
            status,
            body: serde_json::from_str(body).unwrap_or_default(),
            header,
        };
        let consumed = answered.header.len() + 4 + length;
        self.received.drain(..consumed);
        Some(answered)
    }
}

/// What the first `wanted` of these connections come to, in the order in which they do: an answer, or an end without
/// one. Fewer where the others stay as they are.
pub async fn first_of(clients: &mut [Raw], wanted: usize) -> Vec<Option<Answered>> {
    let mut waiting: FuturesUnordered<_> = clients.iter_mut().map(Raw::read).collect();
    let mut came = Vec::new();
    let all = async {
        while came.len() < wanted
            && let Some(next) = waiting.next().await
        {
            came.push(next);
        }
    };
    let _ = timeout(PATIENCE, all).await;
    came
}
