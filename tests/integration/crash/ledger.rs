//! What the clients asked for, and what they were told.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use chrono::{DateTime, Utc};
use mailgate_types::ids::LogId;
use mailgate_types::plugin::Plugin;

use super::provider::Arrival;
use super::tables::Tables;

/// One message of a client.
#[derive(Debug, Clone)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The connection broke before the answer.
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
#[derive(Debug, Clone)]
pub struct Entry {
    pub message: Message,
    pub told: Told,
}

/// What all clients were told.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    entries: Arc<Mutex<Vec<Entry>>>,
    /// What was answered when, whether it was the end of a message or not.
    answers: Arc<Mutex<Vec<(Instant, &'static str)>>>,
    lives_on: Arc<AtomicBool>,
}

impl Ledger {
    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap()
    }

    /// The gateway has been killed for the last time.
    pub fn set_lives_on(&self) {
        self.lives_on.store(true, Ordering::Relaxed);
    }

    pub fn lives_on(&self) -> bool {
        self.lives_on.load(Ordering::Relaxed)
    }

    /// Notes an answer; `None` if the gateway was not reached.
    pub fn heard(&self, told: Option<&Told>) {
        let word = told.map_or("not reached", Told::word);
        self.answers.lock().unwrap().push((Instant::now(), word));
    }

    /// The answers between these moments.
    pub fn answers(&self, from: Instant, until: Instant) -> Vec<(Instant, &'static str)> {
        let answers = self.answers.lock().unwrap();
        let within = answers.iter().filter(|(at, _)| (from..=until).contains(at));
        within.copied().collect()
    }

    pub fn add(&self, message: Message, told: Told) {
        self.entries().push(Entry { message, told });
    }

    pub fn all(&self) -> Vec<Entry> {
        self.entries().clone()
    }

    /// How many were told this, in one word.
    pub fn count(&self, word: &str) -> usize {
        let entries = self.entries();
        let told = entries.iter().filter(|entry| entry.told.word() == word);
        told.count()
    }

    /// How many were told what.
    pub fn summary(&self) -> String {
        let mut counts = BTreeMap::<&str, usize>::new();
        for entry in self.entries().iter() {
            *counts.entry(entry.told.word()).or_default() += 1;
        }
        format!("told {counts:?}")
    }

    /// Shows what the run was made of.
    pub fn tell(&self, tables: &Tables, arrived: &HashMap<String, Vec<Arrival>>) {
        let mut ends = BTreeMap::<&str, usize>::new();
        for log in tables.logs.values() {
            *ends.entry(log.status.as_str()).or_default() += 1;
            if log.is_unverifiable() {
                *ends.entry("(of unknown outcome)").or_default() += 1;
            }
        }
        println!("{}", self.summary());
        println!(
            "log {ends:?}, {} arrived, {} attempts, {} events, {} keys",
            arrived.len(),
            tables.attempts.len(),
            tables.events.len(),
            tables.keys.len()
        );
    }
}

impl Told {
    fn word(&self) -> &'static str {
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
