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
            "email-change-stopped" => Self::good("Change stopped. The address stays the same."),
            "ended" => Self::good("Session signed out."),
            "others-ended" => Self::good("All other sessions signed out."),
            "retried" => Self::good("Retrying now."),
            "cancelled" => Self::good("The message is cancelled."),
            "created" => Self::good("App created. Next: connect a mailbox."),
            "key-renewed" => {
                Self::good("Key rotated. Connect links with the old key no longer work.")
            }
            "key-deleted" => Self::good("Send key deleted. It no longer works."),
            "secret-deleted" => Self::good("API secret deleted. It no longer works."),
            "app-deleted" => Self::good("App deleted."),
            "unsuppressed" => Self::good("Removed. Messages to this address are accepted again."),
            "paid" => Self::good("The subscription is active."),
            "reactivated" => Self::good("There is nothing to pay at the moment."),
            "subscription-cancelled" => {
                Self::good("Cancelled. Sending continues until the period ends.")
            }
            "paused" => Self::good("Webhook paused. It receives no new events."),
            "resumed" => Self::good("Webhook resumed. It receives events again."),
            "deleted" => Self::good(
                "Webhook deleted. Events that have already happened are still delivered.",
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
                "The key was already rotated, and nothing was changed now. Rotate it again if you don't have the new one.",
            ),
            "disconnected" => Self::good("Mailbox disconnected. Its waiting messages fail."),
            _ => Self::default(),
        }
    }
}
