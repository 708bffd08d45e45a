//! Changes of a subscriber's address. It is a credential: sign-in links are mailed to it. So a new one takes effect
//! once confirmed by a link mailed to it, and the former address is notified and can undo the change.

pub(crate) mod chain;
pub(crate) mod links;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::Accounts;
use super::audit::{self, AuditedTransaction};
use chain::chain;
use mailgate_storage::billing_jobs::{self, JobKind};
use mailgate_storage::email_changes::{self, EmailChange};
use mailgate_storage::subscribers::SubscriberChange;
use mailgate_storage::{billing_notices, portal_links, portal_sessions, subscribers};
use mailgate_types::audit::{AuditAction, AuditEntry, Author, Credential};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::email_change::EmailChangeStep;
use mailgate_types::ids::{SubscriberId, uuid_at};
use mailgate_types::notice::Notice;

/// Changes mailed within [`COUNTED`] and since the last renewal of the API secret: a holder of the secret can't flood a
/// mailbox, and a former holder can't use up the changes of the one who renewed it.
const MOST: i64 = 5;

/// Changes within [`COUNTED`] however often the secret is renewed.
const MOST_IN_ALL: i64 = 50;

/// The time in which they are counted.
const COUNTED: TimeDelta = TimeDelta::hours(24);

/// The mail of its own that the gateway sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnMail {
    /// None.
    None,
    /// Notices, without links to the portal: it has none.
    Notices,
    /// Also links to the portal.
    Links,
}

/// Why an address isn't changed.
#[derive(Debug, thiserror::Error)]
pub enum EmailChangeError {
    /// Too many changes were requested; the next one has to wait.
    #[error("too many address changes were requested")]
    TooMany {
        /// The time to wait.
        wait: TimeDelta,
    },
    /// The database's error.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
}

impl Accounts {
    /// Requests a change of the address, within the transaction that has locked the subscriber. It takes effect
    /// immediately if no link can be mailed, or if it returns to the former address.
    pub(super) async fn ask_for_email(
        &self,
        transaction: &mut AuditedTransaction,
        change: &EmailChange,
        author: Author,
    ) -> Result<(), EmailChangeError> {
        let (subscriber, now) = (change.subscriber, change.created_at);
        let chain = chain(transaction, subscriber, now).await?;
        if let Some(chain) = chain.as_ref().filter(|chain| chain.leads_back(change)) {
            self.restore_email(transaction, &chain.begun, author, now)
                .await?;
            return Ok(());
        }
        let day = now - COUNTED;
        let renewed = subscribers::stored_api_secret(transaction, subscriber).await?;
        let renewed = renewed.and_then(|(_, since)| since);
        let renewed = renewed.map_or(day, |renewed| renewed.max(day));
        let most = if self.own_mail == OwnMail::None {
            MOST_IN_ALL
        } else {
            MOST
        };
        for (since, most) in [(renewed, most), (day, MOST_IN_ALL)] {
            let oldest =
                email_changes::oldest_of_last(transaction, subscriber, since, most).await?;
            if let Some(oldest) = oldest {
                let wait = oldest + COUNTED - now;
                return Err(EmailChangeError::TooMany { wait });
            }
        }
        withdraw(transaction, subscriber, now).await?;
        email_changes::insert(transaction, change).await?;
        if self.own_mail == OwnMail::Links {
            for step in [EmailChangeStep::Confirm, EmailChangeStep::Requested] {
                tell(transaction, change, step, now, author).await?;
            }
            let entry = AuditEntry::of_subscriber(AuditAction::EmailChangeRequested, subscriber);
            transaction.record(entry.with(difference(change))).await?;
            return Ok(());
        }
        self.has_changed(transaction, change, author, now).await?;
        Ok(())
    }

