//! All that is known of a run: what each client asked for and was told, what arrived at the providers, and what the
//! database and the payment provider say at the end. [`rules`] has what must hold of it.

pub mod rules;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::Path;

use chrono::{DateTime, Utc};
use mailgate_types::ids::LogId;
use mailgate_types::plugin::Plugin;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct History {
    /// Every message of the clients.
    pub entries: Vec<Entry>,
    /// What arrived, by the messages' markers.
    pub arrived: HashMap<String, Vec<Arrival>>,
    pub tables: Tables,
    /// The address that each provider's mailbox sends as.
    pub mailboxes: BTreeMap<Plugin, String>,
    /// The app that an endpoint listens to.
    pub heard: Uuid,
    /// One that nobody listens to.
    pub unheard: Option<Uuid>,
    /// The ids of the events that the endpoint has received; `None` if it was none that keeps them.
    pub received: Option<BTreeSet<String>>,
    /// Connected mailboxes, and what is billed; `None` if nothing is.
    pub billed: Option<Billed>,
}

/// What the payment provider bills for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Billed {
    /// Mailboxes that were connected, less those that were disconnected.
    pub connected: i64,
    /// Those that the database says are active.
    pub active: i64,
    /// The quantity of the subscription.
    pub quantity: Option<i64>,
}

impl History {
    /// Writes it into a file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        serde_json::to_writer(BufWriter::new(File::create(path)?), self).map_err(io::Error::from)
    }

    /// Reads what [`History::write`] has written.
    pub fn read(path: &Path) -> io::Result<Self> {
        serde_json::from_reader(BufReader::new(File::open(path)?)).map_err(io::Error::from)
    }
}

/// One message of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Message {
    /// The subject; it stands at the beginning and at the end of the body too.
    pub marker: String,
    pub plugin: Plugin,
    /// The whole address; its local part says how the sandbox takes it.
    pub recipient: String,
    /// Its Idempotency-Key.
    pub key: Option<String>,
    /// Lines between the markers of the body.
    pub lines: usize,
    /// The gateway was not killed any more when it was begun.
    pub in_a_long_life: bool,
    /// When it is to leave, if not at once.
    pub send_at: Option<DateTime<Utc>>,
    /// Its client cancels it as long as it waits.
    pub is_cancelled: bool,
}

/// What a client was told of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    /// The connection broke before the answer, or the answer is that nobody knows: 500 `outcome_unknown`, 554.
    Nothing,
    /// 503 or 451: the gateway did not take it.
    NotTaken,
    /// 409: its key is being worked on.
    InFlight,
    /// 200, or `250 … sent`.
    Sent(LogId),
    /// 202, or `250 … queued`.
    Queued(LogId),
    /// 202, or `250 … scheduled`.
    Scheduled(LogId),
    /// 200, to its cancellation.
    Cancelled(LogId),
    /// 422, or 550: the time that it was to leave at has passed.
    Late,
    /// 502, or 5xx; SMTP names no id.
    Refused(Option<LogId>, String),
    /// What nobody should be told.
    Other(String),
}

/// A message, and what its client was told in the end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    pub message: Message,
    pub told: Told,
}

impl Told {
    /// In one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::NotTaken => "not taken",
            Self::InFlight => "in flight",
            Self::Sent(_) => "sent",
            Self::Queued(_) => "queued",
            Self::Scheduled(_) => "scheduled",
            Self::Cancelled(_) => "cancelled",
            Self::Late => "late",
            Self::Refused(..) => "refused",
            Self::Other(_) => "other",
        }
    }
}

/// A message at the provider.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Arrival {
    pub mailbox: String,
    pub recipients: Vec<String>,
    /// How often the marker stands in it.
    pub markers: usize,
    pub at: DateTime<Utc>,
    /// The id in its Received header, where it came by SMTP.
    pub log_id: Option<String>,
}

/// A row of the log.
#[derive(Debug, Clone, FromRow, Serialize, Deserialize)]
pub struct LogRow {
    pub id: Uuid,
    pub app_id: Uuid,
    pub status: String,
    pub error_message: Option<String>,
    pub from_address: String,
    pub to_address: String,
    pub subject: String,
    pub plugin: String,
    pub message_id: Option<String>,
}

/// A row of the spool, with the pieces of its message.
#[derive(Debug, Clone, FromRow, Serialize, Deserialize)]
pub struct SpoolRow {
    pub id: Uuid,
    pub state: String,
    pub attempts: i32,
    pub is_held: bool,
    pub is_logged: bool,
    pub outcome_unknown: bool,
    pub size_bytes: i64,
    pub pieces: i64,
    pub last_piece: Option<i32>,
    pub content: Option<Vec<u8>>,
}

/// An attempt of a message that did not leave at the first one.
#[derive(Debug, Clone, FromRow, Serialize, Deserialize)]
pub struct AttemptRow {
    pub log_id: Uuid,
    pub number: i32,
    pub status: String,
    pub error_message: Option<String>,
}

/// An event for the app's endpoint.
#[derive(Debug, Clone, FromRow, Serialize, Deserialize)]
pub struct EventRow {
    pub id: Uuid,
    pub app_id: Uuid,
    pub event: String,
    pub log_id: Option<Uuid>,
    pub body: String,
}

/// A key, and the answer under it.
#[derive(Debug, Clone, FromRow, Serialize, Deserialize)]
pub struct KeyRow {
    pub log_id: Uuid,
    pub answer: Option<Value>,
}

/// What the database says at the end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Tables {
    pub logs: HashMap<Uuid, LogRow>,
    pub spool: HashMap<Uuid, SpoolRow>,
    /// In order.
    pub attempts: Vec<AttemptRow>,
    pub events: Vec<EventRow>,
    pub keys: HashMap<String, KeyRow>,
    /// Counters that don't say what the log says.
    pub wrong_counters: Vec<String>,
    /// Webhook messages that are neither queued nor were attempted, or that were attempted without a count.
    pub wrong_webhooks: Vec<String>,
}

impl LogRow {
    pub fn shown_id(&self) -> String {
        LogId(self.id).to_string()
    }

    /// The message may have arrived, nobody can tell, and it was not sent again.
    pub fn is_unverifiable(&self) -> bool {
        self.status == "failed_perm" && self.error().contains("it may have arrived")
    }

    /// Its sender was told to try again, so it counts as none.
    pub fn is_untaken(&self) -> bool {
        self.status == "failed_perm" && self.error().starts_with("Nothing was sent: ")
    }

    pub fn is_cancelled(&self) -> bool {
        self.status == "failed_perm" && self.error() == "Cancelled"
    }

    pub fn error(&self) -> &str {
        self.error_message.as_deref().unwrap_or_default()
    }
}
