//! A page of the log: the rows that match a filter, newest first, with their exact number.

use chrono::{DateTime, Months, Utc};

use super::calendar::{after, floor};
use super::filter::Filter;
use super::page_range::PageRange;
use super::tally::Tally;
use super::{LogRow, Reports, scope};
use crate::storage::email_counters::Unit;
use crate::storage::email_logs;
use crate::storage::log_retention;
use mailgate_types::ids::SubscriberId;

/// A page of the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPage {
    /// The page's rows, newest first.
    pub logs: Vec<LogRow>,
    /// The number of rows that match the filter.
    pub total: i64,
    /// Whether there are older ones than those of this page.
    pub has_more: bool,
}

impl Reports {
    /// A page of the subscriber's log: up to `limit` rows, without the newest `offset`.
    pub async fn logs(
        &self,
        subscriber: SubscriberId,
        filter: &Filter,
        limit: i64,
        offset: i64,
    ) -> Result<LogPage, sqlx::Error> {
        let mut snapshot = self.snapshot().await?;
        let Some(scope) = scope(&mut snapshot, subscriber, filter.app.as_ref()).await? else {
            return Ok(LogPage::default());
        };
        let kept_since = log_retention::kept_since(&mut snapshot).await?;
        let (from, to) = self.stretch(filter, kept_since);
        let mut tally = Tally::open(&mut snapshot, scope).await?;
        let counted = tally.stretch(from, to).await?;
        let total = counted.iter().map(|it| filter.count(&it.counts)).sum();
        let range = PageRange::locate(&mut tally, counted, filter, limit, offset).await?;
        let logs = match range {
            Some(range) => {
                let window = tally.scope.window(range.from, range.to);
                let (kinds, skip) = (&range.kinds, range.skip);
                let connection = &mut *tally.connection;
                let ids = email_logs::find(connection, window, kinds, skip, limit).await?;
                email_logs::list(connection, subscriber, &ids).await?
            }
            None => Vec::new(),
        };
        snapshot.commit().await?;
        let shown = i64::try_from(logs.len()).unwrap_or(i64::MAX);
        Ok(LogPage {
            has_more: offset.saturating_add(shown) < total && shown > 0,
            logs,
            total,
        })
    }

    /// The time range of a filter, clipped to the log: back to its oldest day, and ahead to where no row can be,
    /// since partitions are created a month ahead.
    fn stretch(
        &self,
        filter: &Filter,
        kept_since: DateTime<Utc>,
    ) -> (DateTime<Utc>, DateTime<Utc>) {
        let now = self.clock.now();
        let ahead = now.checked_add_months(Months::new(2)).unwrap_or(now);
        let end = after(floor(ahead, Unit::Month), Unit::Month);
        let from = filter.from.map_or(kept_since, |from| from.max(kept_since));
        (from, filter.before.map_or(end, |before| before.min(end)))
    }
}
