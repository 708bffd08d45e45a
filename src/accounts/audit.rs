//! Records changes: one row each, in the change's own transaction, and a log line after the commit.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, Postgres, Transaction};

use crate::storage::audit_entries;
use mailgate_types::audit::{AuditAction, AuditEntry, AuditSubject, Author};
use mailgate_types::ids::{AppId, AuditEntryId, SubscriberId};

/// The changes that one author makes in one transaction. If the transaction isn't committed, nothing is recorded.
#[derive(Debug)]
pub struct Trail {
    author: Author,
    now: DateTime<Utc>,
    lines: Vec<Line>,
}

/// The log line of an entry.
#[derive(Debug)]
struct Line {
    id: AuditEntryId,
    action: AuditAction,
    subscriber: Option<SubscriberId>,
    app: Option<AppId>,
    target: Option<String>,
}

/// Commits a transaction that makes one change, with its entry.
///
/// # Errors
///
/// The database's error; nothing is changed then.
pub async fn commit_change(
    mut transaction: Transaction<'_, Postgres>,
    author: Author,
    now: DateTime<Utc>,
    entry: AuditEntry,
) -> Result<(), sqlx::Error> {
    let mut trail = Trail::new(author, now);
    trail.record(&mut transaction, entry).await?;
    trail.commit(transaction).await
}

impl Trail {
    /// Creates an empty trail.
    #[must_use]
    pub fn new(author: Author, now: DateTime<Utc>) -> Self {
        let lines = Vec::new();
        Self { author, now, lines }
    }

    /// Records a change within the caller's transaction. The app must still exist.
    pub async fn record(
        &mut self,
        connection: &mut PgConnection,
        entry: AuditEntry,
    ) -> Result<(), sqlx::Error> {
        let id = AuditEntryId::at(self.now);
        let subscriber = audit_entries::insert(connection, id, self.author, &entry).await?;
        self.lines.push(Line {
            id,
            action: entry.action,
            subscriber,
            app: match entry.subject {
                AuditSubject::App(app) => Some(app),
                AuditSubject::Subscriber(_) | AuditSubject::Gateway => None,
            },
            target: entry.target,
        });
        Ok(())
    }

    /// Commits the changes, and logs them.
    pub async fn commit(self, transaction: Transaction<'_, Postgres>) -> Result<(), sqlx::Error> {
        transaction.commit().await?;
        for line in self.lines {
            tracing::info!(
                audit_id = %line.id,
                action = line.action.as_str(),
                actor = self.author.actor.as_str(),
                subscriber_id = line.subscriber.map(tracing::field::display),
                app_id = line.app.map(tracing::field::display),
                target_id = line.target,
                api_secret_id = self.author.api_secret.map(tracing::field::display),
                client_address = self.author.address.map(tracing::field::display),
                "audit"
            );
        }
        Ok(())
    }
}
