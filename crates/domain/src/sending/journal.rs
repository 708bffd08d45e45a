//! The journal: one task that collects all waiting openings and endings and commits them together, with the log rows,
//! counters, idempotency keys and webhooks that belong to them. While one commit runs the next batch gathers, so a lone
//! message waits for one commit and a thousand share it. An entry that the database permanently rejects is written
//! without its untrusted text.

pub(crate) mod ending;
pub(crate) mod in_flight;
mod listened;
pub(crate) mod minimal;
pub(crate) mod missing_day;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{Connection as _, PgConnection, PgPool};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use ending::Ending;
use listened::Listened;
use mailgate_storage::database::error_class::{is_of_missing_day, is_passing, is_refusal};
use mailgate_storage::database::journal;
use mailgate_storage::database::journal::{Fenced, HasEnded};
use mailgate_storage::database::left_backends::LeftBackends;
use mailgate_storage::database::outage::{Outage, trouble};
use mailgate_storage::database::pool::DedicatedConnection;
use mailgate_storage::idempotency_keys::{self, NewKey};
use mailgate_storage::spool::{self, Closing, Opening};
use mailgate_storage::webhook_messages::NewMessage;
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::{AppId, GatewayId, LogId};
use mailgate_types::lease::Lease;
use mailgate_types::past::kept_from;

/// Entries that may wait; beyond that, callers wait for a place.
const WAITING: usize = 4_096;

/// Largest number of entries per commit.
const BATCH: usize = 512;

/// Timeout of a commit.
const COMMIT: Duration = Duration::from_secs(15);

/// Why an entry was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotWritten {
    /// The database failed. If it did not answer the commit, the entry may have been written.
    #[error("the journal can't write to the database")]
    Trouble {
        /// The database is unavailable.
        is_outage: bool,
    },
    /// Another process has ended this one and taken over its messages.
    #[error("this process was ended by another one")]
    Ended,
}

impl NotWritten {
    /// The journal's task has ended.
    const TASK_ENDED: Self = Self::Trouble { is_outage: false };
}

impl Outage for NotWritten {
    fn is_outage(&self) -> bool {
        matches!(self, Self::Trouble { is_outage: true })
    }
}

/// The outcome of an opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The message is owned by this gateway.
    Here,
    /// Its idempotency key stands for another message; nothing was written.
    Twin,
    /// Its app has changed since its mailbox was chosen; nothing was written.
    Stale,
}

enum Entry {
    Open(Arc<Opening>, Option<NewKey>),
    Close(Arc<Ending>),
}

struct Waiting {
    entry: Entry,
    /// The database rejected its untrusted text, which has been removed.
    is_minimal: bool,
    answer: oneshot::Sender<Result<Opened, NotWritten>>,
}

impl Waiting {
    fn minimal(self) -> Self {
        let entry = match self.entry {
            Entry::Open(opening, key) => Entry::Open(Arc::new(minimal::opening(&opening)), key),
            Entry::Close(ending) => Entry::Close(Arc::new(minimal::ending(&ending))),
        };
        Self {
            entry,
            is_minimal: true,
            ..self
        }
    }
}

/// A handle to the journal; the task ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Journal {
    entries: mpsc::Sender<Waiting>,
    left: LeftBackends,
}

/// The journal's task.
#[derive(Debug)]
pub struct JournalTask {
    pool: PgPool,
    connection: DedicatedConnection,
    clock: SharedClock,
    lease: Lease,
    entries: mpsc::Receiver<Waiting>,
    listened: Listened,
}

/// Creates the journal of the process that holds this lease, and the task that must run for it.
#[must_use]
pub fn journal(pool: PgPool, clock: SharedClock, lease: Lease) -> (Journal, JournalTask) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let left = LeftBackends::default();
    (
        Journal {
            entries: sender,
            left: left.clone(),
        },
        JournalTask {
            pool: pool.clone(),
            connection: DedicatedConnection::one_at_a_time(pool, left),
            clock,
            lease,
            entries: receiver,
            listened: Listened::default(),
        },
    )
}

impl Journal {
    /// Records that the gateway has accepted a message, unless its idempotency key stands for another one. Returns
    /// once that is committed.
    ///
    /// # Errors
    ///
    /// [`NotWritten`]; the message must not be submitted then.
    pub async fn open(
        &self,
        opening: Arc<Opening>,
        key: Option<NewKey>,
    ) -> Result<Opened, NotWritten> {
        self.write(Entry::Open(opening, key)).await
    }

