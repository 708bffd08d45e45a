//! A page of the log: the rows that match a filter, newest first; with their exact number, unless there are search
//! criteria.

use std::time::Duration;

use chrono::{DateTime, Months, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::calendar::{after, floor};
use super::filter::Filter;
use super::page_range::PageRange;
use super::tally::Tally;
use super::{LogRow, Reports, scope};
use mailgate_storage::bounced_messages;
use mailgate_storage::email_counters::Unit;
use mailgate_storage::email_logs;
use mailgate_storage::log_retention;
use mailgate_types::ids::{LogId, SubscriberId, lowest_uuid_at, moment_of};

/// How long the database may take for a search, and how long without a turn.
const SEARCH: Duration = Duration::from_secs(2);
const WITHOUT_TURN: Duration = Duration::from_millis(100);

/// Rows of one step of a search.
const STEP: usize = 1_000;

/// A page of the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPage {
    /// The page's rows, newest first.
    pub logs: Vec<LogRow>,
    /// The number of rows that match the filter; `None` for a search.
    pub total: Option<i64>,
    /// Whether there are, or may be, older ones than this page's.
    pub has_more: bool,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Position>,
    /// The search stopped at this time, inclusive; `None` if the page is complete.
    pub searched_until: Option<DateTime<Utc>>,
}

/// Where a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// After this id, in the order of the page.
    older_than: Uuid,
    /// And after this many more rows: a search that hasn't reached its offset yet.
    skip: i64,
    /// How far back a search may look in one step, if more has taken too long.
    window_seconds: Option<i64>,
}

impl Position {
    pub(super) fn behind(row: LogId) -> Self {
        Self {
            older_than: row.0,
            skip: 0,
            window_seconds: None,
        }
    }

    /// The row before the page.
    pub(super) fn row(self) -> LogId {
        LogId(self.older_than)
    }
}

/// Where a page begins, as the caller gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// After this many of the newest rows.
    Offset(i64),
    /// Where the previous page ended.
    At(Position),
}

impl Reports {
    /// A page of the subscriber's log of up to `limit` rows.
    pub async fn logs(
        &self,
        subscriber: SubscriberId,
        filter: &Filter,
        limit: usize,
        start: Start,
    ) -> Result<LogPage, sqlx::Error> {
        if filter.search.is_empty() {
            self.counted_page(subscriber, filter, limit, start).await
        } else {
            self.searched_page(subscriber, filter, limit, start).await
        }
    }

    async fn counted_page(
        &self,
        subscriber: SubscriberId,
        filter: &Filter,
        limit: usize,
        start: Start,
    ) -> Result<LogPage, sqlx::Error> {
        let nothing = LogPage {
            total: Some(0),
            ..LogPage::default()
        };
        let mut snapshot = self.snapshot().await?;
        let Some(scope) = scope(&mut snapshot, subscriber, filter.app.as_ref()).await? else {
            return Ok(nothing);
        };
        let kept_since = log_retention::kept_since(&mut snapshot).await?;
        let (from, to) = self.stretch(filter, kept_since);
        let mut tally = Tally::open(&mut snapshot, scope).await?;
        let counted = tally.stretch(from, to, filter.bounced.is_some()).await?;
        let total = counted.iter().map(|it| filter.count(&it.counts)).sum();
        // One more than is shown, to find out whether there are older ones.
        let wanted = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let (range, older_than) = match start {
            Start::Offset(offset) => {
                let range = PageRange::locate(&mut tally, counted, filter, wanted, offset);
                (range.await?, None)
            }
            Start::At(Position { older_than, .. }) => {
                let range = PageRange::behind(&mut tally, counted, filter, wanted, older_than);
                (range.await?, Some(older_than))
            }
        };
        let mut logs = Vec::new();
        if let Some(range) = range {
            let mut window = tally.scope.window(range.from, range.to);
            window.older_than = older_than.map(LogId);
            let (kinds, skip) = (&range.kinds, range.skip);
            let connection = &mut *tally.connection;
            let ids = match range.bounced {
                None => email_logs::find(connection, window, kinds, skip, wanted).await?,
                Some(true) => {
                    bounced_messages::find(connection, window, kinds, skip, wanted).await?
                }
                Some(false) => {
                    bounced_messages::find_others(connection, window, kinds, skip, wanted).await?
                }
            };
            logs = email_logs::list(connection, subscriber, &ids).await?;
        }
        snapshot.commit().await?;
        Ok(LogPage {
            total: Some(total),
            ..whole(logs, limit)
        })
    }

    /// Searches until the page is full, the log has ended, or the time is over.
    async fn searched_page(
        &self,
        subscriber: SubscriberId,
        filter: &Filter,
        limit: usize,
        start: Start,
    ) -> Result<LogPage, sqlx::Error> {
        let (position, skip, window) = match start {
            Start::Offset(offset) => (None, offset, None),
            Start::At(at) => (Some(at.older_than), at.skip, at.window_seconds),
        };
        let mut skip = usize::try_from(skip).unwrap_or_default();
        let Some(mut walk) = self.walk(subscriber, filter, position).await? else {
            return Ok(LogPage::default());
        };
        walk.narrow(window.map(TimeDelta::seconds));
        let mut turn = None;
        let mut logs: Vec<LogRow> = Vec::new();
        loop {
            let missing = limit + 1 - logs.len();
            let rows = walk.step(missing.saturating_add(skip).min(STEP)).await?;
            let skipped = rows.len().min(skip);
            skip -= skipped;
            logs.extend(rows.into_iter().skip(skipped));
            if logs.len() > limit || walk.is_done() {
                return Ok(whole(logs, limit));
            }
            if turn.is_none() && walk.spent() > WITHOUT_TURN {
                turn = self.searches.take(subscriber).ok();
            }
            let allowed = if turn.is_some() { SEARCH } else { WITHOUT_TURN };
            if walk.spent() > allowed {
                break;
            }
        }
        let older_than = walk.position();
        let skip = i64::try_from(skip).unwrap_or(i64::MAX);
        Ok(LogPage {
            logs,
            total: None,
            has_more: true,
            next: Some(Position {
                older_than,
                skip,
                window_seconds: walk.window().map(|window| window.num_seconds()),
            }),
            // If nothing was searched yet, it is in the future.
            searched_until: Some(searched_until(older_than).min(self.clock.now())),
        })
    }

    /// The time range of a filter, clipped to the log: back to its oldest day, and ahead to where no row can be,
    /// since partitions are created a month ahead.
    pub(super) fn stretch(
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

/// A page with up to `limit` of the rows found.
fn whole(mut logs: Vec<LogRow>, limit: usize) -> LogPage {
    let has_more = logs.len() > limit;
    logs.truncate(limit);
    LogPage {
        has_more,
        next: (logs.last().filter(|_| has_more)).map(|row| Position::behind(row.id)),
        logs,
        total: None,
        searched_until: None,
    }
}

/// All rows from this time on have been searched.
fn searched_until(position: Uuid) -> DateTime<Utc> {
    let moment = moment_of(position);
    if lowest_uuid_at(moment) == position {
        moment
    } else {
        moment + TimeDelta::milliseconds(1)
    }
}
