//! The last failure that is the mailbox's own concern: that a recipient doesn't exist says nothing of the mailbox.

use crate::explanation::{self, Concern, Explanation};
use mailgate_storage::mailboxes::owned::{FailedMessage, OwnedMailbox};

/// A failure and its explanation.
#[derive(Debug, Clone)]
pub struct OwnFailure<'a> {
    /// The message.
    pub message: &'a FailedMessage,
    /// Its explanation.
    pub explanation: Explanation,
}

/// The newest failure among the mailbox's last messages that concerns the mailbox. Those before its last connection are
/// left out: they have led to it.
#[must_use]
pub fn own_failure(mailbox: &OwnedMailbox) -> Option<OwnFailure<'_>> {
    let since_connected = (mailbox.failures.iter()).filter(|failed| {
        failed
            .log
            .moment()
            .is_some_and(|at| at >= mailbox.connected_at)
    });
    since_connected
        .map(|message| OwnFailure {
            message,
            explanation: explanation::of_failure(&message.text, message.status),
        })
        .find(|failure| failure.explanation.concerns == Concern::Mailbox)
}