    /// Records how a message ended. Returns once that is committed.
    ///
    /// # Errors
    ///
    /// [`NotWritten`]; the message's spool row is unchanged.
    pub async fn close(&self, ending: Arc<Ending>) -> Result<(), NotWritten> {
        self.write(Entry::Close(ending)).await.map(drop)
    }

    /// Ends the transaction of a commit that timed out: then it is certain whether an entry was written.
    ///
    /// # Errors
    ///
    /// The database's error; nothing is certain then.
    pub async fn end_left(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        self.left.end(connection).await
    }

    async fn write(&self, entry: Entry) -> Result<Opened, NotWritten> {
        let (answer, written) = oneshot::channel();
        self.entries
            .send(Waiting {
                entry,
                is_minimal: false,
                answer,
            })
            .await
            .map_err(|_| NotWritten::TASK_ENDED)?;
        written.await.unwrap_or(Err(NotWritten::TASK_ENDED))
    }
}

/// The entries of one commit, by kind.
#[derive(Default)]
struct Batch<'a> {
    openings: Vec<&'a Opening>,
    keys: Vec<&'a NewKey>,
    endings: Vec<&'a Ending>,
    /// Messages whose untrusted text is removed before they end.
    stripped: Vec<LogId>,
}

impl<'a> Batch<'a> {
    fn of(waiting: &'a [Waiting]) -> Self {
        let mut batch = Self::default();
        for Waiting {
            entry, is_minimal, ..
        } in waiting
        {
            match entry {
                Entry::Open(opening, key) => {
                    batch.openings.push(opening);
                    batch.keys.extend(key);
                }
                Entry::Close(ending) => {
                    batch.endings.push(ending);
                    batch
                        .stripped
                        .extend(is_minimal.then_some(ending.closing.id));
                }
            }
        }
        batch
    }

    /// The answers to store under idempotency keys, except those of endings that were left.
    fn answers(&self, left: &HashSet<LogId>) -> Vec<(AppId, &'a str, &'a Value)> {
        (self.endings.iter())
            .filter(|ending| !left.contains(&ending.closing.id))
            .filter_map(|ending| {
                let (key, answer) = ending.answer.as_ref()?;
                Some((ending.emission.app, key.as_str(), answer))
            })
            .collect()
    }

    /// Keys to free: those of endings that say so, and of openings that weren't written.
    fn freed(&self, stale: &HashSet<LogId>) -> Vec<(AppId, &'a str, LogId)> {
        let of_endings = (self.endings.iter()).filter_map(|ending| {
            let key = ending.freed_key.as_deref()?;
            Some((ending.emission.app, key, ending.closing.id))
        });
        let of_openings = (self.keys.iter())
            .filter(|key| stale.contains(&key.log))
            .map(|key| (key.app, key.key.as_str(), key.log));
        of_endings.chain(of_openings).collect()
    }

    /// Whether the batch takes a single statement.
    fn is_plain(&self) -> bool {
        self.keys.is_empty()
            && self.stripped.is_empty()
            && (self.endings.iter())
                .all(|ending| ending.answer.is_none() && ending.freed_key.is_none())
    }

    fn closings(&self) -> Vec<&'a Closing> {
        self.endings.iter().map(|ending| &ending.closing).collect()
    }
}

/// The outcome of a committed batch.
struct Written {
    /// Openings whose keys stand for other messages.
    twins: HashSet<LogId>,
    /// Openings whose apps have changed since.
    stale: HashSet<LogId>,
    /// Endings that were left for the next batch.
    left: HashSet<LogId>,
}

impl Written {
    /// Answers the callers whose entries were written; returns the others.
    fn tell(&self, waiting: Vec<Waiting>) -> Vec<Waiting> {
        let mut left = Vec::new();
        for one in waiting {
            match self.outcome(&one.entry) {
                // A caller that is gone loses nothing: the entry is written.
                Some(outcome) => {
                    let _ = one.answer.send(Ok(outcome));
                }
                None => left.push(one),
            }
        }
        left
    }

