//! Sentences with dates in them, which templates mark up as such.

use chrono::{DateTime, Datelike, Utc};

use crate::page::words::Moment;

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Day(Day),
}

/// A date: machine-readable, and as shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Day {
    pub(crate) iso: String,
    pub(crate) utc: String,
    pub(crate) shown: String,
}

/// A sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sentence(pub(crate) Vec<Part>);

impl Sentence {
    /// It begins so.
    pub(crate) fn of(text: &str) -> Self {
        Self(vec![Part::Text(text.to_owned())])
    }

    /// Appends a text.
    pub(crate) fn then(mut self, text: &str) -> Self {
        self.0.push(Part::Text(text.to_owned()));
        self
    }

    /// Appends a date.
    pub(crate) fn on(mut self, day: Day) -> Self {
        self.0.push(Part::Day(day));
        self
    }

    /// As plain text.
    pub(crate) fn plain(&self) -> String {
        let texts = self.0.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Day(day) => day.shown.as_str(),
        });
        texts.collect()
    }
}

/// A date: 9 Dec; of another year 9 Dec 2027.
pub(crate) fn day(at: DateTime<Utc>, now: DateTime<Utc>) -> Day {
    let Moment { iso, utc, .. } = Moment::new(at);
    let is_far = at.year() != now.year() && (at - now).num_days().abs() > 90;
    let shown = at
        .format(if is_far { "%-d %b %Y" } else { "%-d %b" })
        .to_string();
    Day { iso, utc, shown }
}
