//! Another subscriber, which takes all that it can: bodies for many apps that come fast at first, and then hardly at all,
//! and webhooks to receivers that never answer.

use std::time::Duration;

use mailgate_domain::accounts::CreatedApp;
use mailgate_storage::webhook_messages;
use mailgate_types::event::Emission;
use sqlx::{Connection as _, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use super::Outcome;
use super::load::event;

/// How many apps it has, and how many events of each go to its receivers.
pub const APPS: usize = 6;
const EVENTS: usize = 100;

/// How long it takes for each byte after the burst, what a burst comes in, and how long it pauses before it begins a
/// request anew.
const CRAWL: Duration = Duration::from_secs(4);
const CHUNK: usize = 1 << 20;
const PAUSE: Duration = Duration::from_millis(100);

/// How it goes about it.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Requests under way, of all apps in turn.
    requests: usize,
    /// What comes fast of each body.
    burst: usize,
}

impl Manner {
    /// As few as hold much memory for long.
    pub const HOLDS: Self = Self {
        requests: 21,
        burst: 12 << 20,
    };

    /// So many that most are refused, and come again.
    pub const FLOODS: Self = Self {
        requests: 72,
        burst: 20 << 20,
    };
}

/// A receiver of webhooks that takes connections and says nothing, until it is dropped.
pub struct Silence {
    /// Where it listens.
    pub url: String,
    _accepting: AbortOnDropHandle<()>,
}

impl Silence {
    /// Listens.
    pub async fn start() -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/hook", listener.local_addr()?);
        let accepting = tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((socket, _)) = listener.accept().await {
                kept.push(socket);
            }
        });
        Ok(Self {
            url,
            _accepting: AbortOnDropHandle::new(accepting),
        })
    }
}

/// What it does until it is dropped.
pub struct Hostile {
    _requests: Vec<AbortOnDropHandle<()>>,
}

impl Hostile {
    /// Begins, at the gateway with this port and database.
    pub async fn start(
        manner: Manner,
        port: u16,
        database_url: &str,
        apps: &[CreatedApp],
    ) -> Outcome<Self> {
        let requests = apps.iter().cycle().take(manner.requests).map(|app| {
            let key = app.send_key.expose().to_owned();
            AbortOnDropHandle::new(tokio::spawn(async move {
                loop {
                    // Whatever ends a request, it begins anew.
                    let _ = stall(port, &key, manner.burst).await;
                    tokio::time::sleep(PAUSE).await;
                }
            }))
        });
        let requests = requests.collect();
        let mut database = PgConnection::connect(database_url).await?;
        let apps = apps.iter().cycle().take(EVENTS * apps.len());
        let events: Vec<Emission> = apps.map(|app| Emission::of(app.id, event())).collect();
        webhook_messages::emit(&mut database, &events, chrono::Utc::now()).await?;
        database.close().await?;
        Ok(Self {
            _requests: requests,
        })
    }
}

/// One request, until the gateway ends it.
async fn stall(port: u16, key: &str, burst: usize) -> std::io::Result<()> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut reading, mut writing) = stream.into_split();
    let header = format!(
        "POST /send HTTP/1.1\r\nHost: localhost\r\nX-Send-Key: {key}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let written = async {
        writing.write_all(header.as_bytes()).await?;
        let chunk = format!("{CHUNK:X}\r\n{}\r\n", " ".repeat(CHUNK));
        for _ in 0..burst / CHUNK {
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
