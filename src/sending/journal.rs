//! The journal: one task that takes all waiting openings and closings and commits them together.
//! While one commit runs the next batch gathers, so a lone message waits for one commit and a
//! thousand share it.

use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::storage::spool::{self, Closing, Opening};

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

enum Entry {
    Open(Box<Opening>),
    Close(Closing),
}

struct Waiting {
    entry: Entry,
    answer: oneshot::Sender<Result<(), NotWritten>>,
}

/// Writes entries; ends its task when the last copy of it is dropped.
#[derive(Debug, Clone)]
pub struct Journal {
    entries: mpsc::Sender<Waiting>,
}

/// The journal's task.
#[derive(Debug)]
pub struct JournalTask {
    pool: PgPool,
    entries: mpsc::Receiver<Waiting>,
}

/// A journal and the task that has to run for it.
#[must_use]
pub fn journal(pool: PgPool) -> (Journal, JournalTask) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (
        Journal { entries: sender },
        JournalTask {
            pool,
            entries: receiver,
        },
    )
}

impl Journal {
    /// Says that a message is in the gateway's hands. Returns once that is committed.
    ///
    /// # Errors
    ///
    /// [`NotWritten`]; the message must not be submitted then.
    pub async fn open(&self, opening: Opening) -> Result<(), NotWritten> {
        self.write(Entry::Open(Box::new(opening))).await
    }

    /// Says how a message ended. Returns once that is committed.
    ///
    /// # Errors
    ///
    /// [`NotWritten`]; the message's spool row stands as it did.
    pub async fn close(&self, closing: Closing) -> Result<(), NotWritten> {
        self.write(Entry::Close(closing)).await
    }

    async fn write(&self, entry: Entry) -> Result<(), NotWritten> {
        let (answer, written) = oneshot::channel();
        self.entries
            .send(Waiting { entry, answer })
            .await
            .map_err(|_| NotWritten)?;
        written.await.unwrap_or(Err(NotWritten))
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
    async fn commit(&self, entries: Vec<Entry>) -> Vec<Result<(), NotWritten>> {
        let count = entries.len();
        match self.try_commit(&entries).await {
            Ok(()) => vec![Ok(()); count],
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

    async fn try_alone(&self, entry: Entry) -> Result<(), NotWritten> {
        self.try_commit(&[entry]).await.map_err(|error| {
            tracing::error!(%error, "a journal entry can't be written");
            NotWritten
        })
    }

    /// Bounded, since a database host that has vanished never answers, and all sending waits here.
    async fn try_commit(&self, entries: &[Entry]) -> Result<(), sqlx::Error> {
        timeout(COMMIT, self.commit_now(entries))
            .await
            .unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    async fn commit_now(&self, entries: &[Entry]) -> Result<(), sqlx::Error> {
        let mut openings = Vec::new();
        let mut closings = Vec::new();
        for entry in entries {
            match entry {
                Entry::Open(opening) => openings.push(Opening::clone(opening)),
                Entry::Close(closing) => closings.push(closing.clone()),
            }
        }
        // One statement needs no transaction of its own.
        if closings.is_empty() {
            return spool::open(&mut *self.pool.acquire().await?, &openings).await;
        }
        if openings.is_empty() {
            return spool::close(&mut *self.pool.acquire().await?, &closings).await;
        }
        let mut transaction = self.pool.begin().await?;
        write_both(&mut transaction, &openings, &closings).await?;
        transaction.commit().await
    }
}

async fn write_both(
    connection: &mut PgConnection,
    openings: &[Opening],
    closings: &[Closing],
) -> Result<(), sqlx::Error> {
    spool::open(connection, openings).await?;
    spool::close(connection, closings).await
}
