//! Small periodic tasks, from every second to every hour.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::every;
use super::places::Places;
use mailgate_domain::accounts::Accounts;
use mailgate_domain::mailboxes::{ADDRESS_PLACES, Mailboxes};
use mailgate_domain::reports::Reports;
use mailgate_domain::webhooks::Webhooks;

/// How often expired connect links are removed.
const LINKS: Duration = Duration::from_mins(1);

/// How often expired webhook secrets are removed.
const SECRETS: Duration = Duration::from_mins(1);

/// How often the last uses of keys are written.
const KEY_USES: Duration = Duration::from_mins(1);

/// How often subscribers are removed that can no longer be restored.
const DELETED: Duration = Duration::from_mins(1);

/// How often deleted apps are purged.
const APPS: Duration = Duration::from_secs(5);

/// How often expired suppressions are removed.
const SUPPRESSIONS: Duration = Duration::from_hours(1);

/// How often old months are folded, and long-disconnected mailboxes removed.
const LONG_AGO: Duration = Duration::from_hours(1);

/// How often counters are folded: reports also read pending changes, which stay few this way.
const COUNTERS: Duration = Duration::from_secs(1);

/// The number of folded changes after which their space is reclaimed.
const SPENT: i64 = 1_000;

/// How often to poll for mailboxes whose addresses are due.
const ADDRESSES: Duration = Duration::from_secs(1);

/// Removes expired used connect links.
pub async fn forget_lapsed_links(mailboxes: Mailboxes, stop: CancellationToken) {
    let trouble = "expired connect links can't be removed";
    every(LINKS, &stop, trouble, || {
        mailboxes.forget_lapsed_links(&stop)
    })
    .await;
}

/// Removes the webhook secrets that are no longer used.
pub async fn forget_webhook_secrets(webhooks: Webhooks, stop: CancellationToken) {
    let trouble = "expired webhook secrets can't be removed";
    every(SECRETS, &stop, trouble, || webhooks.forget_secrets(&stop)).await;
}

/// Removes the log entries of deleted apps.
pub async fn purge_deleted_apps(mailboxes: Mailboxes, stop: CancellationToken) {
    let trouble = "the logs of deleted apps can't be removed";
    every(APPS, &stop, trouble, || mailboxes.purge_deleted_apps(&stop)).await;
}

/// Removes the deleted subscribers that can no longer be restored.
pub async fn remove_deleted_subscribers(mailboxes: Mailboxes, stop: CancellationToken) {
    let trouble = "deleted subscribers can't be removed";
    every(DELETED, &stop, trouble, || {
        mailboxes.delete_due_subscribers(&stop)
    })
    .await;
}

/// Removes the portal's expired links and sessions.
pub async fn forget_portal_sessions(accounts: Accounts, stop: CancellationToken) {
    let trouble = "expired sessions of the portal can't be removed";
    every(LINKS, &stop, trouble, || {
        accounts.forget_portal_sessions(&stop)
    })
    .await;
}

/// Writes when keys were last used.
pub async fn write_key_uses(accounts: Accounts, stop: CancellationToken) {
    let trouble = "the last uses of keys can't be written";
    every(KEY_USES, &stop, trouble, || accounts.write_key_uses()).await;
}

/// Removes expired suppressions.
pub async fn forget_suppressions(accounts: Accounts, stop: CancellationToken) {
    let trouble = "expired suppressions can't be removed";
    every(SUPPRESSIONS, &stop, trouble, || {
        accounts.forget_suppressions()
    })
    .await;
}

/// Removes the mailboxes that were disconnected long ago.
pub async fn remove_former_mailboxes(
    mailboxes: Mailboxes,
    log_retention_days: u32,
    stop: CancellationToken,
) {
    let trouble = "mailboxes that were disconnected long ago can't be removed";
    every(LONG_AGO, &stop, trouble, || {
        mailboxes.remove_former(log_retention_days, &stop)
    })
    .await;
}

/// Folds the months that reports no longer show individually.
pub async fn fold_months(reports: Reports, log_retention_days: u32, stop: CancellationToken) {
    let trouble = "old message counts can't be folded";
    every(LONG_AGO, &stop, trouble, || {
        reports.fold_months(log_retention_days)
    })
    .await;
}

/// Folds the journal's counts.
pub async fn fold_counters(reports: Reports, stop: CancellationToken) {
    let trouble = "message counts can't be aggregated";
    let spent = AtomicI64::new(0);
    every(COUNTERS, &stop, trouble, || async {
        let folded = reports.fold_counters().await?;
        if spent.fetch_add(folded, Relaxed) + folded >= SPENT {
            reports.vacuum_counters().await?;
            spent.store(0, Relaxed);
        }
        Ok(())
    })
    .await;
}

/// Queries the providers for mailboxes' sender addresses: daily, and immediately after a sender was refused.
pub async fn read_addresses(mailboxes: Mailboxes, tracker: TaskTracker, stop: CancellationToken) {
    let places = Places::new(ADDRESS_PLACES, tracker, stop.clone());
    let trouble = "mailboxes whose sender addresses are due can't be read";
    every(ADDRESSES, &stop, trouble, || async {
        let free = places.free();
        if free == 0 {
            return Ok(());
        }
        for look in mailboxes.claim_addresses(free).await? {
            let mailboxes = mailboxes.clone();
            places.begin(async move { mailboxes.read_addresses(look).await });
        }
        Ok(())
    })
    .await;
}
