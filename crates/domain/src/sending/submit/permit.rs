//! The check before the last part of a message is transmitted: whether this process may still send it.

use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use sqlx::PgPool;

use mailgate_providers::mail::transport::{NOT_CONFIRMED, SendPermit};
use mailgate_storage::database::outage::trouble;
use mailgate_storage::spool;
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::LogId;
use mailgate_types::lease::Lease;

/// For a stored message: a process may send it only while its row says that it has not been transmitted.
#[derive(Debug)]
pub(in crate::sending) struct StoredPermit {
    pub(in crate::sending) pool: PgPool,
    pub(in crate::sending) lease: Lease,
    pub(in crate::sending) clock: SharedClock,
    pub(in crate::sending) id: LogId,
    pub(in crate::sending) due_at: Option<DateTime<Utc>>,
    /// Whether the message was withheld for a reason of the gateway's own.
    pub(in crate::sending) withheld: AtomicBool,
}

impl StoredPermit {
    /// Whether the message was withheld: that is no attempt, and uses up none of its retries.
    pub(in crate::sending) fn was_withheld(&self) -> bool {
        self.withheld.load(Ordering::Relaxed)
    }

    async fn mark(&self) -> Result<(), String> {
        let marked = async {
            let mut connection = self.pool.acquire().await?;
            let (gateway, now) = (self.lease.id(), self.clock.now());
            spool::mark_leaving(&mut connection, gateway, self.id, self.due_at, now).await
        };
        match marked.await {
            Ok(true) => SendPermit::check(&self.lease).await,
            Ok(false) => {
                tracing::warn!(log_id = %self.id, "a stored message was taken over before it was sent");
                Err(NOT_CONFIRMED.to_owned())
            }
            Err(error) => {
                trouble!(warn, error, log_id = %self.id, "a stored message is not sent: its submission can't be recorded");
                Err("the gateway's database can't be written".to_owned())
            }
        }
    }
}

impl SendPermit for StoredPermit {
    fn check(&self) -> BoxFuture<'_, Result<(), String>> {
        async {
            let answer = self.mark().await;
            self.withheld.store(answer.is_err(), Ordering::Relaxed);
            answer
        }
        .boxed()
    }
}
