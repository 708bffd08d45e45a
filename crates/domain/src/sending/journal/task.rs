//! The journal's task: gathers what waits, and commits it together.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::batch::Batch;
use super::listened::Listened;
use super::write::write;
use super::written::Written;
use super::{Entry, NotWritten, Waiting, missing_day};
use mailgate_storage::database::error_class::{is_of_missing_day, is_passing, is_refusal};
use mailgate_storage::database::journal::{Fenced, HasEnded};
use mailgate_storage::database::outage::{Outage as _, trouble};
use mailgate_storage::database::pool::DedicatedConnection;
use mailgate_types::clock::SharedClock;
use mailgate_types::lease::Lease;
use mailgate_types::past::kept_from;

/// Largest number of entries per commit.
const BATCH: usize = 512;

/// Timeout of a commit.
const COMMIT: Duration = Duration::from_secs(15);

/// The journal's task.
#[derive(Debug)]
pub struct JournalTask {
    pub(super) pool: PgPool,
    pub(super) connection: DedicatedConnection,
    pub(super) clock: SharedClock,
    pub(super) lease: Lease,
    pub(super) entries: mpsc::Receiver<Waiting>,
    pub(super) listened: Listened,
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
