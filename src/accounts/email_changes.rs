//! Changes of a subscriber's address. It is a credential: links that sign in are mailed to it. So a new one counts once
//! it is confirmed by a link that was mailed there, and who reads the former one is told and can undo it.

use std::net::IpAddr;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sqlx::PgConnection;

use super::Accounts;
use super::audit::{self, AuditedTransaction};
use crate::storage::billing_jobs::{self, JobKind};
use crate::storage::email_changes::{self, EmailChange};
use crate::storage::{billing_notices, portal_links, portal_sessions, subscribers};
use mailgate_types::audit::{AuditAction, AuditEntry, Author, Credential};
use mailgate_types::email_change::{EmailChangeLink, EmailChangeStep};
use mailgate_types::ids::{SubscriberId, uuid_at};
use mailgate_types::notice::Notice;

/// Changes that are mailed within [`COUNTED`]: nobody's mailbox is filled by who has an API secret.
const MOST: i64 = 5;

/// The time in which [`MOST`] is counted.
const COUNTED: TimeDelta = TimeDelta::hours(24);

/// What mail of its own the gateway sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnMail {
    /// None.
    None,
    /// Notices, without links to the portal: it has none.
    Notices,
    /// Also links to the portal.
    Links,
}

/// What a link is about to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Make the new address the account's.
    Confirm(EmailChange),
    /// Stop a change that waits for its confirmation.
    Stop(EmailChange),
    /// Take the former address back.
    Restore(EmailChange),
}

/// Why an address isn't changed.
#[derive(Debug, thiserror::Error)]
pub enum EmailChangeError {
    /// So many changes were asked for that the next has to wait.
    #[error("too many changes of the address were asked for")]
    TooMany {
        /// For so long.
        wait: TimeDelta,
    },
    /// The database's error.
    #[error("the database can't be asked: {0}")]
    Database(#[from] sqlx::Error),
}

impl Accounts {
    /// Asks for a change of the address, within the transaction that has locked the subscriber, or makes it where no
    /// link can be mailed; returns whether it is made.
    pub(super) async fn ask_for_email(
        &self,
        transaction: &mut AuditedTransaction,
        change: &EmailChange,
        author: Author,
    ) -> Result<bool, EmailChangeError> {
        let (subscriber, now) = (change.subscriber, change.created_at);
        if self.own_mail > OwnMail::None {
            let since = now - COUNTED;
            let oldest =
                email_changes::oldest_of_last(transaction, subscriber, since, MOST).await?;
            if let Some(oldest) = oldest {
                let wait = oldest + COUNTED - now;
                return Err(EmailChangeError::TooMany { wait });
            }
        }
        email_changes::end_pending(transaction, subscriber, now).await?;
        if self.own_mail < OwnMail::Links {
            let change = EmailChange {
                confirmed_at: Some(now),
                ..change.clone()
            };
            email_changes::insert(transaction, &change).await?;
            if self.own_mail > OwnMail::None {
                tell(transaction, &change, EmailChangeStep::Changed, now, author).await?;
            }
            return Ok(true);
        }
        email_changes::insert(transaction, change).await?;
        for step in [EmailChangeStep::Confirm, EmailChangeStep::Requested] {
            tell(transaction, change, step, now, author).await?;
        }
        let entry = AuditEntry::of_subscriber(AuditAction::EmailChangeRequested, subscriber);
        transaction.record(entry.with(difference(change))).await?;
        Ok(false)
    }

    /// The address that a subscriber has asked for and that waits for its confirmation.
    pub async fn pending_email(&self, id: SubscriberId) -> Result<Option<String>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let changes = email_changes::of_subscriber(&mut connection, id).await?;
        let now = self.clock.now();
        let pending = changes.into_iter().find(|change| change.is_pending(now));
        Ok(pending.map(|change| change.email))
    }

    /// Stops a subscriber's change that waits for its confirmation, if there is one.
    pub async fn withdraw_email(
        &self,
        id: SubscriberId,
        author: Author,
    ) -> Result<(), sqlx::Error> {
        let now = self.clock.now();
        let mut transaction = audit::begin(&self.pool, author, now).await?;
        subscribers::lock_fields(&mut transaction, id).await?;
        withdraw(&mut transaction, id, now).await?;
        transaction.commit().await
    }

    /// What a link would do; `None` if nothing any more.
    pub async fn email_decision(&self, token: &str) -> Result<Option<Decision>, sqlx::Error> {
        let Some((link, id)) = EmailChangeLink::read(&self.seal_keys, token) else {
            return Ok(None);
        };
        let mut connection = self.pool.acquire().await?;
        let change = email_changes::find(&mut connection, id).await?;
        Ok(change.and_then(|change| decide(link, change, self.clock.now())))
    }

