//! The keys that the apps and their subscriber have.

use std::collections::BTreeSet;

use chrono::TimeDelta;

use super::SeedError;
use super::apps::{Apps, OFFICE, subscriber};
use super::mailboxes::Seat;
use super::people::{Company, PEOPLE};
use super::period::Period;
use super::stopped_clock::StoppedClock;
use crate::daemon::Daemon;
use crate::dev::demo::Demo;
use mailgate_domain::accounts::{Change, NewApiSecret, NewSendKey};
use mailgate_domain::history::PastUse;
use mailgate_types::ids::CredentialId;
use mailgate_types::networks::Networks;
use mailgate_types::scope::Scope;

/// Creates further keys, and renews one; returns when they were last used.
pub(super) async fn create(
    daemon: &Daemon,
    demo: &Demo,
    apps: &Apps,
    seats: &[Seat],
    period: &Period,
) -> Result<Vec<PastUse>, SeedError> {
    let owner = demo.app.subscriber;
    let author = subscriber(owner, OFFICE);
    let by = |hours| {
        daemon
            .accounts
            .by_clock(StoppedClock::at(period.ago(hours, 10)))
    };
    let key = |name: &str| NewSendKey {
        name: name.to_owned(),
        expires_at: None,
        allowed: Networks::default(),
        mailboxes: BTreeSet::new(),
    };
    let shop = NewSendKey {
        allowed: Networks::parse(&["198.51.100.0/24".to_owned()]).unwrap_or_default(),
        ..key("Order mails")
    };
    let trial = NewSendKey {
        expires_at: Some(period.now + TimeDelta::days(6)),
        ..key("Contractor, until the end of the month")
    };
    let own = NewSendKey {
        mailboxes: of_jobs(seats),
        ..key("Careers page")
    };
    let [northwind, talentwerk] = [Company::Northwind, Company::Talentwerk].map(|it| apps.of(it));
    let (shop, _) = by(316).create_send_key(northwind, shop, author).await?;
    let (trial, _) = by(190).create_send_key(northwind, trial, author).await?;
    let (own, _) = by(262).create_send_key(talentwerk, own, author).await?;
    by(142).renew_send_key(talentwerk, None, author).await?;
    let secret = NewApiSecret {
        name: "Dashboard".to_owned(),
        scopes: vec![Scope::AppsRead, Scope::LogsRead, Scope::WebhooksRead],
        expires_at: None,
    };
    let (secret, _) = by(238).create_api_secret(owner, secret, author).await?;
    let shown = Change {
        logo_url: Some("https://talentwerk.example/logo.png".to_owned()),
        ..Change::default()
    };
    by(214).change_app(talentwerk, &shown, author).await?;
    Ok(vec![
        PastUse::Main(demo.app.app, period.ago(0, 11)),
        PastUse::Main(northwind, period.ago(0, 2)),
        PastUse::Main(talentwerk, period.ago(0, 6)),
        PastUse::SendKey(shop.id, period.ago(0, 19)),
        PastUse::SendKey(trial.id, period.ago(27, 0)),
        PastUse::SendKey(own.id, period.ago(5, 40)),
        PastUse::ApiSecret(secret.id, period.ago(1, 5)),
    ])
}

fn of_jobs(seats: &[Seat]) -> BTreeSet<CredentialId> {
    let mailboxes = PEOPLE.iter().zip(seats);
    let jobs = mailboxes.filter(|(person, _)| person.address.starts_with("jobs@"));
    jobs.map(|(_, seat)| seat.credential).collect()
}
