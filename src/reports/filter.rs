//! Selects rows of the log.

use chrono::{DateTime, Utc};

use super::AppReference;
use crate::storage::email_counters::Counts;
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// Selects rows. Times are whole milliseconds, as those of rows are.
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
    pub(super) fn count(&self, counts: &Counts) -> i64 {
        counts.sum(self.plugin, self.status)
    }
}
