//! The newest messages by mailbox.

use chrono::TimeDelta;

use super::{AppReference, Reports, scope};
use mailgate_storage::email_logs::{self, Kind, MailboxCounts};
use mailgate_types::ids::SubscriberId;
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// Maximum messages counted, so that the cost doesn't depend on their number.
pub const NEWEST: i64 = 1_000;

/// Maximum age of these messages.
const BACK: TimeDelta = TimeDelta::days(30);

/// Maximum mailboxes listed.
const MAILBOXES: i64 = 10;

impl Reports {
    /// The newest messages of a subscriber, or of one of its apps, by mailbox, most messages first. None for an app
    /// that it doesn't have.
    pub async fn by_mailbox(
        &self,
        subscriber: SubscriberId,
        app: Option<&AppReference>,
    ) -> Result<Vec<MailboxCounts>, sqlx::Error> {
        let now = self.clock.now();
        let mut snapshot = self.snapshot().await?;
        let Some(scope) = scope(&mut snapshot, subscriber, app).await? else {
            return Ok(Vec::new());
        };
        let kinds = Plugin::ALL.into_iter();
        let kinds: Vec<Kind> = kinds
            .flat_map(|plugin| LogStatus::ALL.map(|status| (plugin, status)))
            .collect();
        // A replica's clock may be ahead by a little.
        let window = scope.window(now - BACK, now + TimeDelta::minutes(5));
        let counted =
            email_logs::by_mailbox(&mut snapshot, window, &kinds, NEWEST, MAILBOXES).await?;
        snapshot.commit().await?;
        Ok(counted)
    }
}
