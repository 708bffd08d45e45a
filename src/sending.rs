//! Floor 2: the way of a message, the same for both doors: gate → mailbox → message → token → submit
//! → verdict → journal.

mod attempt;
pub mod compose;
mod gate;
pub mod journal;
mod pipeline;
pub mod prepared;
mod retry;
mod spooled;
pub mod submitted;
mod verify;

use std::sync::Arc;

use sqlx::PgPool;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::SendingSettings;
use crate::mailboxes::Mailboxes;
use crate::providers::mail::MailProviders;
use crate::shutdown::Shutdown;
use crate::types::clock::SharedClock;

pub use gate::{Blocked, admit};
use journal::Journal;
pub use pipeline::{Outcome, Receipt, SendError};

/// Sends mail.
#[derive(Debug, Clone)]
pub struct Sending {
    pool: PgPool,
    clock: SharedClock,
    providers: Arc<MailProviders>,
    mailboxes: Mailboxes,
    journal: Journal,
    settings: Arc<SendingSettings>,
    tracker: TaskTracker,
    /// Places for attempts of stored messages.
    retries: Arc<Semaphore>,
    /// The process is about to end.
    stop: CancellationToken,
}

impl Sending {
    /// Over a database, the mailboxes and their providers. Messages are sent on the tracker of
    /// `shutdown`, so that a caller who goes away leaves nothing half done.
    #[must_use]
    pub fn new(
        pool: PgPool,
        clock: SharedClock,
        providers: Arc<MailProviders>,
        mailboxes: Mailboxes,
        journal: Journal,
        settings: Arc<SendingSettings>,
        shutdown: &Shutdown,
    ) -> Self {
        Self {
            pool,
            clock,
            providers,
            mailboxes,
            journal,
            settings,
            tracker: shutdown.tracker.clone(),
            retries: Arc::new(Semaphore::new(retry::PLACES)),
            stop: shutdown.soft.clone(),
        }
    }
}
