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
    /// Only those that have bounced for good, or only the others.
    pub bounced: Option<bool>,
    /// From this moment on.
    pub from: Option<DateTime<Utc>>,
    /// Before this moment.
    pub before: Option<DateTime<Utc>>,
}

impl Filter {
    pub(super) fn count(&self, counts: &Counts) -> i64 {
        let all = counts.sum(self.plugin, self.status);
        // Only sent messages bounce.
        let may_bounce = self.status.is_none_or(|status| status == LogStatus::Sent);
        let bounced = if may_bounce {
            counts.bounced(self.plugin)
        } else {
            0
        };
        match self.bounced {
            None => all,
            Some(true) => bounced,
            Some(false) => all - bounced,
        }
    }
}
