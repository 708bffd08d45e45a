//! The clients: a dozen, half by SMTP and half by REST. Some have keys, and ask again under the same
//! key until they have an answer; the others never send a message twice.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use mailgate_domain::accounts::CreatedApp;
use mailgate_types::ids::AppId;
use mailgate_types::plugin::Plugin;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::ledger::{Ledger, Message, Told};
use super::rest::{Cancelled, RestClient};
use super::smtp::{Port, SmtpSender};
use crate::support::gateway::Gateway;

/// Clients of each door.
const CLIENTS: u64 = 6;

/// A client's pause before its next message, in milliseconds.
const PAUSE: std::ops::Range<u64> = 0..40;

/// How far ahead messages are scheduled, in milliseconds.
const SCHEDULED: std::ops::Range<i64> = 500..8_000;

/// A client's pause before it connects again.
const UNREACHED: Duration = Duration::from_millis(15);

/// A client's pause after the gateway took nothing.
const REFUSED: Duration = Duration::from_millis(200);

/// A pause before a client asks again under the same key, after the first time.
const ASK_AGAIN: Duration = Duration::from_secs(4);

/// What a client has to know of the gateway.
#[derive(Debug, Clone)]
pub struct Account {
    pub base_url: String,
    pub starttls: SocketAddr,
    pub tls: SocketAddr,
    pub ca_file: PathBuf,
    pub slug: String,
    pub pushable_key: String,
    pub send_key: String,
    pub api_secret: String,
    /// Where a mail client saves a copy of what it submits through the second mailbox, before it does.
    pub sent_folder: Option<PathBuf>,
}

impl Account {
    /// The app of a gateway, at the gateway's own addresses.
    pub fn of(gateway: &Gateway) -> Self {
        Self {
            api_secret: String::new(),
            sent_folder: None,
            base_url: gateway.daemon.base_url.clone(),
            starttls: gateway.starttls_address(),
            tls: gateway.tls_address(),
            ca_file: gateway.ca_file.clone(),
            slug: gateway.app.slug.clone(),
            pushable_key: gateway.app.pushable_key.expose().to_owned(),
            send_key: gateway.app.send_key.expose().to_owned(),
        }
    }

    /// With the API secret, as whoever cancels messages needs it.
    pub async fn owned(self, gateway: &Gateway) -> Self {
        Self {
            api_secret: api_secret(gateway, gateway.app.id).await,
            ..self
        }
    }

    /// Another app's.
    pub async fn for_app(self, gateway: &Gateway, app: &CreatedApp) -> Self {
        Self {
            api_secret: api_secret(gateway, app.id).await,
            slug: app.slug.clone(),
            pushable_key: app.pushable_key.expose().to_owned(),
            send_key: app.send_key.expose().to_owned(),
            ..self
        }
    }
}

async fn api_secret(gateway: &Gateway, app: AppId) -> String {
    let credentials = gateway.daemon.accounts.app_credentials(app).await;
    let credentials = credentials.expect("the database answers");
    let secret = credentials.expect("the app is there").api_secret;
    secret.expose().to_owned()
}

/// The message did not reach the gateway: nothing of it was said.
#[derive(Debug)]
pub struct Unreached;

enum Door {
    Rest(Box<RestClient>),
    Smtp(Box<SmtpSender>),
}

/// One client.
struct Client {
    name: String,
    door: Door,
    canceller: RestClient,
    has_keys: bool,
    random: StdRng,
    count: u32,
    most: u32,
    pause: std::ops::Range<u64>,
    /// Messages that have no answer yet, and when they are asked for again.
    unanswered: VecDeque<(Instant, Message)>,
    ledger: Ledger,
}

/// All of them.
pub struct Clients {
    running: JoinSet<Vec<String>>,
    stop: CancellationToken,
    give_up: CancellationToken,
}

impl Clients {
    /// They send for these apps by turns. Each begins `most` messages at most.
    pub fn start(accounts: &[Account], ledger: &Ledger, seed: u64, most: u32) -> Self {
        Self::paced(accounts, ledger, seed, most, PAUSE)
    }

    /// The same, with pauses of so many milliseconds.
    pub fn paced(
        accounts: &[Account],
        ledger: &Ledger,
        seed: u64,
        most: u32,
        pause: std::ops::Range<u64>,
    ) -> Self {
        let (stop, give_up) = (CancellationToken::new(), CancellationToken::new());
        let mut running = JoinSet::new();
        for (number, account) in (0..2 * CLIENTS).zip(accounts.iter().cycle()) {
            let (door, name) = if number < CLIENTS {
                let client = RestClient::new(account.clone());
                (Door::Rest(Box::new(client)), format!("rest-{number}"))
            } else {
                let port = if number % 2 == 0 {
                    Port::Tls
                } else {
                    Port::StartTls
                };
                let client = SmtpSender::new(account.clone(), port);
                (Door::Smtp(Box::new(client)), format!("smtp-{number}"))
            };
            let client = Client {
                name,
                door,
                canceller: RestClient::new(account.clone()),
                has_keys: number % 3 == 0,
                random: StdRng::seed_from_u64(seed + 2 + number),
                count: 0,
                most,
                pause: pause.clone(),
                unanswered: VecDeque::new(),
                ledger: ledger.clone(),
            };
            running.spawn(client.run(stop.clone(), give_up.clone()));
        }
        Self {
            running,
            stop,
            give_up,
        }
    }

