//! Removes mailboxes that were disconnected long ago, with the users who have no other and no connect session.

use chrono::TimeDelta;
use tokio_util::sync::CancellationToken;

use super::Mailboxes;
use mailgate_storage::apps;
use mailgate_storage::database::transaction;
use mailgate_storage::mailboxes::former;
use mailgate_types::past::Past;
use mailgate_types::plugin::Plugin;

/// How long a disconnected mailbox is kept: if it is reconnected before then, its ids are unchanged.
const KEPT: TimeDelta = TimeDelta::days(365);

/// Mailboxes removed in one transaction.
const BATCH: i64 = 1_000;

impl Mailboxes {
    /// Removes the mailboxes that were disconnected a year ago, or as long ago as the log is kept, whose rows name them;
    /// in batches, until none are left or `stop` is cancelled. Several replicas may run this at the same time.
    ///
    /// # Errors
    /// The database's error; earlier batches stay removed.
    pub async fn remove_former(
        &self,
        log_retention_days: u32,
        stop: &CancellationToken,
    ) -> Result<(), sqlx::Error> {
        let kept = KEPT.max(TimeDelta::days(log_retention_days.into()));
        let past = Past::by(&self.clock).before(kept);
        for plugin in Plugin::ALL {
            while !stop.is_cancelled() && self.remove_some(plugin, past).await? {}
        }
        Ok(())
    }

    /// Removes a batch of one app's; `false` if there was none.
    async fn remove_some(&self, plugin: Plugin, past: Past) -> Result<bool, sqlx::Error> {
        let mut transaction = transaction::begin(&self.pool).await?;
        let Some(app) = former::first(&mut transaction, plugin, past).await? else {
            return Ok(false);
        };
        // One app at a time, and the app first, as wherever mailboxes end. If it was deleted, so were they.
        if apps::keep(&mut transaction, app).await? {
            let removed = former::remove(&mut transaction, app, past, BATCH).await?;
            transaction.commit().await?;
            tracing::info!(app_id = %app, mailboxes = removed, "mailboxes were removed that were disconnected long ago");
        }
        Ok(true)
    }
}
