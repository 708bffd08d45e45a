//! The journal: one task that takes all waiting openings and endings and commits them together, with
//! the log rows, counters, idempotency keys and webhooks that belong to them. While one commit runs the
//! next batch gathers, so a lone message waits for one commit and a thousand share it.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{Connection as _, PgConnection, PgPool};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::storage::idempotency_keys::{self, NewKey};
use crate::storage::journal;
use crate::storage::pool::OwnConnection;
use crate::storage::spool::{Closing, Opening};
use crate::storage::webhook_messages::NewMessage;
use crate::types::clock::SharedClock;
use crate::types::event::{Emission, Event};
use crate::types::ids::{AppId, LogId};

/// Entries that wait at most; past it, callers wait for a place.
const WAITING: usize = 4_096;

/// Entries of one commit at most.
const BATCH: usize = 512;

/// How long a commit may take.
const COMMIT: Duration = Duration::from_secs(15);

/// An entry was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the journal can't write to the database")]
pub struct NotWritten;

/// What came of an opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The message is in the gateway's hands.
    Here,
    /// Its idempotency key stands for another message; nothing was written.
    Twin,
}

/// How a message ended, and who is told.
#[derive(Debug, Clone)]
pub struct Ending {
    /// The message's app.
    pub app: AppId,
    /// What the log says.
    pub closing: Closing,
    /// What the app's endpoints are told.
    pub event: Event,
    /// What its caller is told: the idempotency key, and the answer under it.
    pub answer: Option<(String, Value)>,
}

enum Entry {
    Open(Box<Opening>, Option<NewKey>),
    Close(Box<Ending>),
}

struct Waiting {
    entry: Entry,
    answer: oneshot::Sender<Result<Opened, NotWritten>>,
}

/// Writes entries; ends its task when the last copy of it is dropped.
#[derive(Debug, Clone)]
pub struct Journal {
    entries: mpsc::Sender<Waiting>,
}

/// The journal's task.
#[derive(Debug)]
pub struct JournalTask {
    connection: OwnConnection,
    clock: SharedClock,
    entries: mpsc::Receiver<Waiting>,
}

/// A journal and the task that has to run for it.
#[must_use]
pub fn journal(pool: PgPool, clock: SharedClock) -> (Journal, JournalTask) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (
        Journal { entries: sender },
        JournalTask {
            connection: OwnConnection::new(pool),
            clock,
            entries: receiver,
        },
    )
}

impl Journal {
    /// Says that a message is in the gateway's hands, unless its idempotency key stands for another
    /// one. Returns once that is committed.
    ///
    /// # Errors
    ///
    /// [`NotWritten`]; the message must not be submitted then.
    pub async fn open(&self, opening: Opening, key: Option<NewKey>) -> Result<Opened, NotWritten> {
        self.write(Entry::Open(Box::new(opening), key)).await
    }

    /// Says how a message ended. Returns once that is committed.
    ///
    /// # Errors
    ///
    /// [`NotWritten`]; the message's spool row stands as it did.
    pub async fn close(&self, ending: Ending) -> Result<(), NotWritten> {
        self.write(Entry::Close(Box::new(ending))).await.map(drop)
    }

    async fn write(&self, entry: Entry) -> Result<Opened, NotWritten> {
        let (answer, written) = oneshot::channel();
        self.entries
            .send(Waiting { entry, answer })
            .await
            .map_err(|_| NotWritten)?;
        written.await.unwrap_or(Err(NotWritten))
    }
}

/// The entries of one commit, by kind.
#[derive(Default)]
struct Batch {
    openings: Vec<Opening>,
    keys: Vec<NewKey>,
    closings: Vec<Closing>,
    emissions: Vec<Emission>,
    answers: Vec<(AppId, String, Value)>,
}

impl Batch {
    fn of(entries: &[Entry]) -> Self {
        let mut batch = Self::default();
        for entry in entries {
            match entry {
                Entry::Open(opening, key) => {
                    batch.openings.push(Opening::clone(opening));
                    batch.keys.extend(key.clone());
                }
                Entry::Close(ending) => {
                    batch.closings.push(ending.closing.clone());
                    batch.emissions.push(Emission {
                        app: ending.app,
                        event: ending.event.clone(),
                        log: Some(ending.closing.id),
                    });
                    if let Some((key, answer)) = &ending.answer {
                        batch
                            .answers
                            .push((ending.app, key.clone(), answer.clone()));
                    }
                }
            }
        }
        batch
    }
}

