//! The periodic jobs: each with its name, its period, the call of a round, and the log line of a failed one.

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
use mailgate_server::shutdown::Shutdown;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// How often deleted apps are purged.
const APPS: Duration = Duration::from_secs(5);

/// How often counters are folded: reports also read what is pending, which stays little this way.
const COUNTERS: Duration = Duration::from_secs(1);

/// The number of folded changes after which their space is reclaimed.
const SPENT: i64 = 1_000;

/// How often to poll for mailboxes whose addresses are due.
const ADDRESSES: Duration = Duration::from_secs(1);

/// Starts jobs on the daemon's tracker. The process ends if one panics.
macro_rules! start {
    (
        $shutdown:ident, $stop:ident;
        $($name:literal: $every:ident, $on:ident.$round:ident($($argument:expr),*), $trouble:literal;)+
    ) => {$(
        let (on, $stop) = ($on.clone(), $shutdown.soft.clone());
        $shutdown.spawn_vital($name, async move {
            every($every, &$stop, $trouble, || on.$round($($argument),*)).await;
        });
    )+};
}

/// Starts the jobs that need nothing but a call.
pub fn start_jobs(
    accounts: &Accounts,
    mailboxes: &Mailboxes,
    webhooks: &Webhooks,
    reports: &Reports,
    log_retention_days: u32,
    shutdown: &Shutdown,
) {
    start! { shutdown, stop;
        "the removal of deleted subscribers": MINUTE, mailboxes.delete_due_subscribers(&stop),
            "deleted subscribers can't be removed";
        "the removal of deleted apps": APPS, mailboxes.purge_deleted_apps(&stop),
            "the logs of deleted apps can't be removed";
        "the removal of former mailboxes": HOUR, mailboxes.remove_former(log_retention_days, &stop),
            "mailboxes that were disconnected long ago can't be removed";
        "the removal of lapsed connect links": MINUTE, mailboxes.forget_lapsed_links(&stop),
            "expired connect links can't be removed";
        "the removal of the portal's expired sessions": MINUTE, accounts.forget_portal_sessions(&stop),
            "expired sessions of the portal can't be removed";
        "the writer of key uses": MINUTE, accounts.write_key_uses(),
            "the last uses of keys can't be written";
        "the removal of expired suppressions": HOUR, accounts.forget_suppressions(),
            "expired suppressions can't be removed";
        "the removal of expired webhook secrets": MINUTE, webhooks.forget_secrets(&stop),
            "expired webhook secrets can't be removed";
        "the folding of old months": HOUR, reports.fold_months(log_retention_days),
            "old message counts can't be folded";
    }
    let folding = fold_counters(reports.clone(), shutdown.soft.clone());
    shutdown.spawn_vital("the counters", folding);
    let (tracker, stop) = (shutdown.tracker.clone(), shutdown.soft.clone());
    let polling = read_addresses(mailboxes.clone(), tracker, stop);
    shutdown.spawn_vital("the address polling", polling);
}

/// Folds the journal's counts.
async fn fold_counters(reports: Reports, stop: CancellationToken) {
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
async fn read_addresses(mailboxes: Mailboxes, tracker: TaskTracker, stop: CancellationToken) {
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
