//! Reads typed values from the merged settings, and collects their problems, each with the setting's name.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use toml::{Table, Value};

use super::Problem;
use mailgate_types::trusted_peers::TrustedPeers;

/// Reads one section, or the top level.
pub(super) struct Reader<'a> {
    settings: &'a Table,
    problems: Vec<Problem>,
    /// The names read, so that a test can detect unused settings.
    #[cfg(test)]
    pub(super) asked: std::collections::BTreeSet<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(settings: &'a Table) -> Self {
        Self {
            settings,
            problems: Vec::new(),
            #[cfg(test)]
            asked: std::collections::BTreeSet::new(),
        }
    }

    /// The merged settings.
    pub(super) const fn table(&self) -> &'a Table {
        self.settings
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    pub(super) fn problem(&mut self, name: &str, text: impl Into<String>) {
        self.problems.push(Problem::new(name, text));
    }

    /// The defaults define every setting, so a missing one is a bug; it is reported anyway.
    fn value(&mut self, name: &str) -> Option<&'a Value> {
        #[cfg(test)]
        self.asked.insert(name.to_owned());
        let mut keys = name.split('.');
        let first = keys.next().and_then(|key| self.settings.get(key));
        let found = keys.fold(first, |value, key| value?.as_table()?.get(key));
        if found.is_none() {
            self.problem(name, "is not a setting");
        }
        found
    }

    pub(super) fn text(&mut self, name: &str) -> String {
        self.value(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    }

    /// The beginning of a day (UTC); `None` if it is empty.
    pub(super) fn date(&mut self, name: &str) -> Option<DateTime<Utc>> {
        let text = self.text(name);
        if text.is_empty() {
            return None;
        }
        let date = NaiveDate::parse_from_str(&text, "%Y-%m-%d");
        if date.is_err() {
            self.problem(name, "isn't a date such as 2027-01-31");
        }
        Some(date.ok()?.and_time(NaiveTime::MIN).and_utc())
    }

    /// A string that must not be empty.
    pub(super) fn required(&mut self, name: &str, how: &str) -> String {
        let text = self.text(name);
        if text.is_empty() {
            self.problem(name, format!("is required: {how}"));
        }
        text
    }

    pub(super) fn path(&mut self, name: &str) -> Option<PathBuf> {
        let text = self.text(name);
        (!text.is_empty()).then(|| PathBuf::from(text))
    }

    pub(super) fn flag(&mut self, name: &str) -> bool {
        self.value(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// One of several choices.
    pub(super) fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text(name);
        let chosen = choices.iter().find(|(word, _)| *word == text);
        if chosen.is_none() {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            self.problem(name, format!("must be {}", words.join(" or ")));
        }
        chosen.map(|(_, choice)| *choice)
    }

    /// A whole number within `smallest..=largest`.
    pub(super) fn number<T>(&mut self, name: &str, smallest: T, largest: T) -> T
    where
        T: TryFrom<i64> + PartialOrd + Copy + std::fmt::Display,
    {
        let number = self
            .value(name)
            .and_then(Value::as_integer)
            .and_then(|number| T::try_from(number).ok())
            .filter(|number| (smallest..=largest).contains(number));
        number.unwrap_or_else(|| {
            self.problem(name, format!("must be between {smallest} and {largest}"));
            smallest
        })
    }

    /// A number of seconds, at most a day.
    pub(super) fn seconds(&mut self, name: &str) -> Duration {
        Duration::from_secs(self.number(name, 1, 86_400))
    }

    pub(super) fn texts(&mut self, name: &str) -> Vec<String> {
        let items = self.value(name).and_then(Value::as_array);
        let texts: Option<Vec<String>> = items
            .into_iter()
            .flatten()
            .map(|item| item.as_str().map(str::to_owned))
            .collect();
        texts.unwrap_or_else(|| {
            self.problem(name, "must be a list of strings");
            Vec::new()
        })
    }

    /// A list of addresses and networks.
    pub(super) fn trusted_peers(&mut self, name: &str) -> TrustedPeers {
        let texts = self.texts(name);
        TrustedPeers::parse(texts.iter().map(String::as_str)).unwrap_or_else(|error| {
            self.problem(name, error.to_string());
            TrustedPeers::default()
        })
    }

    /// A list of numbers of seconds, each at most 30 days.
    pub(super) fn list_of_seconds(&mut self, name: &str) -> Vec<Duration> {
        let items = self.value(name).and_then(Value::as_array);
        let list: Option<Vec<Duration>> = items
            .into_iter()
            .flatten()
            .map(|item| {
                item.as_integer()
                    .and_then(|seconds| u64::try_from(seconds).ok())
                    .filter(|seconds| (1..=30 * 86_400).contains(seconds))
                    .map(Duration::from_secs)
            })
            .collect();
        list.unwrap_or_else(|| {
            self.problem(
                name,
                "must be a list of seconds, each between 1 and 2592000",
            );
            Vec::new()
        })
    }

    /// `host:port` to listen on, required.
    pub(super) fn required_listen_address(&mut self, name: &str) -> Option<SocketAddr> {
        self.required(name, "an address and a port");
        self.listen_address(name)
    }

    /// `host:port` to listen on; `None` if it is empty.
    pub(super) fn listen_address(&mut self, name: &str) -> Option<SocketAddr> {
        let text = self.text(name);
        if text.is_empty() {
            return None;
        }
        let address = text.to_socket_addrs().ok().and_then(|mut all| all.next());
        if address.is_none() {
            self.problem(
                name,
                format!("must be an address and a port, such as [::]:8080, not {text:?}"),
            );
        }
        address
    }

    /// An `http` or `https` URL without a trailing slash; empty if the setting is.
    pub(super) fn url(&mut self, name: &str) -> String {
        let text = self.text(name);
        let text = text.trim_end_matches('/').to_owned();
        let is_http = |url: url::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        if !text.is_empty() && !url::Url::parse(&text).is_ok_and(is_http) {
            self.problem(name, "must be an http:// or https:// address");
        }
        text
    }
}
