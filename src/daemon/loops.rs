//! The background loops, on the daemon's tracker.

use std::sync::Arc;

use sqlx::PgPool;

use super::DaemonError;
use crate::certificates::expiry;
use crate::workers::{self, Retention};
use mailgate_domain::accounts::{Accounts, OwnMail, SignInMail};
use mailgate_domain::billing::Billing;
use mailgate_domain::billing::notices::{MailedPages, Notices};
use mailgate_domain::certificates::Certificates;
use mailgate_domain::mailboxes::Mailboxes;
use mailgate_domain::reports::{Refusals, Reports};
use mailgate_domain::sending::Sending;
use mailgate_domain::sending::journal::{Journal, journal};
use mailgate_domain::webhooks::Webhooks;
use mailgate_providers::mail::MailProviders;
use mailgate_providers::relay::Relay;
use mailgate_server::shutdown::Shutdown;
use mailgate_settings::{Settings, WebhookSettings};
use mailgate_storage::database::readiness::Readiness;
use mailgate_types::clock::SharedClock;
use mailgate_types::lease::Lease;
use mailgate_types::seal::SealKeys;

/// Starts billing, its loops, and the notices that result from it.
pub(super) fn start_billing(
    settings: &Settings,
    relay: Option<Arc<Relay>>,
    seal_keys: &Arc<SealKeys>,
    pool: &PgPool,
    clock: &SharedClock,
    shutdown: &Shutdown,
) -> Result<Billing, DaemonError> {
    let (tracker, stop) = (&shutdown.tracker, &shutdown.soft);
    let billing = Billing::new(
        pool.clone(),
        Arc::clone(clock),
        settings.payprov.as_ref(),
        tracker.clone(),
        settings.log_retention_days,
    )?;
    shutdown.spawn_vital(
        "billing",
        workers::billing_loop(billing.clone(), tracker.clone(), stop.clone()),
    );
    let billing_page = mailed_portal(settings).map(|portal| format!("{portal}/billing"));
    let pages = MailedPages {
        billing: billing_page.map(Arc::from),
        portal: mailed_links(settings).map(|(portal, _)| (portal.into(), Arc::clone(seal_keys))),
    };
    let notices = Notices::new(pool.clone(), Arc::clone(clock), relay, pages);
    shutdown.spawn_vital("notices", workers::send_notices(notices, stop.clone()));
    Ok(billing)
}

/// The portal's address for emails: without `http.base_url` it would be a local address, which is useless in an email.
fn mailed_portal(settings: &Settings) -> Option<String> {
    let portal = (settings.portal).address(&settings.http_base_url);
    portal.filter(|address| !address.starts_with('/'))
}

/// Sets up the relay, if there is one.
pub(super) fn relay(
    settings: &Settings,
    hostname: &str,
) -> Result<Option<Arc<Relay>>, DaemonError> {
    let relay = settings.relay.as_ref();
    let relay = relay.map(|relay| Relay::new(relay, hostname).map(Arc::new));
    Ok(relay.transpose()?)
}

/// The target of mailed links, and the portal's operator; `None` without a target.
pub(super) fn mailed_links(settings: &Settings) -> Option<(String, String)> {
    let portal = mailed_portal(settings).filter(|_| settings.portal.enabled)?;
    let operator = settings.portal.operator(&portal);
    Some((portal, operator))
}

/// The kinds of mail that the gateway itself sends.
pub(super) fn own_mail(relay: Option<&Arc<Relay>>, links: Option<&(String, String)>) -> OwnMail {
    match (relay, links) {
        (None, _) => OwnMail::None,
        (Some(_), None) => OwnMail::Notices,
        (Some(_), Some(_)) => OwnMail::Links,
    }
}

/// Starts mailing sign-in links to the portal; `None` without a relay, too.
pub(super) fn start_sign_in_mail(
    links: Option<(String, String)>,
    relay: Option<Arc<Relay>>,
    accounts: &Accounts,
    shutdown: &Shutdown,
) -> Option<SignInMail> {
    let ((portal, operator), relay) = (links?, relay?);
    let (mail, mailer) = SignInMail::new(accounts.clone(), relay, portal, operator);
    shutdown.spawn_vital("the sign-in link mailer", mailer.run(shutdown.soft.clone()));
    Some(mail)
}