impl JournalTask {
    /// Runs until every [`Journal`] is dropped and all is written.
    pub async fn run(mut self) {
        let mut waiting = Vec::with_capacity(BATCH);
        while self.entries.recv_many(&mut waiting, BATCH).await > 0 {
            let (entries, answers): (Vec<Entry>, Vec<_>) = waiting
                .drain(..)
                .map(|waiting| (waiting.entry, waiting.answer))
                .unzip();
            metrics::histogram!("mailgate_journal_batch_entries")
                .record(f64::from(u32::try_from(entries.len()).unwrap_or(u32::MAX)));
            let outcomes = self.commit(entries).await;
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                // Whoever went away before its answer loses nothing: the entry is written.
                let _ = answer.send(outcome);
            }
        }
    }

    /// Commits a batch; where the database refuses it, each entry by itself, so that one that can't
    /// be written takes no other with it.
    async fn commit(&mut self, entries: Vec<Entry>) -> Vec<Result<Opened, NotWritten>> {
        let count = entries.len();
        match self.try_commit(&entries).await {
            Ok(twins) => entries
                .iter()
                .map(|entry| match entry {
                    Entry::Open(opening, _) if twins.contains(&opening.id) => Ok(Opened::Twin),
                    _ => Ok(Opened::Here),
                })
                .collect(),
            Err(sqlx::Error::Database(error)) if count > 1 => {
                tracing::error!(%error, count, "a journal batch was refused; its entries are tried one by one");
                let mut outcomes = Vec::with_capacity(count);
                for entry in entries {
                    outcomes.push(self.try_alone(entry).await);
                }
                outcomes
            }
            Err(error) => {
                tracing::error!(%error, count, "the journal can't be written");
                vec![Err(NotWritten); count]
            }
        }
    }

    async fn try_alone(&mut self, entry: Entry) -> Result<Opened, NotWritten> {
        match self.try_commit(&[entry]).await {
            Ok(twins) if twins.is_empty() => Ok(Opened::Here),
            Ok(_) => Ok(Opened::Twin),
            Err(error) => {
                tracing::error!(%error, "a journal entry can't be written");
                Err(NotWritten)
            }
        }
    }

    /// Bounded, since a database host that has vanished never answers, and all sending waits here.
    /// Answers the openings whose keys stand for other messages.
    async fn try_commit(&mut self, entries: &[Entry]) -> Result<HashSet<LogId>, sqlx::Error> {
        let started = Instant::now();
        let committed = timeout(COMMIT, self.commit_now(Batch::of(entries))).await;
        metrics::histogram!("mailgate_journal_commit_seconds").record(started.elapsed());
        committed.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    async fn commit_now(&mut self, batch: Batch) -> Result<HashSet<LogId>, sqlx::Error> {
        let now = self.clock.now();
        self.connection
            .run(async |connection| write(connection, batch, now).await)
            .await
    }
}

async fn write(
    connection: &mut PgConnection,
    mut batch: Batch,
    now: DateTime<Utc>,
) -> Result<HashSet<LogId>, sqlx::Error> {
    // One statement needs no transaction of its own.
    if batch.keys.is_empty() && batch.answers.is_empty() {
        write_messages(connection, &batch, now).await?;
        return Ok(HashSet::new());
    }
    let mut transaction = connection.begin().await?;
    let mut twins: HashSet<LogId> = batch.keys.iter().map(|key| key.log).collect();
    if !batch.keys.is_empty() {
        for log in idempotency_keys::claim(&mut transaction, &batch.keys, now).await? {
            twins.remove(&log);
        }
        batch
            .openings
            .retain(|opening| !twins.contains(&opening.id));
    }
    write_messages(&mut transaction, &batch, now).await?;
    idempotency_keys::answer(&mut transaction, &batch.answers).await?;
    transaction.commit().await?;
    Ok(twins)
}

async fn write_messages(
    connection: &mut PgConnection,
    batch: &Batch,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let (openings, closings) = (&batch.openings, &batch.closings);
    match (openings.is_empty(), closings.is_empty()) {
        (true, true) => Ok(()),
        (false, true) => journal::open(connection, openings).await,
        _ => {
            let events: Vec<NewMessage> = batch
                .emissions
                .iter()
                .map(|emission| NewMessage::of(emission, now))
                .collect();
            journal::write(connection, openings, closings, &events, now).await
        }
    }
}
