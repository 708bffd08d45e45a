//! The clients: each sends one message after the other, in a process of their own.

mod bare;
mod emit;
mod message;
mod paced;
mod post;
mod refusals;
mod rest;
mod sessions;
mod smtp;

use std::future::Future;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::child::left_alone;
use super::{Outcome, one_thread};

pub use emit::{Emitting, event};
pub use message::SENDER;
pub use refusals::Refusals;

/// The line that says that the measured time has begun.
pub const MEASURING: &str = "measuring";

/// The line that says that it is over.
pub const MEASURED: &str = "measured";

/// What the clients do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Job {
    /// They send for a time.
    Send {
        /// Where.
        door: Door,
        /// How many.
        clients: usize,
        /// Before anything is measured, in milliseconds.
        warm_up: u64,
        /// The measured time, in milliseconds.
        measured: u64,
    },
    /// They send by `POST /send` at a rate, however long each message takes.
    Paced {
        /// Where.
        server: RestServer,
        /// How many.
        clients: usize,
        /// Messages of all.
        per_second: u32,
        /// As of [`Job::Send`].
        warm_up: u64,
        /// As of [`Job::Send`].
        measured: u64,
    },
    /// They authenticate, and do nothing more until they are asked to go ahead; then every hundredth sends a message.
    Sessions {
        /// Where.
        server: SmtpServer,
        /// The address that they come from.
        source: Ipv4Addr,
        /// How many.
        connections: usize,
    },
    /// They connect, and are refused.
    Refusals {
        /// Of localhost.
        port: u16,
        /// How many in each second.
        per_second: u32,
        /// For how many seconds.
        seconds: u32,
    },
}

/// Where messages are handed in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Door {
    /// Over one SMTP connection for each client.
    Kept(SmtpServer),
    /// Over one SMTP connection for each message.
    OneEach(SmtpServer),
    /// By `POST /send`.
    Rest(RestServer),
    /// Straight to the provider, by the gateway's own submission client, set up by the gateway's own
    /// environment.
    Bare,
    /// Webhooks straight to their receivers, by the gateway's own client.
    Post(Vec<String>),
    /// Events that webhooks tell of, into the gateway's database.
    Events(Emitting),
}

/// A submission server with STARTTLS and AUTH PLAIN.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SmtpServer {
    /// Of localhost.
    pub port: u16,
    /// Whom to trust (PEM).
    pub ca: PathBuf,
    /// Log-in name.
    pub user: String,
    /// Its password.
    pub password: String,
}

/// The gateway's REST interface.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RestServer {
    /// Of localhost.
    pub port: u16,
    /// Names the app.
    pub pushable_key: String,
    /// Opens it.
    pub send_key: String,
}

/// The result of [`Job::Send`] or [`Job::Paced`]: the last line that the clients print.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// Messages whose acceptance came within the measured time.
    pub messages: u64,
    /// All messages that were accepted.
    pub total: u64,
    /// The measured time in seconds.
    pub seconds: f64,
    /// Median of what a message took, in milliseconds.
    pub p50: f64,
    /// What 99 of 100 messages took at most, in milliseconds.
    pub p99: f64,
}

impl Report {
    fn of(mut all: Done, seconds: f64) -> Outcome<Self> {
        all.took.sort_unstable();
        Ok(Self {
            messages: all.took.len().try_into()?,
            total: all.total,
            seconds,
            p50: percentile(&all.took, 50)?,
            p99: percentile(&all.took, 99)?,
        })
    }
}

/// One client.
trait Client: Send + 'static {
    /// Sends one message; returns once it is accepted.
    fn send(&mut self) -> impl Future<Output = Outcome<()>> + Send;
}