    /// The outcome of an entry; `None` if it was not written yet.
    fn outcome(&self, entry: &Entry) -> Option<Opened> {
        match entry {
            Entry::Open(opening, _) if self.twins.contains(&opening.id) => Some(Opened::Twin),
            Entry::Open(opening, _) if self.stale.contains(&opening.id) => Some(Opened::Stale),
            Entry::Close(ending) if self.left.contains(&ending.closing.id) => None,
            _ => Some(Opened::Here),
        }
    }
}

impl JournalTask {
    /// Runs until every [`Journal`] is dropped and everything is written.
    pub async fn run(mut self) {
        let mut waiting = Vec::with_capacity(BATCH);
        while self.gather(&mut waiting).await {
            metrics::histogram!("mailgate_journal_batch_entries")
                .record(f64::from(u32::try_from(waiting.len()).unwrap_or(u32::MAX)));
            waiting = self.commit(waiting).await;
        }
    }

    /// Fills up the batch with new entries, waiting only if it is empty. `false` at the end.
    async fn gather(&mut self, waiting: &mut Vec<Waiting>) -> bool {
        if waiting.is_empty() {
            return self.entries.recv_many(waiting, BATCH).await > 0;
        }
        while waiting.len() < BATCH
            && let Ok(more) = self.entries.try_recv()
        {
            waiting.push(more);
        }
        true
    }

    /// Commits a batch. If the database rejects it, it is committed in parts, so that an entry that can't be written
    /// doesn't fail the others. Returns the entries left for the next batch.
    async fn commit(&mut self, mut waiting: Vec<Waiting>) -> Vec<Waiting> {
        let count = waiting.len();
        let mut written = self.try_commit(&waiting, false).await;
        if let Err(error) = &written
            && is_of_missing_day(error)
            && self.make_days(&waiting).await
        {
            written = self.try_commit(&waiting, true).await;
        }
        let error = match written {
            Ok(Ok(written)) => return written.tell(waiting),
            Ok(Err(HasEnded)) => return self.has_ended(waiting),
            Err(error) => error,
        };
        let is_refused = is_refusal(&error);
        if count == 1 && is_refused {
            tracing::warn!(%error, "a journal entry was rejected; it is written without the sender's texts");
            return self.commit_minimal(waiting).await;
        }
        let is_of_an_entry = matches!(error, sqlx::Error::Database(_)) && !is_passing(&error);
        if count == 1 || error.is_outage() || !is_of_an_entry {
            return not_written(waiting, &error);
        }
        tracing::warn!(%error, count, "a journal batch was rejected; it is retried in parts");
        // Bisect for the entry that was rejected: the others wait for a few statements only.
        let part = if is_refused { count.div_ceil(2) } else { 1 };
        let mut left = Vec::new();
        while !waiting.is_empty() {
            let rest = waiting.split_off(part.min(waiting.len()));
            left.extend(Box::pin(self.commit(waiting)).await);
            waiting = rest;
        }
        left
    }

    async fn commit_minimal(&mut self, waiting: Vec<Waiting>) -> Vec<Waiting> {
        let minimal: Vec<Waiting> = waiting.into_iter().map(Waiting::minimal).collect();
        match self.try_commit(&minimal, false).await {
            Ok(Ok(written)) => {
                metrics::counter!("mailgate_journal_refused_total").increment(1);
                written.tell(minimal)
            }
            Ok(Err(HasEnded)) => self.has_ended(minimal),
            Err(error) => not_written(minimal, &error),
        }
    }

    /// Reports to all callers that another process has taken over their messages.
    fn has_ended(&self, waiting: Vec<Waiting>) -> Vec<Waiting> {
        self.lease.end();
        for one in waiting {
            let _ = one.answer.send(Err(NotWritten::Ended));
        }
        Vec::new()
    }

    /// Creates the partitions of the days of a batch.
    async fn make_days(&self, waiting: &[Waiting]) -> bool {
        let logs = waiting.iter().filter_map(|waiting| match &waiting.entry {
            Entry::Open(..) => None,
            Entry::Close(ending) => Some(ending.closing.id),
        });
        missing_day::make(&self.pool, logs, self.clock.now()).await
    }

