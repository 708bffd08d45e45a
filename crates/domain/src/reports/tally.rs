//! Counts an owner's messages: the counters, and the changes that are not folded yet.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::Scope;
use super::calendar::{Piece, after, floor, pieces, smaller};
use mailgate_storage::bounced_messages;
use mailgate_storage::email_counters::{self, CountedFrom, Counts, Run, Unit};
use mailgate_storage::email_logs::{self, Kind};
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// A piece of time, with the messages first attempted in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    /// `None`: part of an hour.
    pub(super) unit: Option<Unit>,
    pub(super) from: DateTime<Utc>,
    /// The end, exclusive.
    pub(super) to: DateTime<Utc>,
    pub(super) counts: Counts,
}

/// Reads an owner's counters in one snapshot.
pub(super) struct Tally<'a> {
    pub(super) connection: &'a mut PgConnection,
    pub(super) scope: Scope,
    pending: Vec<CountedFrom>,
}

/// All kinds of rows.
fn kinds() -> impl Iterator<Item = Kind> {
    Plugin::ALL
        .into_iter()
        .flat_map(|plugin| LogStatus::ALL.map(|status| (plugin, status)))
}

impl<'a> Tally<'a> {
    pub(super) async fn open(
        connection: &'a mut PgConnection,
        scope: Scope,
    ) -> Result<Self, sqlx::Error> {
        let pending = email_counters::pending(connection, scope.owner).await?;
        Ok(Self {
            connection,
            scope,
            pending,
        })
    }

    /// The hours, days and months of these runs that have messages, in no particular order.
    pub(super) async fn whole(&mut self, runs: &[Run]) -> Result<Vec<Counted>, sqlx::Error> {
        let rows = email_counters::counted(self.connection, self.scope.owner, runs).await?;
        let mut counted: Vec<Counted> = rows
            .into_iter()
            .map(|(unit, (from, counts))| Counted {
                unit: Some(unit),
                from,
                to: after(from, unit),
                counts,
            })
            .collect();
        for (hour, counts) in &self.pending {
            for run in runs
                .iter()
                .filter(|run| run.from <= *hour && *hour < run.to)
            {
                let from = floor(*hour, run.unit);
                let place = counted
                    .iter_mut()
                    .find(|it| it.unit == Some(run.unit) && it.from == from);
                match place {
                    Some(there) => there.counts.add_all(counts),
                    None => counted.push(Counted {
                        unit: Some(run.unit),
                        from,
                        to: after(from, run.unit),
                        counts: *counts,
                    }),
                }
            }
        }
        Ok(counted)
    }

    /// The pieces of a time range that have messages, newest first. Parts of hours are counted in the log, with bounced
    /// messages if requested.
    pub(super) async fn stretch(
        &mut self,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        with_bounced: bool,
    ) -> Result<Vec<Counted>, sqlx::Error> {
        let (mut runs, mut counted) = (Vec::new(), Vec::new());
        for piece in pieces(from, to) {
            match piece {
                Piece::Whole(run) => runs.push(run),
                Piece::Part(from, to) => counted.push(self.part(from, to, with_bounced).await?),
            }
        }
        counted.extend(self.whole(&runs).await?);
        counted.sort_unstable_by_key(|it| std::cmp::Reverse(it.from));
        Ok(counted)
    }

    async fn part(
        &mut self,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        with_bounced: bool,
    ) -> Result<Counted, sqlx::Error> {
        let kinds: Vec<Kind> = kinds().collect();
        let window = self.scope.window(from, to);
        let found = email_logs::count(self.connection, window, &kinds).await?;
        let mut counts = Counts::default();
        for ((plugin, status), messages) in kinds.into_iter().zip(found) {
            counts.add(plugin, status, messages);
        }
        if with_bounced {
            for plugin in Plugin::ALL {
                let kind = [(plugin, LogStatus::Sent)];
                let bounced = bounced_messages::count(self.connection, window, &kind).await?;
                counts.add_bounced(plugin, bounced);
            }
        }
        Ok(Counted {
            unit: None,
            from,
            to,
            counts,
        })
    }

    /// The number of rows of some kinds in a time range, counted in the log; with `bounced`, only of those that have
    /// bounced, or of the others.
    pub(super) async fn count(
        &mut self,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        kinds: &[Kind],
        bounced: Option<bool>,
    ) -> Result<i64, sqlx::Error> {
        let window = self.scope.window(from, to);
        if bounced == Some(true) {
            return bounced_messages::count(self.connection, window, kinds).await;
        }
        let found = email_logs::count(self.connection, window, kinds).await?;
        let all: i64 = found.into_iter().sum();
        match bounced {
            Some(false) => Ok(all - bounced_messages::count(self.connection, window, kinds).await?),
            _ => Ok(all),
        }
    }

    /// The smaller pieces of a day or a month, newest first; `None` if there are none.
    pub(super) async fn split(
        &mut self,
        piece: &Counted,
    ) -> Result<Option<Vec<Counted>>, sqlx::Error> {
        let Some(unit) = piece.unit.and_then(smaller) else {
            return Ok(None);
        };
        let run = Run {
            unit,
            from: piece.from,
            to: piece.to,
        };
        let mut counted = self.whole(&[run]).await?;
        counted.sort_unstable_by_key(|it| std::cmp::Reverse(it.from));
        Ok(Some(counted))
    }
}