/// Starts webhooks, and the loops that deliver them.
pub(super) fn start_webhooks(
    settings: &WebhookSettings,
    seal_keys: &Arc<SealKeys>,
    pool: &PgPool,
    clock: &SharedClock,
    shutdown: &Shutdown,
) -> Result<Webhooks, DaemonError> {
    let (tracker, stop) = (&shutdown.tracker, &shutdown.soft);
    let webhooks = Webhooks::new(
        pool.clone(),
        Arc::clone(seal_keys),
        Arc::clone(clock),
        settings,
    )?;
    shutdown.spawn_vital(
        "the webhook listener",
        workers::wake_webhooks(pool.clone(), webhooks.clone(), stop.clone()),
    );
    shutdown.spawn_vital(
        "the webhook dispatcher",
        webhooks.clone().dispatch(tracker.clone(), stop.clone()),
    );
    Ok(webhooks)
}

pub(super) fn start_journal(
    pool: &PgPool,
    clock: &SharedClock,
    lease: &Lease,
    shutdown: &Shutdown,
) -> Journal {
    let (journal, task) = journal(pool.clone(), Arc::clone(clock), lease.clone());
    shutdown.spawn_vital("the journal", task.run());
    journal
}

/// Starts the loops for messages waiting for their next attempt.
pub(super) fn keep_sending(
    sending: Sending,
    providers: Arc<MailProviders>,
    readiness: Readiness,
    accounts: &Accounts,
    shutdown: &Shutdown,
) {
    let (shared, accounts) = (Arc::clone(&providers), accounts.clone());
    let living = move |living| {
        shared.share_among(living);
        accounts.share_among(living);
    };
    let keeper = sending.lease_keeper();
    let keeping = workers::keep_lease(keeper, readiness, living, shutdown.clone());
    shutdown.spawn_vital("the lease renewal", keeping);
    let moving = workers::keep_spool_moving(sending, providers, shutdown.soft.clone());
    shutdown.spawn_vital("the queue", moving);
}

/// Collects refusals from HTTP and SMTP, and stores them.
pub(super) fn keep_refusals(pool: &PgPool, clock: &SharedClock, shutdown: &Shutdown) -> Refusals {
    let refusals = Refusals::new(pool.clone(), Arc::clone(clock));
    shutdown.spawn_vital(
        "the refusal writer",
        workers::write_refusals(refusals.clone(), shutdown.soft.clone()),
    );
    refusals
}

/// Starts monitoring the database's availability.
pub(super) fn watch_database(
    pool: &PgPool,
    clock: &SharedClock,
    lease: &Lease,
    retention_days: u32,
    shutdown: &Shutdown,
) -> Readiness {
    let readiness = Readiness::new(pool.clone(), Arc::clone(clock), lease.clone());
    let watch = workers::watch_database(
        readiness.clone(),
        pool.clone(),
        Arc::clone(clock),
        retention_days,
        shutdown.soft.clone(),
    );
    shutdown.tracker.spawn(watch);
    readiness
}

/// Reports certificates and client secrets that expire soon, now and daily.
pub(super) async fn watch_expiries(
    mut certificates: expiry::Expiring,
    mut secrets: workers::ClientSecrets,
    issued: Option<&Certificates>,
    clock: &SharedClock,
    shutdown: &Shutdown,
) {
    certificates.add(issued.map(Certificates::served).unwrap_or_default());
    certificates.look(clock.now()).await;
    secrets.look(clock.now());
    shutdown.tracker.spawn(expiry::run(
        certificates,
        secrets,
        Arc::clone(clock),
        shutdown.soft.clone(),
    ));
}

/// Starts the housekeeping loops.
pub(super) fn look_after(
    accounts: &Accounts,
    mailboxes: &Mailboxes,
    webhooks: &Webhooks,
    pool: &PgPool,
    clock: SharedClock,
    retention: Retention,
    shutdown: &Shutdown,
) {
    let reports = Reports::new(pool.clone(), Arc::clone(&clock));
    let log_days = retention.log_days;
    workers::start_jobs(accounts, mailboxes, webhooks, &reports, log_days, shutdown);
    let (tracker, stop) = (&shutdown.tracker, &shutdown.soft);
    shutdown.spawn_vital(
        "the reply polling",
        workers::poll_replies(mailboxes.clone(), tracker.clone(), stop.clone()),
    );
    shutdown.spawn_vital(
        "the refresh of idle tokens",
        workers::refresh_idle(mailboxes.clone(), stop.clone()),
    );
    shutdown.spawn_vital(
        "the listener for ended sessions",
        workers::end_sessions(pool.clone(), accounts.clone(), stop.clone()),
    );
    shutdown.spawn_vital(
        "the sign-of-life writer",
        workers::leave_signs_of_life(pool.clone(), Arc::clone(&clock), stop.clone()),
    );
    shutdown.spawn_vital(
        "the log's partitions",
        workers::keep_partitions(pool.clone(), clock, retention, stop.clone()),
    );
    shutdown.spawn_vital(
        "the log's indexes",
        workers::build_log_indexes(pool.clone(), stop.clone()),
    );
}
