//! The journal: one task that collects all waiting openings and endings and commits them together, with the log rows,
//! counters, idempotency keys and webhooks that belong to them. While one commit runs the next batch gathers, so a lone
//! message waits for one commit and a thousand share it. An entry that the database permanently rejects is written
//! without its untrusted text.

mod batch;
pub(crate) mod ending;
pub(crate) mod in_flight;
mod listened;
pub(crate) mod minimal;
pub(crate) mod missing_day;
mod task;
mod write;
mod written;

use std::sync::Arc;

use sqlx::{PgConnection, PgPool};
use tokio::sync::{mpsc, oneshot};

use ending::Ending;
use listened::Listened;
use mailgate_storage::database::left_backends::LeftBackends;
use mailgate_storage::database::outage::Outage;
use mailgate_storage::database::pool::DedicatedConnection;
use mailgate_storage::idempotency_keys::NewKey;
use mailgate_storage::spool::Opening;
use mailgate_types::clock::SharedClock;
use mailgate_types::lease::Lease;
pub use task::JournalTask;

/// Entries that may wait; beyond that, callers wait for a place.
const WAITING: usize = 4_096;

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
