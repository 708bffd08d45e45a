//! `mailgate dev --seed`: a realistic fortnight of three apps, so that the pages have something to show.
//!
//! All of it is the same on every run, relative to the moment of the start, but for secrets and ids. Accounts, keys,
//! mailboxes and endpoints are made by the gateway's own functions with a clock that stands in the past; messages and
//! what follows from them by [`mailgate_domain::history`].

mod apps;
mod attempts;
mod endpoints;
mod events;
mod failures;
mod fate;
mod keys;
mod letter;
mod mail;
mod mailboxes;
mod people;
mod period;
mod plan;
mod random;
mod received;
mod refused;
mod responses;
mod stopped_clock;
mod texts;
mod trail;

use chrono::{DateTime, Utc};
use serde_json::json;

use self::people::PEOPLE;
use self::period::Period;
use self::plan::MESSAGES;
use self::stopped_clock::StoppedClock;
use super::demo::Demo;
use super::home::{Home, HomeError};
use crate::daemon::Daemon;
use mailgate_domain::accounts::{
    ApiSecretError, ChangeError, CreateError, RenewError, SendKeyError, SignInError,
};
use mailgate_domain::history::{History, HistoryError, PastMessage};
use mailgate_domain::mailboxes::ConnectError;
use mailgate_domain::webhooks::ConfigurationError;
use mailgate_sandbox::authorize::AuthorizeError;
use mailgate_sandbox::provider::SandboxProvider;
use mailgate_types::clock::SharedClock;

/// The file that says when the state was seeded.
const FILE: &str = "seed.json";

/// Why the sandbox can't be filled.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox can't be seeded: {0}")]
pub enum SeedError {
    /// Its file.
    Home(#[from] HomeError),
    /// An app.
    App(#[from] CreateError),
    /// A change of an app.
    Change(#[from] ChangeError),
    /// A send key.
    SendKey(#[from] SendKeyError),
    /// A renewed key.
    Renew(#[from] RenewError),
    /// An API secret.
    ApiSecret(#[from] ApiSecretError),
    /// A mailbox.
    Connect(#[from] ConnectError),
    /// The authorization at the provider.
    Authorize(#[from] AuthorizeError),
    /// A webhook endpoint.
    Endpoint(#[from] ConfigurationError),
    /// A sign-in.
    SignIn(#[from] SignInError),
    /// The messages, and what follows from them.
    History(#[from] HistoryError),
    /// The sandbox's inbox.
    Inbox(#[from] std::io::Error),
    /// The database.
    Database(#[from] sqlx::Error),
    /// A seeded text isn't valid in a message.
    #[error("the sandbox can't be seeded: {0:?} isn't valid in a message")]
    Text(String),
}

/// A seeding that is still to be done.
#[derive(Debug)]
pub(super) struct Seed(Period);

impl Seed {
    /// `None` if the state has been seeded before.
    pub(super) fn wanted(
        home: &Home,
        now: DateTime<Utc>,
        log_retention_days: u32,
    ) -> Result<Option<Self>, HomeError> {
        let is_done = home.read(FILE)?.is_some();
        Ok((!is_done).then(|| Self(Period::before(now, log_retention_days))))
    }

    /// The clock by which the demo begins, if it isn't there yet.
    pub(super) fn beginning(&self) -> SharedClock {
        StoppedClock::at(self.0.set_up(0))
    }

    /// Adds everything; returns what there is in words.
    pub(super) async fn sow(
        &self,
        home: &Home,
        daemon: &Daemon,
        provider: &SandboxProvider,
        demo: &Demo,
    ) -> Result<String, SeedError> {
        let period = &self.0;
        let history = History::new(daemon.pool.clone(), period.now);
        history.make_days(period.set_up(0).date_naive()).await?;
        let apps = apps::create(daemon, demo, period).await?;
        let seats = mailboxes::connect(daemon, provider, demo, &apps, period).await?;
        let uses = keys::create(daemon, demo, &apps, &seats, period).await?;
        let endpoints = endpoints::create(daemon, demo, &apps, period).await?;

        let written = mail::past(plan::messages(), &seats, period)?;
        let scheduled = mail::scheduled(plan::scheduled(), &seats, period)?;
        let responses = responses::of(&written, period);
        let events = events::of(&written, &responses);
        let events = endpoints::deliver(&endpoints, events, period);
        trail::write(daemon, &history, demo, &apps, &written, period).await?;
        received::add(&provider.inbox, &written).await?;

        let messages: Vec<PastMessage> = written.into_iter().map(|one| one.past).collect();
        history
            .write_mail(&messages, &scheduled, &demo.app.send_key)
            .await?;
        history
            .write_responses(&responses.bounces, &responses.replies)
            .await?;
        history.write_deliveries(&events).await?;
        history
            .write_refusals(&refused::past(&apps, period), &uses)
            .await?;
        let done = json!({ "seeded_at": period.now });
        home.write(FILE, &done.to_string())?;
        Ok(format!(
            "Seeded: 3 apps, {} mailboxes, {},{:03} messages",
            PEOPLE.len(),
            MESSAGES / 1_000,
            MESSAGES % 1_000
        ))
    }
}
