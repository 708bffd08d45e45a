//! Sentences with dates and names in them, which templates mark up as such.

use chrono::{DateTime, Datelike, Utc};

use crate::page::words::Moment;

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Day(Day),
    /// Something with a name, and its page; without a page, empty.
    Object {
        name: String,
        path: String,
    },
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
    pub(crate) fn of(text: impl Into<String>) -> Self {
        Self(vec![Part::Text(text.into())])
    }

    /// Appends a text.
    pub(crate) fn then(mut self, text: impl Into<String>) -> Self {
        self.0.push(Part::Text(text.into()));
        self
    }

    /// Appends a date.
    pub(crate) fn on(mut self, day: Day) -> Self {
        self.0.push(Part::Day(day));
        self
    }

    /// Appends a name; with a path it links to its page.
    pub(crate) fn naming(mut self, name: String, path: String) -> Self {
        self.0.push(Part::Object { name, path });
        self
    }

    /// As plain text.
    pub(crate) fn plain(&self) -> String {
        let texts = self.0.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Day(day) => day.shown.as_str(),
            Part::Object { name, .. } => name,
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
