//! The mail provider, which survives every kill: what arrived there, and the unsteady line to it.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mailgate_sandbox::inbox::Inbox;
use memchr::memmem;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub use crate::history::Arrival;
use crate::support::gateway::Gateway;

/// How often what arrived is collected.
const POLL: Duration = Duration::from_millis(200);

/// Messages that are looked at each time; the inbox keeps 10,000.
const NEWEST: usize = 5_000;

/// How long an answer of the provider is on the unsteady line: a kill finds messages that have arrived
/// and are not known to have.
const LATENCY: Duration = Duration::from_millis(50);

/// Everything that arrived, by marker: the inbox itself keeps only the newest.
pub struct Arrivals {
    inbox: Inbox,
    collected: Arc<Mutex<Collected>>,
    collector: JoinSet<()>,
}

#[derive(Default)]
struct Collected {
    ids: HashSet<String>,
    by_marker: HashMap<String, Vec<Arrival>>,
}

impl Arrivals {
    /// Begins to collect.
    pub fn collect(inbox: Inbox) -> Self {
        let collected = Arc::<Mutex<Collected>>::default();
        let mut collector = JoinSet::new();
        let (from, into) = (inbox.clone(), Arc::clone(&collected));
        collector.spawn(async move {
            loop {
                sweep(&from, &into).await;
                tokio::time::sleep(POLL).await;
            }
        });
        Self {
            inbox,
            collected,
            collector,
        }
    }

    /// All of it, to this moment.
    pub async fn all(mut self) -> HashMap<String, Vec<Arrival>> {
        self.collector.shutdown().await;
        sweep(&self.inbox, &self.collected).await;
        self.collected.lock().unwrap().by_marker.clone()
    }
}

async fn sweep(inbox: &Inbox, collected: &Mutex<Collected>) {
    let newest = inbox.list(NEWEST);
    for message in &newest {
        if collected.lock().unwrap().ids.contains(&message.id) {
            continue;
        }
        let raw = inbox.raw(&message.id).await.unwrap();
        let raw = raw.expect("it is collected before it is too old to be kept");
        let marker = message.subject.clone().unwrap_or_default();
        let arrival = Arrival {
            mailbox: message.mailbox.clone(),
            recipients: message.envelope_to.clone(),
            at: message.received_at,
            markers: memmem::find_iter(&raw, marker.as_bytes()).count(),
            log_id: received_id(&raw),
        };
        let mut collected = collected.lock().unwrap();
        collected.ids.insert(message.id.clone());
        collected.by_marker.entry(marker).or_default().push(arrival);
    }
}

fn received_id(raw: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(&raw[..raw.len().min(1_000)]).into_owned();
    let (_, id) = text.lines().next()?.split_once(" id ")?;
    Some(id.trim_end_matches(';').to_owned())
}

/// A line to the provider that often isn't there, and breaks after a while: for messages that are
/// tried again and arrive then, and for those whose outcome nobody knows.
pub struct UnsteadyLine {
    address: SocketAddr,
    _connections: JoinSet<()>,
}

impl UnsteadyLine {
    pub async fn start(gateway: &Gateway, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let provider = gateway.sandbox.smtp_address;
        let mut random = StdRng::seed_from_u64(seed ^ 1);
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                while open.try_join_next().is_some() {}
                if random.random_bool(0.5) {
                    continue;
                }
                let life = Duration::from_millis(random.random_range(100..4_000));
                open.spawn(async move {
                    let Ok(mut far) = TcpStream::connect(provider).await else {
                        return;
                    };
                    drop(tokio::time::timeout(life, carry(&mut near, &mut far)).await);
                });
            }
        });
        Self {
            address,
            _connections: connections,
        }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

/// Carries both ways until one end closes; each answer of the provider takes its time.
async fn carry(near: &mut TcpStream, far: &mut TcpStream) -> std::io::Result<()> {
    let (mut said, mut answered) = (near.split(), far.split());
    let there = tokio::io::copy(&mut said.0, &mut answered.1);
    let back = async {
        let mut answer = vec![0; 16 * 1024];
        loop {
            let count = answered.0.read(&mut answer).await?;
            if count == 0 {
                return Ok(());
            }
            tokio::time::sleep(LATENCY).await;
            said.1.write_all(&answer[..count]).await?;
        }
    };
    tokio::select! {
        ended = there => ended.map(drop),
        ended = back => ended,
    }
}
