//! Deletes an app with everything that it had: its users and mailboxes, its keys, its waiting mail. The
//! grants are revoked at the providers, where they can be.

use chrono::TimeDelta;
use tokio_util::sync::CancellationToken;

use super::Mailboxes;
use crate::storage::mailboxes::end;
use crate::storage::{apps, deleted_apps, spool};
use crate::types::ids::AppId;

/// Log rows that are removed together.
const BATCH: i64 = 1_000;

/// How long a message may have been on its way when its app was deleted.
const LATE: TimeDelta = TimeDelta::hours(2);

impl Mailboxes {
    /// Deletes an app; `false` when it was gone. Returns before the grants are revoked.
    ///
    /// # Errors
    ///
    /// What the database said; nothing is deleted then.
    pub async fn delete_app(&self, app: AppId) -> Result<bool, sqlx::Error> {
        let mut transaction = self.pool.begin().await?;
        if !apps::lock(&mut transaction, app).await? {
            return Ok(false);
        }
        let grants = end::with_grants(&mut transaction, app).await?;
        spool::delete_waiting(&mut transaction, app).await?;
        apps::delete(&mut transaction, app).await?;
        deleted_apps::insert(&mut transaction, app, self.clock.now()).await?;
        apps::announce_deleted(&mut transaction, app).await?;
        transaction.commit().await?;
        tracing::info!(app_id = %app, mailboxes = grants.len(), "an app was deleted");
        self.revoke(self.spent_grants(grants));
        Ok(true)
    }

    /// Removes the log rows of deleted apps, batch by batch, until there are none or `stop`. Several
    /// replicas may do it at once.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn remove_traces(&self, stop: &CancellationToken) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        for app in deleted_apps::list(&mut connection).await? {
            while !stop.is_cancelled() {
                if deleted_apps::remove_logs(&mut connection, app, BATCH).await? == 0 {
                    deleted_apps::remove_counters(&mut connection, app).await?;
                    let before = self.clock.now() - LATE;
                    deleted_apps::forget(&mut connection, app, before).await?;
                    break;
                }
            }
        }
        Ok(())
    }
}
