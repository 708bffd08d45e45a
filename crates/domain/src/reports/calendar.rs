//! Hours, days and months in UTC, and splitting a time range into them.

use chrono::{DateTime, Datelike, Days, Months, NaiveTime, TimeDelta, Timelike, Utc};

use mailgate_storage::email_counters::{Run, Unit};
use mailgate_storage::partitions::midnight;

/// A piece of a time range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// Whole hours, days or months.
    Whole(Run),
    /// Part of one hour: start and exclusive end.
    Part(DateTime<Utc>, DateTime<Utc>),
}

/// The start of the hour, day or month that contains a moment.
pub(super) fn floor(moment: DateTime<Utc>, unit: Unit) -> DateTime<Utc> {
    let day = moment.date_naive();
    match unit {
        Unit::Hour => {
            let hour = NaiveTime::from_hms_opt(moment.hour(), 0, 0).unwrap_or_default();
            day.and_time(hour).and_utc()
        }
        Unit::Day => midnight(day),
        Unit::Month => midnight(day.with_day(1).unwrap_or(day)),
    }
}

/// The start of the hour, day or month after the one that begins at `start`.
pub(super) fn after(start: DateTime<Utc>, unit: Unit) -> DateTime<Utc> {
    let next = match unit {
        Unit::Hour => start.checked_add_signed(TimeDelta::hours(1)),
        Unit::Day => start.checked_add_days(Days::new(1)),
        Unit::Month => start.checked_add_months(Months::new(1)),
    };
    next.unwrap_or(start)
}

/// The first start of an hour, day or month at or after a moment.
fn ceiling(moment: DateTime<Utc>, unit: Unit) -> DateTime<Utc> {
    let floor = floor(moment, unit);
    if floor == moment {
        floor
    } else {
        after(floor, unit)
    }
}

/// Splits a time range into the largest possible pieces: months, then days at the ends, then hours, then parts of
/// hours. The pieces cover the range without gaps or overlaps, in no particular order.
pub(super) fn pieces(from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if from >= to {
        return pieces;
    }
    let (first, last) = (ceiling(from, Unit::Hour), floor(to, Unit::Hour));
    if first > last {
        return vec![Piece::Part(from, to)];
    }
    if from < first {
        pieces.push(Piece::Part(from, first));
    }
    if last < to {
        pieces.push(Piece::Part(last, to));
    }
    whole(first, last, Unit::Hour, &mut pieces);
    pieces
}

/// Adds the whole units from `from` to `to`, both of which start one.
fn whole(from: DateTime<Utc>, to: DateTime<Utc>, unit: Unit, pieces: &mut Vec<Piece>) {
    let mut add = |from, to| {
        if from < to {
            pieces.push(Piece::Whole(Run { unit, from, to }));
        }
    };
    let larger = match unit {
        Unit::Hour => Unit::Day,
        Unit::Day => Unit::Month,
        Unit::Month => return add(from, to),
    };
    let (first, last) = (ceiling(from, larger), floor(to, larger));
    if first >= last {
        return add(from, to);
    }
    add(from, first);
    add(last, to);
    whole(first, last, larger, pieces);
}

/// The unit that a day or a month consists of; `None` for an hour.
pub(super) fn smaller(unit: Unit) -> Option<Unit> {
    match unit {
        Unit::Hour => None,
        Unit::Day => Some(Unit::Hour),
        Unit::Month => Some(Unit::Day),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap_or_default()
    }

    fn run(unit: Unit, from: &str, to: &str) -> Piece {
        Piece::Whole(Run {
            unit,
            from: at(from),
            to: at(to),
        })
    }

    #[test]
    fn the_largest_pieces() {
        let (from, to) = (at("2026-01-30T22:30:00Z"), at("2026-04-02T01:00:00Z"));
        let mut found = pieces(from, to);
        found.sort_by_key(|piece| match piece {
            Piece::Whole(run) => run.from,
            Piece::Part(from, _) => *from,
        });
        assert_eq!(
            found,
            [
                Piece::Part(from, at("2026-01-30T23:00:00Z")),
                run(Unit::Hour, "2026-01-30T23:00:00Z", "2026-01-31T00:00:00Z"),
                run(Unit::Day, "2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z"),
                run(Unit::Month, "2026-02-01T00:00:00Z", "2026-04-01T00:00:00Z"),
                run(Unit::Day, "2026-04-01T00:00:00Z", "2026-04-02T00:00:00Z"),
                run(Unit::Hour, "2026-04-02T00:00:00Z", "2026-04-02T01:00:00Z"),
            ]
        );
        assert_eq!(pieces(to, from), []);
        let (from, to) = (at("2026-04-02T01:10:00Z"), at("2026-04-02T01:20:00Z"));
        assert_eq!(pieces(from, to), [Piece::Part(from, to)]);
    }

    proptest! {
        #[test]
        fn pieces_cover_a_stretch_without_gap(from in 0_i64..4_000_000_000_000, length in 0_i64..100_000_000_000) {
            let moment = |at: i64| DateTime::from_timestamp_millis(at).unwrap_or_default();
            let (from, to) = (moment(from), moment(from + length));
            let mut bounds: Vec<_> = pieces(from, to)
                .into_iter()
                .map(|piece| match piece {
                    Piece::Part(from, to) => {
                        assert!(floor(from, Unit::Hour) == floor(to - TimeDelta::milliseconds(1), Unit::Hour));
                        (from, to)
                    }
                    Piece::Whole(run) => {
                        assert!(floor(run.from, run.unit) == run.from);
                        assert!(floor(run.to, run.unit) == run.to);
                        (run.from, run.to)
                    }
                })
                .collect();
            bounds.sort_unstable();
            let mut reached = from;
            for (from, to) in bounds {
                prop_assert_eq!(from, reached);
                prop_assert!(to > from);
                reached = to;
            }
            prop_assert_eq!(reached, to);
        }
    }
}
