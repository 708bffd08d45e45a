//! Locates a page of the log: by the counters to the hour, then narrowed down by counting.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::filter::Filter;
use super::tally::{Counted, Tally};
use mailgate_storage::email_counters::{Counts, Unit};
use mailgate_storage::email_logs::Kind;
use mailgate_types::ids::moment_of;

/// Rows that may be sorted and skipped without narrowing further, and the largest number of narrowing steps.
const NEAR: i64 = 200;
const GUESSES: usize = 4;

/// The range that contains a page.
pub(super) struct PageRange {
    /// The start of the range.
    pub(super) from: DateTime<Utc>,
    /// The end, exclusive.
    pub(super) to: DateTime<Utc>,
    /// Newer rows in the range that belong to earlier pages.
    pub(super) skip: i64,
    /// The kinds of rows to search.
    pub(super) kinds: Vec<Kind>,
    /// Only those that have bounced, or only the others.
    pub(super) bounced: Option<bool>,
}

/// The piece that contains the row with `nth` newer ones, and the number of rows in the pieces before it.
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

/// The counted kinds of rows that match a filter.
fn counted_kinds(filter: &Filter, counts: &Counts) -> Vec<Kind> {
    let has_rows = |(plugin, status): &Kind| {
        let of_kind = Filter {
            plugin: Some(*plugin),
            status: Some(*status),
            bounced: filter.bounced,
            ..Filter::default()
        };
        of_kind.count(counts) > 0
    };
    filter.kinds().into_iter().filter(has_rows).collect()
}

impl PageRange {
    /// Locates the page by counters alone, to the hour in which it begins. `None` past the last row.
    pub(super) async fn locate(
        tally: &mut Tally<'_>,
        mut counted: Vec<Counted>,
        filter: &Filter,
        limit: i64,
        offset: i64,
    ) -> Result<Option<Self>, sqlx::Error> {
        let (first, before) = loop {
            let Some((index, before)) = piece_of(&counted, filter, offset) else {
                return Ok(None);
            };
            match tally.split(&counted[index]).await? {
                Some(smaller) => drop(counted.splice(index..=index, smaller)),
                None => break (index, before),
            }
        };
        // The end matters less, since a page is read from its beginning: a day is precise enough to open no more
        // partitions than necessary.
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
        let kinds = counted_kinds(filter, &counts);
        let range = Self {
            from: counted[last].from,
            to: counted[first].to,
            skip: offset - before,
            kinds,
            bounced: filter.bounced,
        };
        let piece = counted[first];
        let rows = filter.count(&piece.counts);
        range.narrowed(tally, &piece, rows).await.map(Some)
    }

    /// Locates the page after a row by counters alone, to the day in which it may end. `None` past the last row.
    pub(super) async fn behind(
        tally: &mut Tally<'_>,
        mut counted: Vec<Counted>,
        filter: &Filter,
        limit: i64,
        row: Uuid,
    ) -> Result<Option<Self>, sqlx::Error> {
        let moment = moment_of(row);
        // In the row's own hour, it isn't known which rows are older.
        let first = loop {
            let Some(index) = counted.iter().position(|piece| piece.from <= moment) else {
                return Ok(None);
            };
            let has_row = counted[index].to > moment;
            match tally.split(&counted[index]).await? {
                Some(smaller) if has_row => drop(counted.splice(index..=index, smaller)),
                _ => break index,
            }
        };
        let last = loop {
            let (mut last, mut rows) = (first, 0);
            for (index, piece) in counted.iter().enumerate().skip(first) {
                last = index;
                let is_older = piece.to <= moment;
                rows += if is_older {
                    filter.count(&piece.counts)
                } else {
                    0
                };
                if rows >= limit {
                    break;
                }
            }
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
        let kinds = counted_kinds(filter, &counts);
        Ok(Some(Self {
            from: counted[last].from,
            to: counted[first].to,
            skip: 0,
            kinds,
            bounced: filter.bounced,
        }))
    }

    /// Moves the end of the range close to its page: counting rows costs a fraction of sorting and skipping them.
    /// Guesses as if the hour's rows were spread evenly, and counts on the side that has fewer.
    async fn narrowed(
        self,
        tally: &mut Tally<'_>,
        piece: &Counted,
        rows: i64,
    ) -> Result<Self, sqlx::Error> {
        // Times, and the number of rows of the piece at or after them.
        let (mut newer, mut older) = ((piece.to, 0), (piece.from, rows));
        for _ in 0..GUESSES {
            if self.skip - newer.1 <= NEAR {
                break;
            }
            let (aim, between) = (self.skip - newer.1 - NEAR / 2, older.1 - newer.1);
            let length = (newer.0 - older.0).num_milliseconds();
            let back = length.saturating_mul(aim) / between.max(1);
            if back <= 0 || back >= length {
                break;
            }
            let at = newer.0 - TimeDelta::milliseconds(back);
            let counted = if aim * 2 <= between {
                newer.1 + tally.count(at, newer.0, &self.kinds, self.bounced).await?
            } else {
                older.1 - tally.count(older.0, at, &self.kinds, self.bounced).await?
            };
            if counted <= self.skip {
                newer = (at, counted);
            } else {
                older = (at, counted);
            }
        }
        Ok(Self {
            to: newer.0,
            skip: self.skip - newer.1,
            ..self
        })
    }
}
