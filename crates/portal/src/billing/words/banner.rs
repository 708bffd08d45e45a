//! What the banner on other pages than billing says.

use chrono::{DateTime, Utc};

use super::{Action, Reading};
use crate::page::sentence::Sentence;
use mailgate_domain::billing::StoredSubscription;
use mailgate_types::subscription::SubscriptionStatus;

/// The banner on other pages than billing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Banner {
    pub(crate) sentence: Sentence,
    /// The text of the link to the billing page.
    pub(crate) link: String,
}

/// The banner for a subscriber who needs one.
pub(crate) fn banner(stored: &StoredSubscription, now: DateTime<Utc>) -> Banner {
    Reading::new(stored, now, false).map_or_else(
        || Banner {
            sentence: Sentence::of("Sending is stopped: there is no subscription yet."),
            link: "Go to billing".to_owned(),
        },
        |reading| reading.banner(),
    )
}

impl Reading<'_> {
    /// The banner on the other pages.
    fn banner(&self) -> Banner {
        let head = self.head();
        let (sentence, link) = match head.action {
            Action::Pay(label)
                if self.subscription.status == Some(SubscriptionStatus::Canceled) =>
            {
                (
                    Sentence::of("Sending is stopped: the subscription has ended."),
                    label,
                )
            }
            Action::Pay(label) => (self.short_failure(), label),
            Action::AddCard if self.is_good() => (self.trial_ends(), "Add a card".to_owned()),
            Action::AddCard if self.subscription.status == Some(SubscriptionStatus::Canceled) => (
                Sentence::of("Sending is stopped: the subscription has ended."),
                "Add a card".to_owned(),
            ),
            Action::AddCard => (self.short_failure(), "Add a card".to_owned()),
            Action::Resume | Action::None => (head.sentence, "Go to billing".to_owned()),
        };
        Banner { sentence, link }
    }

    fn short_failure(&self) -> Sentence {
        if self.stored.allowed {
            return self.failure();
        }
        let is_failed = self.due().is_some_and(|due| due.is_failed);
        Sentence::of(if is_failed {
            "Sending is stopped: payment failed."
        } else {
            "Sending is stopped: a payment is due."
        })
    }
}