    /// Does what a link is for; `None` if nothing any more. When the former address is taken back, all sessions and
    /// links of the portal end.
    pub async fn follow_email_link(
        &self,
        token: &str,
        address: IpAddr,
    ) -> Result<Option<Decision>, sqlx::Error> {
        let Some((link, id)) = EmailChangeLink::read(&self.seal_keys, token) else {
            return Ok(None);
        };
        let subscriber = {
            let mut connection = self.pool.acquire().await?;
            let change = email_changes::find(&mut connection, id).await?;
            change.map(|change| change.subscriber)
        };
        let Some(subscriber) = subscriber else {
            return Ok(None);
        };
        let author = Author::subscriber(address, subscriber, Credential::Link);
        let now = self.clock.now();
        let begun = audit::begin_alone(&self.pool, author, subscriber, now).await?;
        let Some(mut transaction) = begun else {
            return Ok(None);
        };
        // Not before the wait for the subscriber: another may have decided meanwhile.
        let now = self.clock.now();
        let change = email_changes::find(&mut transaction, id).await?;
        let decision = change.and_then(|change| decide(link, change, now));
        match &decision {
            None => return Ok(None),
            Some(Decision::Stop(_)) => withdraw(&mut transaction, subscriber, now).await?,
            Some(Decision::Restore(change)) => {
                self.restore_email(&mut transaction, change, now).await?;
                // By whoever reads it.
                subscribers::confirm_email(&mut transaction, subscriber).await?;
                portal_sessions::delete_others(&mut transaction, subscriber, None).await?;
            }
            Some(Decision::Confirm(change)) => {
                email_changes::confirm(&mut transaction, id, now).await?;
                let email = &change.email;
                subscribers::set_confirmed_email(&mut transaction, subscriber, email).await?;
                let from = &change.former_email;
                self.has_moved(&mut transaction, subscriber, (from, email), now)
                    .await?;
                let step = EmailChangeStep::Changed;
                tell(&mut transaction, change, step, now, author).await?;
            }
        }
        transaction.commit().await?;
        Ok(decision)
    }

    /// Takes back the address of before a change, and ends what was changed after it.
    pub(super) async fn restore_email(
        &self,
        transaction: &mut AuditedTransaction,
        change: &EmailChange,
        now: DateTime<Utc>,
    ) -> Result<(), sqlx::Error> {
        email_changes::end_from(transaction, change, now).await?;
        let subscriber = change.subscriber;
        let before = subscribers::lock_fields(transaction, subscriber).await?;
        let from = before.and_then(|before| before.email).unwrap_or_default();
        email_changes::restore(transaction, change.id).await?;
        self.has_moved(transaction, subscriber, (&from, &change.former_email), now)
            .await
    }

    /// Links that were mailed to the former address let nobody in any more, and the payment provider learns the new one.
    async fn has_moved(
        &self,
        transaction: &mut AuditedTransaction,
        subscriber: SubscriberId,
        (from, to): (&str, &str),
        now: DateTime<Utc>,
    ) -> Result<(), sqlx::Error> {
        portal_links::delete_of(transaction, subscriber).await?;
        if self.beginning.is_billed {
            let kind = JobKind::Provision;
            billing_jobs::enqueue(transaction, subscriber, kind, None, now).await?;
        }
        let entry = AuditEntry::of_subscriber(AuditAction::SubscriberChanged, subscriber);
        let entry = entry.with(json!({ "email": { "from": from, "to": to } }));
        transaction.record(entry).await
    }
}

/// Stops the change that waits for its confirmation, within the transaction that has locked the subscriber.
pub(super) async fn withdraw(
    transaction: &mut AuditedTransaction,
    subscriber: SubscriberId,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let changes = email_changes::of_subscriber(transaction, subscriber).await?;
    let Some(pending) = changes.iter().find(|change| change.is_pending(now)) else {
        return Ok(());
    };
    email_changes::end_pending(transaction, subscriber, now).await?;
    let entry = AuditEntry::of_subscriber(AuditAction::EmailChangeStopped, subscriber);
    transaction.record(entry.with(difference(pending))).await
}

/// A subscriber's changes that can be undone, oldest first.
pub(super) async fn undoable(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    now: DateTime<Utc>,
) -> Result<Vec<EmailChange>, sqlx::Error> {
    let mut changes = email_changes::of_subscriber(connection, subscriber).await?;
    changes.retain(|change| change.can_be_undone(now));
    Ok(changes)
}

/// A change asked for now.
pub(super) fn asked(
    subscriber: SubscriberId,
    former_email: String,
    email: String,
    now: DateTime<Utc>,
) -> EmailChange {
    EmailChange {
        id: uuid_at(now),
        subscriber,
        former_email,
        email,
        created_at: now,
        confirmed_at: None,
    }
}

fn decide(link: EmailChangeLink, change: EmailChange, now: DateTime<Utc>) -> Option<Decision> {
    match link {
        EmailChangeLink::Confirm if change.is_pending(now) => Some(Decision::Confirm(change)),
        EmailChangeLink::Undo if change.is_pending(now) => Some(Decision::Stop(change)),
        EmailChangeLink::Undo if change.can_be_undone(now) => Some(Decision::Restore(change)),
        EmailChangeLink::Confirm | EmailChangeLink::Undo => None,
    }
}

fn difference(change: &EmailChange) -> serde_json::Value {
    json!({ "email": { "from": change.former_email, "to": change.email } })
}

async fn tell(
    connection: &mut PgConnection,
    change: &EmailChange,
    step: EmailChangeStep,
    now: DateTime<Utc>,
    author: Author,
) -> Result<(), sqlx::Error> {
    let notice = Notice::EmailChange {
        step,
        id: change.id,
        former_email: change.former_email.clone(),
        email: change.email.clone(),
        at: now,
        address: author.address,
    };
    let event = format!("email_change {} {step:?}", change.id);
    billing_notices::insert(connection, change.subscriber, &event, &notice, now).await?;
    Ok(())
}
