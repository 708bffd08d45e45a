//! Writes the end of a message.

use std::sync::Arc;

use tracing::Instrument as _;

use super::{WRITE_ATTEMPTS, pause_before};
use crate::sending::Sending;
use crate::sending::journal::NotWritten;
use crate::sending::journal::ending::Ending;
use mailgate_storage::database::outage::{Outage as _, trouble};
use mailgate_types::log_status::LogStatus;

/// The outcome of writing the end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sending) enum Closed {
    /// It is written, or will be.
    Here,
    /// It is not written: another process has ended this one, and finishes the message.
    Ended,
}

impl Sending {
    /// Writes the end of a message. The provider's reply is final whatever happens in the database, so a failure isn't
    /// reported to the caller, who would only send again; the write is retried until it succeeds or the process ends.
    pub(in crate::sending) async fn close(&self, ending: Ending) -> Closed {
        let ending = Arc::new(ending);
        let error = match self.try_close(&ending, WRITE_ATTEMPTS).await {
            Ok(closed) => return closed,
            Err(error) => error,
        };
        trouble!(
            error,
            error,
            log_id = %ending.closing.id,
            status = ending.closing.status.as_str(),
            "a message's outcome could not be recorded yet; it will be retried"
        );
        let sending = self.clone();
        let hold = self.held.hold(ending.closing.id);
        let task = async move {
            let _hold = hold;
            let written = tokio::select! {
                written = sending.try_close(&ending, u32::MAX) => written,
                () = sending.stop.cancelled() => sending.try_close(&ending, 1).await,
            };
            if written.is_err() {
                tracing::error!(
                    log_id = %ending.closing.id,
                    status = ending.closing.status.as_str(),
                    "a message's outcome was not recorded; its spool row stays open"
                );
            }
        };
        self.tracker.spawn(task.in_current_span());
        Closed::Here
    }

    /// That a provider accepted a message is a fact, written even if this process was ended.
    async fn try_close(&self, ending: &Arc<Ending>, attempts: u32) -> Result<Closed, NotWritten> {
        let mut attempt = 1;
        loop {
            let error = match self.journal.close(Arc::clone(ending)).await {
                Ok(()) => return Ok(Closed::Here),
                Err(NotWritten::Ended) if ending.closing.status != LogStatus::Sent => {
                    return Ok(Closed::Ended);
                }
                Err(NotWritten::Ended) => match self.record_sent_anyway(ending).await {
                    Ok(()) => return Ok(Closed::Here),
                    Err(error) => {
                        trouble!(error, error, log_id = %ending.closing.id, "a sent message can't be recorded as sent yet");
                        let is_outage = error.is_outage();
                        NotWritten::Trouble { is_outage }
                    }
                },
                Err(error) => error,
            };
            if attempt >= attempts {
                return Err(error);
            }
            tokio::time::sleep(pause_before(attempt)).await;
            attempt += 1;
        }
    }
}