    /// Lets each finish what it has begun; answers what has no answer after `patience`.
    pub async fn finish(mut self, patience: Duration) -> Vec<String> {
        self.stop.cancel();
        let deadline = tokio::time::Instant::now() + patience;
        let mut unanswered = Vec::new();
        loop {
            match tokio::time::timeout_at(deadline, self.running.join_next()).await {
                Ok(Some(left)) => unanswered.extend(left.expect("no client panics")),
                Ok(None) => break,
                Err(_) => {
                    self.give_up.cancel();
                    let left = self.running.join_next().await;
                    unanswered.extend(
                        left.transpose()
                            .expect("no client panics")
                            .into_iter()
                            .flatten(),
                    );
                }
            }
        }
        unanswered
    }
}

impl Client {
    async fn run(mut self, stop: CancellationToken, give_up: CancellationToken) -> Vec<String> {
        while !give_up.is_cancelled() {
            let Some(message) = self.next(&stop) else {
                if stop.is_cancelled() && self.unanswered.is_empty() {
                    break;
                }
                tokio::time::sleep(UNREACHED).await;
                continue;
            };
            let told = loop {
                let answer = self.door.send(&message).await;
                self.ledger.heard(answer.as_ref().ok());
                match answer {
                    Ok(told) => break Some(told),
                    Err(Unreached) if give_up.is_cancelled() => break None,
                    Err(Unreached) => tokio::time::sleep(UNREACHED).await,
                }
            };
            // Whoever is sent away doesn't come back at once.
            let pause = match told {
                Some(Told::NotTaken) => REFUSED,
                _ => Duration::from_millis(self.random.random_range(self.pause.clone())),
            };
            let told = match told {
                Some(told) => Some(self.cancelled(&message, told, &give_up).await),
                None => None,
            };
            match told {
                Some(told) if message.key.is_none() || told.is_final() => {
                    self.ledger.add(message, told);
                }
                // A connection that broke is no reason to wait.
                Some(Told::Nothing) => self.unanswered.push_front((Instant::now(), message)),
                _ => {
                    let again = Instant::now() + ASK_AGAIN;
                    self.unanswered.push_back((again, message));
                }
            }
            tokio::time::sleep(pause).await;
        }
        (self.unanswered.into_iter())
            .map(|(_, message)| format!("{}: its key never had an answer", message.marker))
            .collect()
    }

    /// Cancels a message that waits, if that is what its client does; what it was told of it in the end.
    async fn cancelled(&self, message: &Message, told: Told, give_up: &CancellationToken) -> Told {
        let (Told::Scheduled(id) | Told::Queued(id)) = told else {
            return told;
        };
        while message.is_cancelled && !give_up.is_cancelled() {
            match self.canceller.cancel(id).await {
                Cancelled::Yes => return Told::Cancelled(id),
                Cancelled::No => break,
                Cancelled::Unknown => tokio::time::sleep(UNREACHED).await,
            }
        }
        told
    }

    /// What to send next: something without an answer that is due, or a new message.
    fn next(&mut self, stop: &CancellationToken) -> Option<Message> {
        let now = Instant::now();
        let due = self.unanswered.iter().position(|(due, _)| *due <= now);
        if let Some((_, message)) = due.and_then(|due| self.unanswered.remove(due)) {
            return Some(message);
        }
        (!stop.is_cancelled() && self.count < self.most).then(|| self.compose())
    }

    fn compose(&mut self) -> Message {
        self.count += 1;
        let random = &mut self.random;
        let marker = format!(
            "{}-{}-{:08x}",
            self.name,
            self.count,
            random.random::<u32>()
        );
        let local_part = match random.random_range(0..100) {
            0..80 => "good",
            80..88 => "tempfail",
            88..94 => "permfail",
            _ => "drop",
        };
        let send_at = random.random_bool(0.15).then(|| {
            let wait = random.random_range(SCHEDULED);
            Utc::now() + TimeDelta::milliseconds(wait)
        });
        Message {
            send_at,
            is_cancelled: random.random_bool(0.4),
            key: self.has_keys.then(|| format!("key of {marker}")),
            marker,
            plugin: if random.random_bool(0.6) {
                Plugin::A
            } else {
                Plugin::B
            },
            recipient: format!("{local_part}@example.com"),
            // A few are larger than the pieces that they are stored in.
            in_a_long_life: self.ledger.lives_on(),
            lines: if random.random_bool(0.03) { 2_000 } else { 3 },
        }
    }
}

impl Door {
    async fn send(&mut self, message: &Message) -> Result<Told, Unreached> {
        match self {
            Self::Rest(client) => client.send(message).await,
            Self::Smtp(client) => client.send(message).await,
        }
    }
}

impl Message {
    /// The body: its lines, separated by `line_end`.
    pub fn body(&self, line_end: &str) -> String {
        let marker = &self.marker;
        let filling = "All work and no play makes a dull message, line for line.";
        let filling = format!("{filling}{line_end}").repeat(self.lines);
        format!("{marker}{line_end}{filling}{marker}")
    }
}