    /// The address that a subscriber has requested and not confirmed yet.
    pub async fn pending_email(&self, id: SubscriberId) -> Result<Option<String>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let changes = email_changes::of_subscriber(&mut connection, id).await?;
        let now = self.clock.now();
        let pending = changes.into_iter().find(|change| change.is_pending(now));
        Ok(pending.map(|change| change.email))
    }

    /// Cancels a subscriber's unconfirmed change, if there is one.
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

    /// Sets a subscriber's address immediately and finally, for the operator: earlier changes end, with all sessions
    /// and links of the portal; `false` if the subscriber was deleted.
    pub async fn set_email(
        &self,
        id: SubscriberId,
        email: &EmailAddress,
        author: Author,
    ) -> Result<bool, sqlx::Error> {
        let now = self.clock.now();
        let begun = audit::begin_alone(&self.pool, author, id, now).await?;
        let Some(mut transaction) = begun else {
            return Ok(false);
        };
        let before = subscribers::lock_fields(&mut transaction, id).await?;
        let former = before.and_then(|before| before.email).unwrap_or_default();
        let change = asked(id, former, email.to_string(), now);
        email_changes::end_all(&mut transaction, id, now).await?;
        set(&mut transaction, &change).await?;
        portal_sessions::delete_others(&mut transaction, id, None).await?;
        self.has_moved(&mut transaction, id, difference(&change), now)
            .await?;
        let step = EmailChangeStep::Set;
        tell(&mut transaction, &change, step, now, author).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// The new address becomes the account's.
    pub(super) async fn has_changed(
        &self,
        transaction: &mut AuditedTransaction,
        change: &EmailChange,
        author: Author,
        now: DateTime<Utc>,
    ) -> Result<(), sqlx::Error> {
        set(transaction, change).await?;
        let is_first = chain(transaction, change.subscriber, now).await?.is_none();
        email_changes::confirm(transaction, change.id, is_first, now).await?;
        self.has_moved(transaction, change.subscriber, difference(change), now)
            .await?;
        let step = if is_first {
            EmailChangeStep::Changed
        } else {
            EmailChangeStep::ChangedAgain
        };
        tell(transaction, change, step, now, author).await
    }

    /// Restores the address from before a change, and ends later changes, with all sessions of the portal except the
    /// author's own. The replaced address is notified.
    pub(super) async fn restore_email(
        &self,
        transaction: &mut AuditedTransaction,
        change: &EmailChange,
        author: Author,
        now: DateTime<Utc>,
    ) -> Result<(), sqlx::Error> {
        let subscriber = change.subscriber;
        withdraw(transaction, subscriber, now).await?;
        email_changes::end_from(transaction, change, now).await?;
        let before = subscribers::lock_fields(transaction, subscriber).await?;
        let from = before.and_then(|before| before.email).unwrap_or_default();
        email_changes::restore(transaction, change.id).await?;
        let kept = match author.shown.map(|shown| shown.credential) {
            Some(Credential::PortalSession(id)) => Some(id),
            _ => None,
        };
        portal_sessions::delete_others(transaction, subscriber, kept).await?;
        let told = EmailChange {
            email: change.former_email.clone(),
            former_email: from,
            ..change.clone()
        };
        let mut details = difference(&told);
        details["restored"] = json!(true);
        self.has_moved(transaction, subscriber, details, now)
            .await?;
        tell(transaction, &told, EmailChangeStep::Restored, now, author).await
    }

    /// Links mailed to the former address stop working, and the payment provider gets the new one.
    async fn has_moved(
        &self,
        transaction: &mut AuditedTransaction,
        subscriber: SubscriberId,
        details: Value,
        now: DateTime<Utc>,
    ) -> Result<(), sqlx::Error> {
        portal_links::delete_of(transaction, subscriber).await?;
        if self.beginning.is_billed {
            let kind = JobKind::Provision;
            billing_jobs::enqueue(transaction, subscriber, kind, None, now).await?;
        }
        let entry = AuditEntry::of_subscriber(AuditAction::SubscriberChanged, subscriber);
        transaction.record(entry.with(details)).await
    }
}

/// Sets the new address.
async fn set(connection: &mut PgConnection, change: &EmailChange) -> Result<(), sqlx::Error> {
    let new = SubscriberChange {
        email: Some(change.email.clone()),
        label: None,
    };
    subscribers::update(connection, change.subscriber, &new).await
}

/// Cancels the unconfirmed change, within the transaction that has locked the subscriber.
pub(super) async fn withdraw(
    transaction: &mut AuditedTransaction,
    subscriber: SubscriberId,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let changes = email_changes::of_subscriber(transaction, subscriber).await?;
    // An expired one is ended too: another gateway's clock may be behind.
    email_changes::end_pending(transaction, subscriber, now).await?;
    let Some(pending) = changes.iter().find(|change| change.is_pending(now)) else {
        return Ok(());
    };
    let entry = AuditEntry::of_subscriber(AuditAction::EmailChangeStopped, subscriber);
    transaction.record(entry.with(difference(pending))).await
}

/// A change requested now.
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
        can_be_undone: false,
    }
}

fn difference(change: &EmailChange) -> Value {
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