    /// Writes a batch, with a timeout: a vanished database host never answers, and all sending waits here. With
    /// `in_full`, simply sent messages use the same statement as the others, the only one that skips log rows of days
    /// that are no longer kept.
    async fn try_commit(&mut self, waiting: &[Waiting], in_full: bool) -> Fenced<Written> {
        let started = Instant::now();
        let batch = Batch::of(waiting);
        let gateway = self.lease.id();
        let times = (self.clock.now(), kept_from(&self.clock));
        let only_sent = !in_full && self.listened.is_only_sent(&batch);
        let written = timeout(
            COMMIT,
            self.connection
                .run(async |connection| write(connection, gateway, &batch, only_sent, times).await),
        )
        .await
        .unwrap_or(Err(sqlx::Error::PoolTimedOut));
        metrics::histogram!("mailgate_journal_commit_seconds").record(started.elapsed());
        if let Ok(Ok(written)) = &written {
            self.listened.learn(&batch, &written.left);
        }
        written
    }
}

/// Fails all of these entries.
fn not_written(waiting: Vec<Waiting>, error: &sqlx::Error) -> Vec<Waiting> {
    trouble!(
        error,
        error,
        count = waiting.len(),
        "the journal can't be written"
    );
    let is_outage = error.is_outage();
    for one in waiting {
        let _ = one.answer.send(Err(NotWritten::Trouble { is_outage }));
    }
    Vec::new()
}

async fn write(
    connection: &mut PgConnection,
    gateway: GatewayId,
    batch: &Batch<'_>,
    only_sent: bool,
    (now, kept_from): (DateTime<Utc>, DateTime<Utc>),
) -> Fenced<Written> {
    // A single statement needs no explicit transaction.
    if batch.is_plain() {
        let written = write_messages(connection, gateway, &batch.openings, batch, only_sent, now);
        return written.await;
    }
    let mut transaction = connection.begin().await?;
    let mut twins: HashSet<LogId> = batch.keys.iter().map(|key| key.log).collect();
    if !batch.keys.is_empty() {
        for log in idempotency_keys::claim_free(&mut transaction, &batch.keys, kept_from).await? {
            twins.remove(&log);
        }
    }
    if !batch.stripped.is_empty() {
        spool::strip(&mut transaction, &batch.stripped).await?;
    }
    let openings: Vec<&Opening> = (batch.openings.iter().copied())
        .filter(|opening| !twins.contains(&opening.id))
        .collect();
    let written = write_messages(&mut transaction, gateway, &openings, batch, only_sent, now);
    let mut written = match written.await? {
        Ok(written) => written,
        // Dropping the transaction rolls it back.
        Err(ended) => return Ok(Err(ended)),
    };
    idempotency_keys::answer(&mut transaction, &batch.answers(&written.left)).await?;
    idempotency_keys::free(&mut transaction, &batch.freed(&written.stale)).await?;
    transaction.commit().await?;
    written.twins = twins;
    Ok(Ok(written))
}

/// Writes the messages of a batch, with the given subset of its openings.
async fn write_messages(
    connection: &mut PgConnection,
    gateway: GatewayId,
    openings: &[&Opening],
    batch: &Batch<'_>,
    only_sent: bool,
    now: DateTime<Utc>,
) -> Fenced<Written> {
    let closings = batch.closings();
    let (mut opened, mut left) = (Vec::new(), HashSet::new());
    match (openings.is_empty(), closings.is_empty()) {
        (true, true) => {}
        (false, true) => match journal::open(connection, gateway, openings).await? {
            Ok(written) => opened = written,
            Err(ended) => return Ok(Err(ended)),
        },
        _ if only_sent => {
            let written = journal::write_sent(connection, gateway, openings, &closings).await?;
            let written = match written {
                Ok(written) => written,
                Err(ended) => return Ok(Err(ended)),
            };
            opened = written.opened;
            left.extend(closings.iter().map(|closing| closing.id));
            for id in written.ended {
                left.remove(&id);
            }
        }
        _ => {
            let events: Vec<NewMessage> = (batch.endings.iter())
                .map(|ending| NewMessage::of(&ending.emission, now))
                .collect();
            let written = journal::write(connection, gateway, openings, &closings, &events, now);
            match written.await? {
                Ok(written) => opened = written,
                Err(ended) => return Ok(Err(ended)),
            }
        }
    }
    let mut stale: HashSet<LogId> = openings.iter().map(|opening| opening.id).collect();
    for id in opened {
        stale.remove(&id);
    }
    Ok(Ok(Written {
        twins: HashSet::new(),
        stale,
        left,
    }))
}
