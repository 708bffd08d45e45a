//! A page of the log: the rows that a filter lets through, the newest first, with their exact number.

use chrono::{DateTime, Months, TimeDelta, Utc};

use super::calendar::{after, floor};
use super::tally::{Counted, Tally};
use super::{AppReference, LogRow, Reports, scope};
use crate::storage::email_counters::{Counts, Unit};
use crate::storage::email_logs::{self, Kind};
use crate::storage::log_retention;
use mailgate_types::ids::SubscriberId;
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// Rows that are sorted to be skipped without a further look, and how often a better place is guessed.
const NEAR: i64 = 200;
const GUESSES: usize = 4;

/// Which rows are wanted. Moments are whole milliseconds, as those of rows are.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of one app.
    pub app: Option<AppReference>,
    /// Of one status.
    pub status: Option<LogStatus>,
    /// Of one provider.
    pub plugin: Option<Plugin>,
    /// From this moment on.
    pub from: Option<DateTime<Utc>>,
    /// Before this moment.
    pub before: Option<DateTime<Utc>>,
}

impl Filter {
    fn count(&self, counts: &Counts) -> i64 {
        counts.sum(self.plugin, self.status)
    }
}

/// A page of the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPage {
    /// The page's rows, the newest first.
    pub logs: Vec<LogRow>,
    /// All rows that the filter lets through.
    pub total: i64,
    /// Whether there are older ones than those of this page.
    pub has_more: bool,
}

/// Where a page lies.
struct PageRange {
    /// The first moment that rows are looked for.
    from: DateTime<Utc>,
    /// The moment after the last.
    to: DateTime<Utc>,
    /// Newer rows in there that belong to pages before.
    skip: i64,
    /// What kinds of rows there are.
    kinds: Vec<Kind>,
}

impl Reports {
    /// A page of the subscriber's log: `limit` rows at most, but for the newest `offset` ones.
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
        let place = locate(&mut tally, counted, filter, limit, offset).await?;
        let logs = match place {
            Some(place) => {
                let window = tally.scope.window(place.from, place.to);
                let (kinds, skip) = (&place.kinds, place.skip);
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

    /// The time that a filter speaks of, as far as the log goes: back to its oldest day, and ahead to
    /// where no row can be, since partitions are made two weeks ahead.
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

/// Which piece the row is in that has `nth` newer ones, and how many rows the pieces before it have.
fn piece_of(counted: &[Counted], filter: &Filter, nth: i64) -> Option<(usize, i64)> {
    let mut before = 0;
    for (index, piece) in counted.iter().enumerate() {
        let here = filter.count(&piece.counts);
        if nth < before + here {
            return Some((index, before));
        }
        before += here;
    }
    None
}

/// Finds the page by counters alone, to the hour in which it begins. `None` behind the last row.
async fn locate(
    tally: &mut Tally<'_>,
    mut counted: Vec<Counted>,
    filter: &Filter,
    limit: i64,
    offset: i64,
) -> Result<Option<PageRange>, sqlx::Error> {
    let (first, before) = loop {
        let Some((index, before)) = piece_of(&counted, filter, offset) else {
            return Ok(None);
        };
        match tally.split(&counted[index]).await? {
            Some(smaller) => drop(counted.splice(index..=index, smaller)),
            None => break (index, before),
        }
    };
    // Its end matters less, since a page is read from its beginning: to the day, so that no more
    // partitions are opened than have to be.
    let last = loop {
        let end = piece_of(&counted, filter, offset.saturating_add(limit - 1));
        let last = end.map_or(counted.len() - 1, |(index, _)| index);
        if counted[last].unit != Some(Unit::Month) {
            break last;
        }
        if let Some(smaller) = tally.split(&counted[last]).await? {
            counted.splice(last..=last, smaller);
        }
    };
    let mut counts = Counts::default();
    for piece in &counted[first..=last] {
        counts.add_all(&piece.counts);
    }
    let kinds = Plugin::ALL
        .into_iter()
        .filter(|plugin| filter.plugin.is_none_or(|it| it == *plugin))
        .flat_map(|plugin| LogStatus::ALL.map(|status| (plugin, status)))
        .filter(|(_, status)| filter.status.is_none_or(|it| it == *status))
        .filter(|(plugin, status)| counts.get(*plugin, *status) > 0)
        .collect();
    let place = PageRange {
        from: counted[last].from,
        to: counted[first].to,
        skip: offset - before,
        kinds,
    };
    let piece = counted[first];
    narrow(tally, &piece, filter.count(&piece.counts), place)
        .await
        .map(Some)
}

/// Moves the end of a place close to its page: rows that are only counted cost a fraction of those that
/// are sorted to be skipped. Guesses as though the rows of the hour lay evenly, and counts on the side
/// that has fewer.
async fn narrow(
    tally: &mut Tally<'_>,
    piece: &Counted,
    rows: i64,
    place: PageRange,
) -> Result<PageRange, sqlx::Error> {
    // Moments, and how many rows of the piece are at or behind them.
    let (mut newer, mut older) = ((piece.to, 0), (piece.from, rows));
    for _ in 0..GUESSES {
        if place.skip - newer.1 <= NEAR {
            break;
        }
        let (aim, between) = (place.skip - newer.1 - NEAR / 2, older.1 - newer.1);
        let length = (newer.0 - older.0).num_milliseconds();
        let back = length.saturating_mul(aim) / between.max(1);
        if back <= 0 || back >= length {
            break;
        }
        let at = newer.0 - TimeDelta::milliseconds(back);
        let counted = if aim * 2 <= between {
            newer.1 + tally.count(at, newer.0, &place.kinds).await?
        } else {
            older.1 - tally.count(older.0, at, &place.kinds).await?
        };
        if counted <= place.skip {
            newer = (at, counted);
        } else {
            older = (at, counted);
        }
    }
    Ok(PageRange {
        to: newer.0,
        skip: place.skip - newer.1,
        ..place
    })
}
