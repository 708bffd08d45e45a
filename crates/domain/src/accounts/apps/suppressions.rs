//! Recipients that have bounced permanently. They are recorded for every app, and apply to apps that refuse messages to
//! them (`suppress_bounced`).

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use crate::accounts::Accounts;
use crate::accounts::audit;
use mailgate_storage::suppressions::{self, Suppression};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::email_address::{EmailAddress, comparison_key};
use mailgate_types::ids::AppId;
use mailgate_types::past::Past;

/// How long a bounce counts.
pub const KEPT: TimeDelta = TimeDelta::days(30);

/// Suppressions of one app; the oldest beyond it are removed.
const MOST: i64 = 100_000;

/// Rows removed per statement.
const BATCH: i64 = 1_000;

/// A part of an app's list.
#[derive(Debug, Clone, Default)]
pub struct SuppressionPage {
    /// The last to bounce first.
    pub suppressions: Vec<Suppression>,
    /// Their total number.
    pub total: i64,
}

impl Accounts {
    /// The keys of an app's recipients that have bounced. The app refuses messages to them.
    pub async fn suppressed(
        &self,
        app: AppId,
        recipients: &[String],
    ) -> Result<Vec<String>, sqlx::Error> {
        let addresses: Vec<String> = recipients
            .iter()
            .map(|address| comparison_key(address))
            .collect();
        let mut connection = self.pool.acquire().await?;
        suppressions::of_recipients(&mut connection, app, &addresses, self.bounced_since()).await
    }

    /// An app's recipients that have bounced, or the one with this address.
    pub async fn suppressions(
        &self,
        app: AppId,
        address: Option<&EmailAddress>,
        limit: i64,
        offset: i64,
    ) -> Result<SuppressionPage, sqlx::Error> {
        let address = address.map(|it| comparison_key(it.as_str()));
        let (address, since) = (address.as_deref(), self.bounced_since());
        let mut connection = self.pool.acquire().await?;
        Ok(SuppressionPage {
            suppressions: suppressions::list(&mut connection, app, address, since, limit, offset)
                .await?,
            total: suppressions::count(&mut connection, app, address, since).await?,
        })
    }

    /// Deletes all suppressions of an app, or the one of an address, until it bounces again; returns how many.
    ///
    /// # Errors
    ///
    /// The database's error; nothing is deleted then.
    pub async fn delete_suppressions(
        &self,
        app: AppId,
        address: Option<&EmailAddress>,
        author: Author,
    ) -> Result<i64, sqlx::Error> {
        let address = address.map(|it| comparison_key(it.as_str()));
        let mut transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        let since = self.bounced_since();
        let deleted =
            suppressions::delete(&mut transaction, app, address.as_deref(), since).await?;
        if deleted == 0 {
            transaction.commit().await?;
            return Ok(0);
        }
        let entry = AuditEntry::of_app(AuditAction::SuppressionsDeleted, app)
            .with(json!({ "to_address": address, "deleted": deleted }));
        transaction.commit_change(entry).await?;
        Ok(deleted)
    }

    /// Removes expired suppressions, and the oldest of an app with too many.
    pub async fn forget_suppressions(&self) -> Result<(), sqlx::Error> {
        let past = Past::by(&self.clock).before(KEPT);
        let mut connection = self.pool.acquire().await?;
        while suppressions::forget(&mut connection, past, BATCH).await? > 0 {}
        while suppressions::forget_surplus(&mut connection, MOST, BATCH).await? > 0 {}
        Ok(())
    }

    fn bounced_since(&self) -> DateTime<Utc> {
        self.clock.now() - KEPT
    }
}
