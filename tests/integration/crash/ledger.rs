//! What the clients asked for, and what they were told.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use crate::history::{Arrival, Tables};
pub use crate::history::{Entry, Message, Told};

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
