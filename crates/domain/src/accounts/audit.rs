//! Records changes: one row each, in the change's own transaction, and a log line after the commit.

use std::ops::{Deref, DerefMut};

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool, Postgres, Transaction};

use mailgate_storage::database::transaction;
use mailgate_storage::{audit_entries, credentials, subscribers};
use mailgate_types::audit::{AuditAction, AuditEntry, AuditSubject, Author};
use mailgate_types::ids::{AppId, AuditEntryId, SubscriberId};

/// A transaction for the changes of one author, and the only way to record any. If it isn't committed, nothing is
/// changed and nothing recorded.
#[derive(Debug)]
pub struct AuditedTransaction {
    transaction: Transaction<'static, Postgres>,
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

/// Begins one. A subscriber's credential can end while its request is in progress: a body may arrive minutes after the
/// headers. From here on it can't end until the transaction does.
///
/// # Errors
/// The database's error, or one for which [`credentials::has_ended`] is true.
pub async fn begin(
    pool: &PgPool,
    author: Author,
    now: DateTime<Utc>,
) -> Result<AuditedTransaction, sqlx::Error> {
    let mut begun = begin_afterwards(pool, author, now).await?;
    if let Some(shown) = author.shown {
        credentials::keep(&mut begun, shown, now).await?;
    }
    Ok(begun)
}

/// Begins one with an exclusive lock on the subscriber: other changes by its credentials have ended, or wait until this
/// one ends. `None` if the subscriber was deleted.
///
/// # Errors
///
/// See [`begin`].
pub async fn begin_alone(
    pool: &PgPool,
    author: Author,
    subscriber: SubscriberId,
    now: DateTime<Utc>,
) -> Result<Option<AuditedTransaction>, sqlx::Error> {
    let mut begun = begin_afterwards(pool, author, now).await?;
    // The exclusive lock comes before shared ones: two transactions with shared locks would deadlock.
    credentials::lock(&mut begun, subscriber).await?;
    let is_there = subscribers::lock(&mut begun, subscriber).await?;
    if let Some(shown) = author.shown {
        credentials::keep(&mut begun, shown, now).await?;
    }
    Ok(is_there.then_some(begun))
}

/// Begins one for an external effect that can't be undone: it is recorded even if the author's credential has ended
/// meanwhile.
///
/// # Errors
///
/// The database's error.
pub async fn begin_afterwards(
    pool: &PgPool,
    author: Author,
    now: DateTime<Utc>,
) -> Result<AuditedTransaction, sqlx::Error> {
    Ok(AuditedTransaction {
        transaction: transaction::begin(pool).await?,
        author,
        now,
        lines: Vec::new(),
    })
}

impl AuditedTransaction {
    /// Records a change. The app must still exist.
    ///
    /// # Errors
    ///
    /// The database's error.
    pub async fn record(&mut self, entry: AuditEntry) -> Result<(), sqlx::Error> {
        self.record_all([entry]).await
    }

    /// Records changes, as [`record`](Self::record) does one, by a single statement.
    ///
    /// # Errors
    ///
    /// The database's error.
    pub async fn record_all(
        &mut self,
        entries: impl IntoIterator<Item = AuditEntry, IntoIter: Send> + Send,
    ) -> Result<(), sqlx::Error> {
        let entries = entries.into_iter();
        let entries: Vec<_> = entries.map(|it| (AuditEntryId::at(self.now), it)).collect();
        let author = self.author;
        let subscribers = audit_entries::insert(&mut self.transaction, author, &entries).await?;
        self.lines
            .extend(entries.into_iter().map(|(id, entry)| Line {
                id,
                action: entry.action,
                subscriber: subscribers.get(&id).copied(),
                app: match entry.subject {
                    AuditSubject::App(app) => Some(app),
                    AuditSubject::Subscriber(_) | AuditSubject::Gateway => None,
                },
                target: entry.target,
            }));
        Ok(())
    }

    /// Commits the changes, and logs them.
    ///
    /// # Errors
    ///
    /// The database's error.
    pub async fn commit(self) -> Result<(), sqlx::Error> {
        self.transaction.commit().await?;
        for line in self.lines {
            tracing::info!(
                audit_id = %line.id,
                action = line.action.as_str(),
                actor = self.author.actor.as_str(),
                subscriber_id = line.subscriber.map(tracing::field::display),
                app_id = line.app.map(tracing::field::display),
                target_id = line.target,
                api_secret_id = self.author.api_secret().map(tracing::field::display),
                client_address = self.author.address.map(tracing::field::display),
                "audit"
            );
        }
        Ok(())
    }

    /// Records one change, and commits.
    ///
    /// # Errors
    ///
    /// The database's error; nothing is changed then.
    pub async fn commit_change(mut self, entry: AuditEntry) -> Result<(), sqlx::Error> {
        self.record(entry).await?;
        self.commit().await
    }

    /// Undoes everything now, rather than some time after it is dropped.
    ///
    /// # Errors
    ///
    /// The database's error.
    pub async fn rollback(self) -> Result<(), sqlx::Error> {
        self.transaction.rollback().await
    }
}

impl Deref for AuditedTransaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.transaction
    }
}

impl DerefMut for AuditedTransaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }
}
