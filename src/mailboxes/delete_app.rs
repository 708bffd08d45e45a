//! Deletes an app with everything that it owns: its users and mailboxes, its keys, its queued mail, its webhook
//! configurations. The grants are revoked at the providers where possible. A last webhook is sent to its endpoints.

use chrono::TimeDelta;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Mailboxes;
use crate::accounts::audit::Trail;
use crate::storage::deleted_apps::WebhooksLeft;
use crate::storage::mailboxes::end;
use crate::storage::{
    apps, billing_jobs, bounced_messages, deleted_apps, email_counters, signing_secrets, spool,
    transaction, webhook_messages,
};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::event::{AppEvent, Emission, Event};
use mailgate_types::ids::{AppId, Owner};
use mailgate_types::past::Past;

/// Rows deleted in one batch.
const BATCH: i64 = 1_000;

/// How long a message may still have been in flight when its app was deleted.
const LATE: TimeDelta = TimeDelta::hours(2);

impl Mailboxes {
    /// Deletes an app; `false` if it was already gone. Returns before the grants are revoked.
    ///
    /// # Errors
    ///
    /// If the database fails; nothing is deleted then.
    pub async fn delete_app(&self, app: AppId, author: Author) -> Result<bool, sqlx::Error> {
        let mut transaction = transaction::begin(&self.pool).await?;
        let Some(name) = apps::lock(&mut transaction, app).await? else {
            return Ok(false);
        };
        // While its endpoints are still known.
        let now = self.clock.now();
        let mut trail = Trail::new(author, now);
        let entry = AuditEntry::of_app(AuditAction::AppDeleted, app);
        trail
            .record(&mut transaction, entry.with(json!({ "name": name })))
            .await?;
        let event = AppEvent { app_id: app, name };
        let deleted = Emission::of(app, Event::AppDeleted(event));
        webhook_messages::emit(&mut transaction, &[deleted], now).await?;
        let grants = end::with_grants(&mut transaction, app).await?;
        spool::delete_waiting(&mut transaction, app).await?;
        billing_jobs::enqueue_quantity_of_app(&mut transaction, app, now).await?;
        deleted_apps::insert(&mut transaction, app, now).await?;
        email_counters::lock(&mut transaction).await?;
        email_counters::withdraw_app(&mut transaction, app).await?;
        apps::delete(&mut transaction, app).await?;
        apps::announce_deleted(&mut transaction, app).await?;
        trail.commit(transaction).await?;
        self.revoke(self.spent_grants(grants));
        Ok(true)
    }

    /// Deletes the log rows of deleted apps and their webhook history, in batches, until none are left or `stop` is
    /// cancelled. Webhooks that are still queued are left for a later round. Several replicas may run this at the same
    /// time.
    pub async fn purge_deleted_apps(&self, stop: &CancellationToken) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        for app in deleted_apps::list(&mut connection).await? {
            // What was being tried when the app went was put back since.
            spool::delete_waiting(&mut connection, app).await?;
            while !stop.is_cancelled() {
                if deleted_apps::remove_logs(&mut connection, app, BATCH).await? > 0
                    || bounced_messages::remove_of(&mut connection, app, BATCH).await? > 0
                {
                    continue;
                }
                match deleted_apps::remove_webhooks(&mut connection, app, BATCH).await? {
                    WebhooksLeft::Some => {}
                    WebhooksLeft::Queued => break,
                    WebhooksLeft::None => {
                        email_counters::remove(&mut connection, Owner::App(app)).await?;
                        deleted_apps::remove_counters(&mut connection, app).await?;
                        signing_secrets::remove_of_app(&mut connection, app).await?;
                        let past = Past::by(&self.clock).before(LATE);
                        deleted_apps::forget(&mut connection, app, past).await?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}
