//! The message for an action, on the page that follows it.

/// A message, and how it looks: empty without an action.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Said {
    pub(crate) words: &'static str,
    /// `good`, `busy` or `bad`.
    pub(crate) class: &'static str,
}

impl Said {
    /// It went well.
    pub(crate) const fn good(words: &'static str) -> Self {
        Self {
            words,
            class: "good",
        }
    }

    const fn busy(words: &'static str) -> Self {
        Self {
            words,
            class: "busy",
        }
    }

    const fn bad(words: &'static str) -> Self {
        Self {
            words,
            class: "bad",
        }
    }

    /// The message for one of our codes.
    pub(crate) fn of(done: &str) -> Self {
        match done {
            "saved" => Self::good("Saved."),
            "email-asked" => {
                Self::busy("Saved. Confirm the new address: open the link that was mailed to it.")
            }
            "email-change-stopped" => {
                Self::good("The change is stopped. The address stays the same.")
            }
            "ended" => Self::good("The session is signed out."),
            "others-ended" => Self::good("All other sessions are signed out."),
            "retried" => Self::good("Retrying now."),
            "cancelled" => Self::good("The message is cancelled."),
            "created" => {
                Self::good("The app is created. Next: connect a mailbox with a link below.")
            }
            "key-renewed" => {
                Self::good("The key is renewed. Connect links with the old one no longer work.")
            }
            "key-deleted" => Self::good("The send key is deleted. It stopped working immediately."),
            "secret-deleted" => {
                Self::good("The API secret is deleted. It stopped working immediately.")
            }
            "app-deleted" => Self::good("The app is deleted."),
            "unsuppressed" => Self::good("Removed. Messages to this address are accepted again."),
            "paid" => Self::good("The subscription is active."),
            "reactivated" => Self::good("There is nothing to pay now."),
            "subscription-cancelled" => {
                Self::good("Cancelled. Sending continues until the period ends.")
            }
            "paused" => Self::good("The webhook is paused: it receives no new events."),
            "resumed" => Self::good("The webhook receives events again."),
            "deleted" => Self::good(
                "The webhook is deleted. Events that have already happened are still delivered.",
            ),
            "test-passed" => Self::good("The test event was accepted."),
            "test-failed" => Self::bad("Test failed. Open the delivery below to see the response."),
            "added-before" => Self::busy(
                "The webhook was already added. Its secret was shown then; rotate it if you don't have it.",
            ),
            "rotated-before" => Self::busy(
                "The secret was already rotated, and nothing was changed now. Rotate it again if you don't have the new one.",
            ),
            "renewed-before" => Self::busy(
                "The key was already renewed, and nothing was changed now. Renew it again if you don't have the new one.",
            ),
            "disconnected" => Self::good("The mailbox is disconnected. Its waiting messages fail."),
            _ => Self::default(),
        }
    }
}
