//! Floor 2: the path of a message, the same for HTTP and SMTP: gate → mailbox → message → token → submit →
//! verdict → journal.

pub mod accept;
pub mod journal;
mod outcome;
pub mod queue;
mod recovery;
mod submit;

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use sqlx::PgPool;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::accounts::Accounts;
use crate::mailboxes::Mailboxes;
use mailgate_providers::mail::MailProviders;
use mailgate_server::shutdown::Shutdown;
use mailgate_settings::SendingSettings;
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::LogId;
use mailgate_types::lease::Lease;

use accept::budget::Budget;
pub use accept::gate::Blocked;
use accept::quota::Quota;
pub use accept::{Refusal, Request};
use journal::Journal;
use journal::in_flight::InFlight;
use outcome::sent_mail::SentMail;
pub use outcome::{Answer, Outcome, Receipt};
pub use queue::clock_set::ClockSet;
use queue::places::RetryPlaces;
pub use recovery::lease::{LeaseKeeper, begin};

/// Messages that are withdrawn at the same time.
const WITHDRAWALS: usize = 4;

/// Why a send has no outcome to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The gateway did not take the message: nothing was sent, and the caller may try again.
    #[error("The gateway can't take the message at the moment")]
    NotTaken,
    /// The app already has as many messages waiting as its quota allows, and this one can't be sent now: nothing was
    /// sent, and the caller may try again later.
    #[error(
        "Your apps already have as much mail waiting as they may; nothing was sent, try again later"
    )]
    QuotaFull,
    /// An internal error occurred, and the message may have been sent.
    #[error("Something went wrong on our side, and the message may have been sent")]
    Unknown,
    /// The message that the idempotency key stands for is still being processed.
    #[error("A request with this Idempotency-Key is still in progress")]
    InFlight,
    /// The idempotency key was used for another message.
    #[error("The Idempotency-Key was used for another message: use a new key for this one")]
    KeyOfAnother,
}

/// Sends mail.
#[derive(Debug, Clone)]
pub struct Sending {
    pool: PgPool,
    clock: SharedClock,
    providers: Arc<MailProviders>,
    accounts: Accounts,
    mailboxes: Mailboxes,
    journal: Journal,
    settings: Arc<SendingSettings>,
    tracker: TaskTracker,
    /// Limits concurrent attempts of stored messages.
    retries: RetryPlaces,
    /// See [`recovery::LOOKS`].
    looks: Arc<Semaphore>,
    /// Copies for the sent mail that are being filed.
    sent_mail: SentMail,
    /// Limits concurrent withdrawals.
    withdrawals: Arc<Semaphore>,
    /// The messages that this process is working on.
    held: InFlight,
    /// Messages that the last check found claimed by this process without any task working on them.
    forgotten: Arc<Mutex<HashSet<LogId>>>,
    lease: Lease,
    nobody_sends: CancellationToken,
    /// Cancels `nobody_sends` when the last clone is dropped.
    _sends: Arc<DropGuard>,
    /// Limits the bytes of messages held in memory.
    budget: Budget,
    /// How much each app may have waiting.
    quota: Quota,
    /// No idempotency key stored by the previous release is left.
    only_own_names: Arc<AtomicBool>,
    /// The process is shutting down.
    stop: CancellationToken,
}

impl Sending {
    /// Creates a sender over the database, accounts, mailboxes and providers. Messages are sent on the task tracker
    /// of `shutdown`, so that a disconnecting caller leaves nothing half done.
    #[expect(clippy::too_many_arguments, reason = "each is a part of the gateway")]
    #[must_use]
    pub fn new(
        pool: PgPool,
        clock: SharedClock,
        providers: Arc<MailProviders>,
        accounts: Accounts,
        mailboxes: Mailboxes,
        journal: Journal,
        lease: Lease,
        settings: Arc<SendingSettings>,
        budget: Budget,
        quota: Quota,
        shutdown: &Shutdown,
    ) -> Self {
        let nobody_sends = CancellationToken::new();
        Self {
            held: InFlight::default(),
            forgotten: Arc::default(),
            _sends: Arc::new(nobody_sends.clone().drop_guard()),
            nobody_sends,
            lease,
            pool,
            clock,
            providers,
            accounts,
            mailboxes,
            journal,
            settings,
            tracker: shutdown.tracker.clone(),
            retries: RetryPlaces::default(),
            looks: Arc::new(Semaphore::new(recovery::LOOKS)),
            sent_mail: SentMail::default(),
            withdrawals: Arc::new(Semaphore::new(WITHDRAWALS)),
            budget,
            quota,
            only_own_names: Arc::default(),
            stop: shutdown.soft.clone(),
        }
    }

    /// The task that keeps this process's lease; it must run for as long as any clone exists.
    #[must_use]
    pub fn lease_keeper(&self) -> LeaseKeeper {
        let (lease, clock) = (self.lease.clone(), Arc::clone(&self.clock));
        LeaseKeeper::new(self.pool.clone(), lease, clock, self.nobody_sends.clone())
    }

    /// The budget for bytes of messages in memory.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}
