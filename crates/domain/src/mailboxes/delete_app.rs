//! Deletes an app with everything that it owns: its users and mailboxes, its keys, its queued mail, its webhook
//! configurations. The grants are revoked at the providers where possible. A last webhook is sent to its endpoints.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sqlx::PgConnection;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Mailboxes;
use crate::accounts::audit::{self, AuditedTransaction};
use mailgate_storage::audit_entries::{self, Range};
use mailgate_storage::deleted_apps::WebhooksLeft;
use mailgate_storage::mailboxes::end::{self, Ended};
use mailgate_storage::{
    apps, billing_jobs, bounced_messages, deleted_apps, email_counters, signing_secrets, spool,
    webhook_messages,
};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::event::{AppEvent, Emission, Event};
use mailgate_types::ids::{AppId, Owner, SubscriberId};
use mailgate_types::past::Past;

/// Rows deleted in one batch.
const BATCH: i64 = 1_000;

/// How long a message may still have been in flight when its app was deleted.
const LATE: TimeDelta = TimeDelta::hours(2);

/// An app that was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// Its name.
    pub name: String,
    /// Log rows that are still to be removed, or [`Deletion::MOST`] of more.
    pub left: i64,
}

impl Deletion {
    /// The largest number of log rows that is counted.
    pub const MOST: i64 = 10_000;
}

/// Steps of an app's deletion that need its rows, which the caller has locked: the audit entry, the last webhook, the
/// queued mail. Returns the grants to be revoked.
pub(super) async fn begin(
    transaction: &mut AuditedTransaction,
    app: AppId,
    name: String,
    now: DateTime<Utc>,
) -> Result<Vec<Ended>, sqlx::Error> {
    // While its endpoints are still known.
    let entry = AuditEntry::of_app(AuditAction::AppDeleted, app);
    transaction
        .record(entry.with(json!({ "name": name })))
        .await?;
    let event = AppEvent { app_id: app, name };
    let deleted = Emission::of(app, Event::AppDeleted(event));
    webhook_messages::emit(transaction, &[deleted], now).await?;
    let grants = end::with_grants(transaction, app).await?;
    spool::delete_waiting(transaction, app).await?;
    Ok(grants)
}

/// Deletes an app's rows, and announces that. The caller holds the lock on the counters.
pub(super) async fn finish(
    connection: &mut PgConnection,
    app: AppId,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    deleted_apps::insert(connection, app, now).await?;
    apps::delete(connection, app).await?;
    apps::announce_deleted(connection, app).await
}

impl Mailboxes {
    /// Deletes an app; `false` if it was already deleted. Returns before the grants are revoked.
    ///
    /// # Errors
    ///
    /// If the database fails; nothing is deleted then.
    pub async fn delete_app(&self, app: AppId, author: Author) -> Result<bool, sqlx::Error> {
        let now = self.clock.now();
        let mut transaction = audit::begin(&self.pool, author, now).await?;
        let Some(name) = apps::lock(&mut transaction, app).await? else {
            return Ok(false);
        };
        let grants = begin(&mut transaction, app, name, now).await?;
        billing_jobs::enqueue_quantity_of_app(&mut transaction, app, now).await?;
        email_counters::lock(&mut transaction).await?;
        email_counters::withdraw_app(&mut transaction, app).await?;
        finish(&mut transaction, app, now).await?;
        transaction.commit().await?;
        self.revoke(self.spent_grants(grants));
        Ok(true)
    }

    /// How far the removal of an app of the subscriber's has come; `None` if no such app was deleted.
    pub async fn deletion(
        &self,
        subscriber: SubscriberId,
        app: AppId,
    ) -> Result<Option<Deletion>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let range = Range {
            app: Some(app),
            actions: &[AuditAction::AppDeleted],
            from: Uuid::nil(),
            before: Uuid::max(),
        };
        let entries = audit_entries::list(&mut connection, subscriber, range, 0, 1).await?;
        let Some(entry) = entries.first() else {
            return Ok(None);
        };
        Ok(Some(Deletion {
            name: entry.details["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            left: deleted_apps::logs_left(&mut connection, app, Deletion::MOST).await?,
        }))
    }

    /// Deletes the log rows of deleted apps and their webhook history, in batches, until none are left or `stop` is
    /// cancelled. Webhooks that are still queued are left for a later round. Several replicas may run this at the same
    /// time.
    pub async fn purge_deleted_apps(&self, stop: &CancellationToken) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        for app in deleted_apps::list(&mut connection).await? {
            // Deliveries in progress when the app was deleted have been requeued since.
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
