//! All rows that match a filter, in pieces of bounded size, in the order of pages. Between two pieces no connection is
//! held, however slowly the client reads.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::filter::Filter;
use super::logs::Start;
use super::turns::{NoTurn, Turn};
use super::walk::Walk;
use super::{LogRow, Reports, Scheduled};
use mailgate_types::ids::SubscriberId;

/// Minimum and maximum rows of a piece; the target size of its strings, in bytes.
const FEWEST: usize = 50;
const MOST: usize = 1_000;
const BYTES: usize = 256 * 1024;

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// No turn is free.
    #[error("no export now: {0}")]
    NoTurn(#[from] NoTurn),
    /// The database's error.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// An export of the log in progress.
pub struct Export {
    /// `None`: nothing can match.
    walk: Option<Walk>,
    /// Rows of the next piece.
    rows: usize,
    reading: Arc<Semaphore>,
    _turn: Turn,
}

/// An export of scheduled messages in progress.
pub struct ScheduledExport {
    reports: Reports,
    subscriber: SubscriberId,
    filter: Filter,
    /// Where the next piece begins; `None` at the end.
    start: Option<Start>,
    _turn: Turn,
}

impl Reports {
    /// Begins an export: one at a time for each subscriber, and a few in all.
    pub async fn export(
        &self,
        subscriber: SubscriberId,
        filter: &Filter,
    ) -> Result<Export, ExportError> {
        let turn = self.exports.take(subscriber)?;
        Ok(Export {
            walk: self.walk(subscriber, filter, None).await?,
            rows: MOST / 4,
            reading: Arc::clone(&self.exports_reading),
            _turn: turn,
        })
    }

    /// Begins an export of scheduled messages: they share their turns with those of the log.
    pub fn export_scheduled(
        &self,
        subscriber: SubscriberId,
        filter: Filter,
    ) -> Result<ScheduledExport, ExportError> {
        Ok(ScheduledExport {
            reports: self.clone(),
            subscriber,
            filter,
            start: Some(Start::Offset(0)),
            _turn: self.exports.take(subscriber)?,
        })
    }
}

impl ScheduledExport {
    /// The next piece, which may have no messages; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<Scheduled>>, sqlx::Error> {
        let Some(start) = self.start else {
            return Ok(None);
        };
        let _reading = self.reports.exports_reading.acquire().await.ok();
        let page = (self.reports).scheduled(self.subscriber, &self.filter, MOST / 4, start);
        let page = page.await?;
        self.start = page.next.map(Start::At);
        Ok(Some(page.messages))
    }
}

impl Export {
    /// The next piece, which may have no rows; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<LogRow>>, sqlx::Error> {
        let Some(walk) = self.walk.as_mut().filter(|walk| !walk.is_done()) else {
            return Ok(None);
        };
        // Fails only once the semaphore is closed, which it never is.
        let reading = self.reading.acquire().await.ok();
        let rows = walk.step(self.rows).await?;
        drop(reading);
        let bytes: usize = rows.iter().map(length).sum();
        if let Some(each) = bytes.checked_div(rows.len()) {
            // At most twice as many as the last time, since the next ones may be longer.
            let fitting = BYTES / each.max(1);
            self.rows = fitting.clamp(FEWEST, (self.rows * 2).min(MOST));
        }
        Ok(Some(rows))
    }
}

/// The size of a row's strings, in bytes.
fn length(row: &LogRow) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    row.to_address.len()
        + row.from_address.len()
        + row.subject.len()
        + row.app_name.len()
        + optional(&row.error_message)
        + optional(&row.message_id)
}
