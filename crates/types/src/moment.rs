//! Times in the format of the gateway's JSON.

use chrono::{DateTime, SecondsFormat, Utc};

/// ISO 8601 in UTC with milliseconds.
#[must_use]
pub fn iso8601(moment: DateTime<Utc>) -> String {
    moment.to_rfc3339_opts(SecondsFormat::Millis, true)
}
