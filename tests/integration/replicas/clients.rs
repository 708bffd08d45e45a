//! Clients that do what every mail queue does: what was not taken they send again, under the same key.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mailgate_types::plugin::Plugin;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::crash::clients::{Account, Unreached};
use crate::crash::ledger::{Ledger, Message, Told};
use crate::crash::rest::RestClient;
use crate::crash::smtp::{Port, SmtpSender};

/// Messages that one client begins at most.
const MOST: u32 = 1_000;

/// Its pause before the next one.
const PAUSE: Duration = Duration::from_millis(30);

/// Its pause before it sends a message again: what `Retry-After` asks for, and after a connection that broke.
const RETRY_AFTER: Duration = Duration::from_secs(5);
const BROKEN: Duration = Duration::from_secs(1);

/// How often a message is sent again at most.
const RETRIES: u32 = 10;

/// How a client uses its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Rest,
    /// One connection for all messages.
    SmtpKept,
    /// A connection for each message.
    SmtpShort,
}

/// Messages that were sent again, by client and reason.
pub type Retries = BTreeMap<(Kind, &'static str), usize>;

enum Door {
    Rest(Box<RestClient>),
    Smtp(Box<SmtpSender>),
}

struct Client {
    name: String,
    kind: Kind,
    door: Door,
    ledger: Ledger,
    retries: Arc<Mutex<Retries>>,
}

/// All of them.
pub struct Clients {
    running: JoinSet<()>,
    stop: CancellationToken,
    retries: Arc<Mutex<Retries>>,
}

impl Clients {
    /// Four by REST, and by SMTP two of each kind, at both ports.
    pub fn start(account: &Account, ledger: &Ledger) -> Self {
        let (stop, retries) = (CancellationToken::new(), Arc::<Mutex<Retries>>::default());
        let mut running = JoinSet::new();
        for (kind, port) in [
            (Kind::Rest, None),
            (Kind::Rest, None),
            (Kind::Rest, None),
            (Kind::Rest, None),
            (Kind::SmtpKept, Some(Port::StartTls)),
            (Kind::SmtpKept, Some(Port::Tls)),
            (Kind::SmtpShort, Some(Port::StartTls)),
            (Kind::SmtpShort, Some(Port::Tls)),
        ] {
            let client = Client {
                name: format!("{kind:?}-{}", running.len()),
                kind,
                door: match port {
                    None => Door::Rest(Box::new(RestClient::new(account.clone()))),
                    Some(port) => Door::Smtp(Box::new(SmtpSender::new(account.clone(), port))),
                },
                ledger: ledger.clone(),
                retries: Arc::clone(&retries),
            };
            running.spawn(client.run(stop.clone()));
        }
        Self {
            running,
            stop,
            retries,
        }
    }

    /// Lets each finish what it has begun.
    pub async fn finish(mut self) -> Retries {
        let all = self.running.len();
        while let Some(ended) = self.running.try_join_next() {
            ended.expect("no client panics");
        }
        assert_eq!(self.running.len(), all, "the load ended before the test");
        self.stop.cancel();
        while let Some(ended) = self.running.join_next().await {
            ended.expect("no client panics");
        }
        std::mem::take(&mut self.retries.lock().unwrap())
    }
}

impl Client {
    async fn run(mut self, stop: CancellationToken) {
        for number in 1..=MOST {
            let marker = format!("{}-{number}-{:08x}", self.name, rand::random::<u32>());
            let message = Message {
                key: Some(format!("key of {marker}")),
                marker,
                plugin: Plugin::A,
                recipient: "good@example.com".to_owned(),
                lines: 3,
                in_a_long_life: true,
                send_at: None,
                is_cancelled: false,
            };
            let told = self.send(&message).await;
            self.ledger.add(message, told);
            if stop.is_cancelled() {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Until it is taken or refused.
    async fn send(&mut self, message: &Message) -> Told {
        for _ in 0..RETRIES {
            let (why, pause) = match self.ask(message).await {
                Err(Unreached) => ("not reached", BROKEN),
                Ok(Told::Nothing) => ("no answer", BROKEN),
                Ok(Told::NotTaken) => ("not taken", RETRY_AFTER),
                Ok(Told::InFlight) => ("in flight", RETRY_AFTER),
                Ok(told) => return told,
            };
            self.count(why);
            tokio::time::sleep(pause).await;
        }
        Told::Other(format!("nothing in {RETRIES} attempts"))
    }

    fn count(&self, why: &'static str) {
        let mut retries = self.retries.lock().unwrap();
        *retries.entry((self.kind, why)).or_default() += 1;
    }

    async fn ask(&mut self, message: &Message) -> Result<Told, Unreached> {
        match &mut self.door {
            Door::Rest(client) => client.send(message).await,
            Door::Smtp(client) => {
                let told = client.send(message).await;
                if self.kind == Kind::SmtpShort {
                    client.leave().await;
                }
                told
            }
        }
    }
}
