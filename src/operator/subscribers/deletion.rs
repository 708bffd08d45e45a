//! Deletes a subscriber, with or without a time to restore it.

use std::sync::Arc;

use serde_json::json;
use sqlx::PgPool;
use tokio_util::task::TaskTracker;

use super::account::Account;
use crate::operator::OperatorError;
use mailgate_domain::accounts::{Accounts, Deleted};
use mailgate_domain::mailboxes::Mailboxes;
use mailgate_providers::mail::MailProviders;
use mailgate_settings::OperatorSettings;
use mailgate_types::audit::Author;
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::SubscriberId;
use mailgate_types::moment::iso8601;

/// Refuses an unconfirmed deletion: `yes` and the subscriber's label confirm it.
pub(super) fn confirm(
    id: SubscriberId,
    account: &Account,
    yes: bool,
    label: Option<&str>,
    now: bool,
) -> Result<(), OperatorError> {
    let known = &account.subscriber.label;
    if yes && label == Some(known) {
        return Ok(());
    }
    if let (Some(due_at), false) = (account.subscriber.deletion_due_at, now) {
        return Err(OperatorError::Deleted {
            id,
            until: iso8601(due_at),
        });
    }
    Err(OperatorError::Unconfirmed {
        id,
        label: known.clone(),
        belongings: account.belongings(),
        now,
    })
}

/// Deletes a subscriber so that it can be restored for a time.
pub(super) async fn delete(
    accounts: &Accounts,
    json: bool,
    id: SubscriberId,
) -> Result<(), OperatorError> {
    let deleted = accounts.delete_restorably(id, Author::operator(None));
    let (until, was) = match deleted.await? {
        Deleted::NotFound => return Err(OperatorError::NotFound(id)),
        Deleted::Until(until) => (iso8601(until), ""),
        Deleted::Already(until) => (iso8601(until), " already"),
    };
    if json {
        println!(
            "{}",
            json!({ "deleted": id.to_string(), "restorable_until": until })
        );
    } else {
        println!(
            "{id} is deleted{was}, with its apps. Until {until} it can be restored: mailgate subscriber restore {id}"
        );
    }
    Ok(())
}

/// Restores a deleted subscriber.
pub(super) async fn restore(
    accounts: &Accounts,
    json: bool,
    id: SubscriberId,
) -> Result<(), OperatorError> {
    let restored = accounts.restore(id, Author::operator(None)).await?;
    let is_changed = restored.ok_or(OperatorError::NotFound(id))?;
    if json {
        println!(
            "{}",
            json!({ "subscriber_id": id.to_string(), "changed": is_changed })
        );
    } else if is_changed {
        println!("{id} is restored.");
    } else {
        println!("{id} wasn't deleted.");
    }
    Ok(())
}

/// Deletes a subscriber permanently, and waits until its grants are revoked.
pub(super) async fn delete_for_good(
    id: SubscriberId,
    json: bool,
    pool: PgPool,
    clock: SharedClock,
    settings: OperatorSettings,
) -> Result<(), OperatorError> {
    let tracker = TaskTracker::new();
    let providers = MailProviders::new(
        &settings.plugins,
        &settings.sending,
        &settings.smtp_host,
        &clock,
    )?;
    let mailboxes = Mailboxes::new(
        pool,
        settings.seal_keys,
        clock,
        Arc::new(providers),
        tracker.clone(),
        Arc::new(settings.mailboxes),
    );
    let is_deleted = mailboxes.delete_subscriber(id, Author::operator(None));
    let is_deleted = is_deleted.await?;
    tracker.close();
    tracker.wait().await;
    if !is_deleted {
        return Err(OperatorError::NotFound(id));
    }
    if json {
        println!(
            "{}",
            json!({ "deleted": id.to_string(), "restorable_until": null })
        );
    } else {
        println!("{id} is deleted for good, with its apps.");
    }
    Ok(())
}
