//! What else the audit trail tells: sign-ins, keys that were shown, and messages that were cancelled.

use serde_json::json;

use super::SeedError;
use super::apps::{Apps, HOME, OFFICE, subscriber};
use super::fate::Fate;
use super::mail::Written;
use super::people::Company;
use super::period::Period;
use super::stopped_clock::StoppedClock;
use crate::daemon::Daemon;
use crate::dev::demo::Demo;
use mailgate_domain::accounts::Visitor;
use mailgate_domain::history::History;
use mailgate_types::audit::{AuditAction, AuditEntry};

/// Browsers.
const BROWSERS: [&str; 2] = [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Safari/605.1.15",
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
];

/// Hours since each sign-in.
const SIGN_INS: [i64; 9] = [334, 317, 262, 216, 191, 143, 75, 47, 3];

/// Signs in now and then, and records what was done.
pub(super) async fn write(
    daemon: &Daemon,
    history: &History,
    demo: &Demo,
    apps: &Apps,
    written: &[Written],
    period: &Period,
) -> Result<(), SeedError> {
    let owner = demo.app.subscriber;
    let subscribers = daemon.accounts.subscribers().await?;
    if let Some(known) = subscribers.into_iter().find(|known| known.id == owner) {
        for (place, hours) in SIGN_INS.into_iter().enumerate() {
            let at = StoppedClock::at(period.ago(hours, 2));
            let visitor = Visitor {
                address: if place % 3 == 1 { HOME } else { OFFICE },
                user_agent: BROWSERS[place % BROWSERS.len()].to_owned(),
                session: None,
            };
            daemon
                .accounts
                .by_clock(at)
                .sign_in(&known, &visitor)
                .await?;
        }
    }
    let of_app = |action, company| AuditEntry::of_app(action, apps.of(company));
    let mut entries = vec![
        (
            period.ago(316, 41),
            of_app(AuditAction::SendKeyRevealed, Company::Northwind),
        ),
        (
            period.ago(191, 1),
            of_app(AuditAction::ConnectSessionCreated, Company::Talentwerk)
                .with(json!({ "login_hint": "diego.navarro@talentwerk.example" })),
        ),
        (
            period.ago(143, 0),
            of_app(AuditAction::SendKeyRevealed, Company::Talentwerk),
        ),
        (
            period.ago(46, 30),
            AuditEntry::of_subscriber(AuditAction::LogsExported, owner),
        ),
    ];
    let cancelled = written
        .iter()
        .filter(|one| one.plan.fate == Fate::Cancelled);
    entries.extend(cancelled.map(|one| {
        let opening = &one.past.opening;
        let entry = AuditEntry::of_app(AuditAction::MessageCanceled, opening.app).on(opening.id);
        (opening.opened_at - chrono::TimeDelta::minutes(95), entry)
    }));
    Ok(history
        .write_trail(subscriber(owner, OFFICE), &entries)
        .await?)
}
