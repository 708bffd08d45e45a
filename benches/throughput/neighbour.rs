//! A neighbour that takes all that it can: another subscriber, with bodies of many apps that come fast at first, and
//! then hardly at all.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

/// How many apps the neighbour has, and how many requests of each it has under way.
pub const APPS: usize = 6;
const REQUESTS: usize = 12;

/// What comes fast of each body, in chunks of so much, and how long it takes for each byte after that.
const BURST: usize = 20 << 20;
const CHUNK: usize = 1 << 20;
const CRAWL: Duration = Duration::from_secs(4);

/// What it does until it is dropped.
pub struct Neighbour {
    _requests: Vec<AbortOnDropHandle<()>>,
}

impl Neighbour {
    /// Begins, with the send keys of its apps.
    pub fn start(port: u16, send_keys: &[String]) -> Self {
        let requests = send_keys.iter().flat_map(|key| {
            (0..REQUESTS).map(|_| {
                let key = key.clone();
                AbortOnDropHandle::new(tokio::spawn(async move {
                    loop {
                        // Whatever ends a request, it begins anew.
                        let _ = stall(port, &key).await;
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }))
            })
        });
        Self {
            _requests: requests.collect(),
        }
    }
}

/// One request, until the gateway ends it.
async fn stall(port: u16, key: &str) -> std::io::Result<()> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut reading, mut writing) = stream.into_split();
    let header = format!(
        "POST /send HTTP/1.1\r\nHost: localhost\r\nX-Send-Key: {key}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let written = async {
        writing.write_all(header.as_bytes()).await?;
        let chunk = format!("{CHUNK:X}\r\n{}\r\n", " ".repeat(CHUNK));
        for _ in 0..BURST / CHUNK {
            writing.write_all(chunk.as_bytes()).await?;
        }
        loop {
            tokio::time::sleep(CRAWL).await;
            writing.write_all(b"1\r\n \r\n").await?;
        }
    };
    let mut answer = [0; 1_024];
    tokio::select! {
        written = written => written,
        read = reading.read(&mut answer) => read.map(drop),
    }
}
