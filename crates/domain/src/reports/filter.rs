//! Selects rows of the log.

use chrono::{DateTime, Utc};

use super::AppReference;
use mailgate_storage::email_counters::Counts;
use mailgate_storage::email_logs::Kind;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::{CredentialId, LogId};
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
    /// Only those that have bounced permanently, or only the others.
    pub bounced: Option<bool>,
    /// From this time on.
    pub from: Option<DateTime<Utc>>,
    /// Before this time.
    pub before: Option<DateTime<Utc>>,
    /// Further search criteria, for which there are no counters.
    pub search: Search,
}

/// The search criteria.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// An address in To, Cc or Bcc.
    pub recipient: Option<EmailAddress>,
    /// A Message-ID, with or without angle brackets.
    pub message_id: Option<String>,
    /// The message itself.
    pub log: Option<LogId>,
    /// The end user whose mailbox has sent it: the user's key, or else the app's own name for the user.
    pub user: Option<String>,
    /// The mailbox that it was sent from.
    pub credential: Option<CredentialId>,
    /// A part of the subject, in upper or lower case.
    pub subject: Option<String>,
}

impl Search {
    /// Whether there are no search criteria: the counters suffice to locate rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Filter {
    /// The kinds of rows that match it.
    pub(super) fn kinds(&self) -> Vec<Kind> {
        Plugin::ALL
            .into_iter()
            .filter(|plugin| self.plugin.is_none_or(|it| it == *plugin))
            .flat_map(|plugin| LogStatus::ALL.map(|status| (plugin, status)))
            .filter(|(_, status)| self.status.is_none_or(|it| it == *status))
            .collect()
    }

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
