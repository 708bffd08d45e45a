//! Floor 2: the way of a message, the same for both doors: gate → mailbox → message → token → submit
//! → verdict → journal.

mod attempt;
pub mod budget;
pub mod draft;
mod ending;
mod facts;
mod gate;
mod hand_over;
pub mod idempotency;
mod in_flight;
pub mod journal;
mod keeper;
mod leaving;
mod minimal;
mod outcome;
mod pace;
mod persist;
mod pipeline;
pub mod prepared;
pub mod quota;
pub mod raw_message;
mod recover;
mod retry;
mod settle;
mod spooled;
mod submit;
mod verify;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use sqlx::PgPool;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::accounts::Accounts;
use crate::config::SendingSettings;
use crate::mailboxes::Mailboxes;
use crate::providers::mail::MailProviders;
use mailgate_server::shutdown::Shutdown;
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::LogId;
use mailgate_types::lease::Lease;

use budget::Budget;
pub use gate::Blocked;
use in_flight::InFlight;
use journal::Journal;
pub use keeper::{LeaseKeeper, begin};
pub use outcome::{Answer, Outcome, Receipt};
use quota::Quota;
pub use submit::{Refusal, Request};

/// No outcome can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The gateway did not take the message: nothing was sent, and the caller may try again.
    #[error("The gateway can't take the message at the moment")]
    NotTaken,
    /// As many messages of the app as may wait do so already, and this one can't leave now: nothing was
    /// sent, and the caller may try again later.
    #[error(
        "The app already has as much mail waiting as it may; nothing was sent, try again later"
    )]
    QuotaFull,
    /// Something went wrong in the gateway, and the message may be out.
    #[error("Something went wrong on our side, and the message may have been sent")]
    Unknown,
    /// The message that the idempotency key stands for is still on its way.
    #[error("A request with this Idempotency-Key is still in progress")]
    InFlight,
    /// The idempotency key stands for another message.
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
    /// Places for attempts of stored messages.
    retries: Arc<Semaphore>,
    /// What this process works on.
    held: InFlight,
    /// What it seemed to have in hand and not to work on when it looked last.
    forgotten: Arc<Mutex<HashSet<LogId>>>,
    lease: Lease,
    nobody_sends: CancellationToken,
    /// Tells when the last copy is gone.
    _sends: Arc<DropGuard>,
    /// Bytes of messages in all.
    budget: Budget,
    /// What may wait for each app.
    quota: Quota,
    /// The process is about to end.
    stop: CancellationToken,
}

impl Sending {
    /// Over a database, the apps, their mailboxes and providers. Messages are sent on the tracker of
    /// `shutdown`, so that a caller who goes away leaves nothing half done.
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
            retries: Arc::new(Semaphore::new(retry::PLACES)),
            budget,
            quota,
            stop: shutdown.soft.clone(),
        }
    }

    /// What has to run for the lease of this process as long as anybody sends.
    #[must_use]
    pub fn lease_keeper(&self) -> LeaseKeeper {
        let (lease, nobody_sends) = (self.lease.clone(), self.nobody_sends.clone());
        LeaseKeeper::new(self.pool.clone(), lease, nobody_sends)
    }

    /// Room for the bytes of messages.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}