/// Does a job.
pub fn run(job: &str) -> Outcome<()> {
    match serde_json::from_str(job)? {
        Job::Sessions {
            server,
            source,
            connections,
        } => one_thread()?.block_on(sessions::hold(&server, source, connections)),
        Job::Refusals {
            port,
            per_second,
            seconds,
        } => one_thread()?.block_on(refusals::knock(port, per_second, seconds)),
        Job::Paced {
            server,
            clients,
            per_second,
            warm_up,
            measured,
        } => {
            let times = [warm_up, measured].map(Duration::from_millis);
            let runtime = one_thread()?;
            let report = runtime.block_on(async {
                let clients = rest::clients(&server, clients).await?;
                paced::measure(clients, per_second, times).await
            })?;
            tell(&runtime, &report)
        }
        Job::Send {
            door,
            clients,
            warm_up,
            measured,
        } => {
            let times = [warm_up, measured].map(Duration::from_millis);
            let runtime = match door {
                // The gateway's own runtime.
                Door::Bare | Door::Post(_) => Runtime::new()?,
                _ => one_thread()?,
            };
            let report = runtime.block_on(send(&door, clients, times))?;
            tell(&runtime, &report)
        }
    }
}

/// Prints the result, and waits: the CPU time of this process is read while it lives.
fn tell(runtime: &Runtime, report: &Report) -> Outcome<()> {
    println!("{}", serde_json::to_string(report)?);
    runtime.block_on(left_alone())
}

async fn send(door: &Door, clients: usize, times: [Duration; 2]) -> Outcome<Report> {
    match door {
        Door::Kept(server) => measure(smtp::kept(server, clients).await?, times).await,
        Door::OneEach(server) => measure(smtp::one_each(server, clients)?, times).await,
        Door::Rest(server) => measure(rest::clients(server, clients).await?, times).await,
        Door::Bare => measure(bare::clients(clients)?, times).await,
        Door::Post(urls) => measure(post::clients(urls, clients)?, times).await,
        Door::Events(emitting) => emit::measure(emitting, times).await,
    }
}

const WARMING: u8 = 0;
const RUNNING: u8 = 1;
const OVER: u8 = 2;

/// What one client has done.
#[derive(Default)]
struct Done {
    total: u64,
    /// Of the messages within the measured time, in microseconds.
    took: Vec<u64>,
}

async fn measure<C: Client>(
    clients: Vec<C>,
    [warm_up, measured]: [Duration; 2],
) -> Outcome<Report> {
    let phase = Arc::new(AtomicU8::new(WARMING));
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn(send_on(client, Arc::clone(&phase)));
    }
    undisturbed(&mut tasks, warm_up).await?;
    let started = Instant::now();
    phase.store(RUNNING, Ordering::Relaxed);
    println!("{MEASURING}");
    undisturbed(&mut tasks, measured).await?;
    phase.store(OVER, Ordering::Relaxed);
    println!("{MEASURED}");
    let seconds = started.elapsed().as_secs_f64();

    let mut all = Done::default();
    while let Some(ended) = tasks.join_next().await {
        let done = ended??;
        all.total += done.total;
        all.took.extend(done.took);
    }
    Report::of(all, seconds)
}

/// Lets the clients work; none of them may end.
async fn undisturbed(tasks: &mut JoinSet<Outcome<Done>>, time: Duration) -> Outcome<()> {
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(()),
        Some(ended) = tasks.join_next() => match ended? {
            Ok(_) => Err("a client has ended early".into()),
            Err(error) => Err(error),
        },
    }
}

async fn send_on<C: Client>(mut client: C, phase: Arc<AtomicU8>) -> Outcome<Done> {
    let mut done = Done::default();
    while phase.load(Ordering::Relaxed) != OVER {
        let begun = Instant::now();
        client.send().await?;
        done.total += 1;
        if phase.load(Ordering::Relaxed) == RUNNING {
            done.took.push(begun.elapsed().as_micros().try_into()?);
        }
    }
    Ok(done)
}

/// In milliseconds.
fn percentile(sorted: &[u64], hundredths: usize) -> Outcome<f64> {
    let last = sorted
        .len()
        .checked_sub(1)
        .ok_or("not one message was sent")?;
    let microseconds = u32::try_from(sorted[last * hundredths / 100])?;
    Ok(f64::from(microseconds) / 1_000.0)
}
