//! A mailbox's status in words, with the reason.

use chrono::{DateTime, Utc};

use crate::page::words::{Moment, Status};
use mailgate_domain::mailboxes::OwnedMailbox;

/// The status, since when, and why.
pub(crate) struct State {
    pub(crate) status: Status,
    /// Unknown for a pause: only its end is stored.
    pub(crate) since: Option<Moment>,
    pub(crate) why: &'static str,
}

impl State {
    pub(crate) fn new(mailbox: &OwnedMailbox) -> Self {
        let (word, class, since, why) = match (&mailbox.disconnected, mailbox.parked_until) {
            (Some(ended), _) => {
                let (word, class, why) = reason(&ended.reason);
                (word, class, Some(ended.at), why)
            }
            (None, Some(_)) => (
                "Paused",
                "busy",
                None,
                "The provider asked to pause sending. Messages are queued and sent afterwards.",
            ),
            (None, None) => ("Connected", "good", Some(mailbox.connected_at), ""),
        };
        Self {
            status: Status { word, class },
            since: since.map(Moment::new),
            why,
        }
    }
}

fn reason(reason: &str) -> (&'static str, &'static str, &'static str) {
    let why = match reason {
        "invalid_grant" => {
            "The provider ended the access: it was withdrawn, has expired, or the password was changed. The user must reconnect the mailbox."
        }
        "interaction_required" => {
            "The provider requires the user to act in a browser, for example because of an organization's policy. The user must reconnect the mailbox."
        }
        "consent_required" => {
            "The user, or an administrator, must consent to the access again. Reconnecting the mailbox asks for this."
        }
        "login_required" => {
            "The provider requires the user to sign in again. The user must reconnect the mailbox."
        }
        "replaced" => {
            return (
                "Replaced",
                "plain",
                "The user connected another address instead.",
            );
        }
        "removed" => {
            return (
                "Disconnected",
                "plain",
                "You disconnected this mailbox, here or through the API.",
            );
        }
        _ => "The user must reconnect the mailbox.",
    };
    ("Disconnected", "bad", why)
}

/// When the pause that its provider requested ends.
pub(crate) fn parked(until: Option<DateTime<Utc>>) -> Option<Moment> {
    until.map(Moment::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailgate_types::event::DisconnectReason;

    #[test]
    fn every_reason_has_words_of_its_own() {
        let unknown = reason("").2;
        for known in DisconnectReason::ALL {
            assert_ne!(reason(known.as_str()).2, unknown, "{}", known.as_str());
        }
    }
}
