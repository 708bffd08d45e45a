//! What the billing page says of a subscription at its head. Pure.

pub(crate) mod banner;
pub(super) mod expiry;

use chrono::{DateTime, Utc};

use crate::page::sentence::{Sentence, day};
use crate::page::words::Status;
use mailgate_domain::billing::{LiveSubscription, StoredSubscription};
use mailgate_types::billing_details::{OpenAmount, SavedPaymentMethod};
use mailgate_types::subscription::SubscriptionStatus;

/// What can be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Enter a card.
    AddCard,
    /// Pay, or restart, by this label.
    Pay(String),
    /// Undo a cancellation, in the customer portal.
    Resume,
    /// Nothing.
    None,
}

/// The head of the billing page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: Status,
    /// What is due, or will be; empty if it isn't known.
    pub(crate) amount: String,
    pub(crate) sentence: Sentence,
    pub(crate) action: Action,
}

/// What is known of a payment method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Card<'a> {
    /// It wasn't fetched yet.
    Unknown,
    /// There is none.
    Missing,
    /// It was just entered, and may not be known yet.
    Entered,
    Saved(&'a SavedPaymentMethod),
}

/// A stored subscription, as a reader comes to it.
pub(crate) struct Reading<'a> {
    stored: &'a StoredSubscription,
    subscription: &'a LiveSubscription,
    now: DateTime<Utc>,
    /// A card was just entered.
    is_updated: bool,
}

impl<'a> Reading<'a> {
    /// `None` without a subscription.
    pub(crate) fn new(
        stored: &'a StoredSubscription,
        now: DateTime<Utc>,
        is_updated: bool,
    ) -> Option<Self> {
        Some(Self {
            subscription: stored.subscription.as_ref()?,
            stored,
            now,
            is_updated,
        })
    }

    /// The payment method.
    pub(crate) fn card(&self) -> Card<'a> {
        let details = self.stored.details.as_ref();
        match details.map(|details| details.payment_method.as_ref()) {
            Some(Some(method)) => Card::Saved(method),
            _ if self.is_updated => Card::Entered,
            Some(None) => Card::Missing,
            None => Card::Unknown,
        }
    }

    /// Whether the subscription is in good standing, so that there is a customer portal.
    pub(crate) fn is_good(&self) -> bool {
        use SubscriptionStatus as S;
        matches!(self.subscription.status, Some(S::Trialing | S::Active))
    }

    /// Whether it ends with its period.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_good() && self.subscription.cancel_at_period_end
    }

    fn due(&self) -> Option<&OpenAmount> {
        self.stored.details.as_ref()?.due.as_ref()
    }

    /// The amount of a period for so many mailboxes, unless discounts or taxes change it.
    fn period(&self, mailboxes: i64) -> String {
        let price = self
            .stored
            .details
            .as_ref()
            .and_then(|it| it.price.as_ref());
        let price = price.filter(|price| !price.is_adjusted);
        let amount = price.and_then(|price| price.amount.times(mailboxes));
        amount.map(|amount| amount.short()).unwrap_or_default()
    }

    fn next_period(&self) -> String {
        let billed = self.stored.billed_quantity;
        self.period(billed.unwrap_or(self.stored.quantity))
    }

    fn to_come(&self, at: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
        at.filter(|at| *at > self.now)
    }

    /// The head of the billing page.
    pub(crate) fn head(&self) -> Head {
        use SubscriptionStatus as S;
        match self.subscription.status {
            Some(S::Trialing | S::Active) if self.is_ending() => self.ending(),
            Some(S::Trialing) => self.trial(),
            Some(S::Active) => self.active(),
            Some(S::PastDue | S::Unpaid) => self.owing(),
            Some(S::Canceled) => self.ended(),
            None => Head {
                status: badge("Unknown", "plain"),
                amount: String::new(),
                sentence: Sentence::of(
                    "The payment provider reports a status that this gateway doesn't know. Sending is stopped.",
                ),
                action: Action::None,
            },
        }
    }

    fn ending(&self) -> Head {
        let sentence = match self.to_come(self.subscription.current_period_end) {
            Some(at) => Sentence::of("The subscription is cancelled: sending stops on ")
                .on(day(at, self.now))
                .then("."),
            None => {
                Sentence::of("The subscription is cancelled: sending stops when its period ends.")
            }
        };
        Head {
            status: badge("Ends soon", "busy"),
            amount: String::new(),
            sentence,
            action: if self.stored.has_payprov {
                Action::Resume
            } else {
                Action::None
            },
        }
    }

    /// A trial without a card.
    fn trial(&self) -> Head {
        let entered = matches!(self.card(), Card::Entered | Card::Saved(_));
        let sentence = self.trial_ends();
        let (sentence, action) = if entered {
            let more = " Card saved: the paid plan starts by itself then.";
            (sentence.then(more), Action::None)
        } else {
            (
                sentence.then(" Add a card to keep sending."),
                Action::AddCard,
            )
        };
        Head {
            status: badge("Trial", "good"),
            amount: String::new(),
            sentence,
            action,
        }
    }

    fn trial_ends(&self) -> Sentence {
        let Some(at) = self.to_come(self.subscription.trial_end) else {
            return Sentence::of("The trial has ended.");
        };
        // As the dates say it.
        let left = match (at.date_naive() - self.now.date_naive()).num_days() {
            ..=0 => "today".to_owned(),
            1 => "1 day left".to_owned(),
            days => format!("{days} days left"),
        };
        Sentence::of("Trial ends ")
            .on(day(at, self.now))
            .then(format!(" ({left})."))
    }

    fn active(&self) -> Head {
        let amount = self.next_period();
        let saved = if self.is_updated { "Card saved. " } else { "" };
        let in_trial = self.to_come(self.subscription.trial_end).is_some();
        let next = self.to_come(self.subscription.current_period_end);
        let (status, sentence) = if in_trial {
            let saved = if self.is_updated {
                "Card saved"
            } else {
                "Your card is saved"
            };
            let with = if amount.is_empty() {
                String::new()
            } else {
                format!(", with a payment of {amount}")
            };
            let more = format!(" {saved}: the paid plan starts by itself then{with}.");
            (badge("Trial", "good"), self.trial_ends().then(&more))
        } else {
            let sentence = match next {
                Some(at) if amount.is_empty() => Sentence::of(format!("{saved}Next invoice on "))
                    .on(day(at, self.now))
                    .then("."),
                Some(at) => Sentence::of(format!("{saved}Next payment: {amount} on "))
                    .on(day(at, self.now))
                    .then("."),
                None => Sentence::of(format!("{saved}No action is needed.")),
            };
            (badge("Active", "good"), sentence)
        };
        Head {
            status,
            amount,
            sentence,
            action: Action::None,
        }
    }

    /// Something is due.
    fn owing(&self) -> Head {
        let is_unpaid = self.subscription.status == Some(SubscriptionStatus::Unpaid);
        let (word, class) = if is_unpaid {
            ("Unpaid", "bad")
        } else {
            ("Past due", if self.stored.allowed { "busy" } else { "bad" })
        };
        let amount = self.due().map(|due| due.amount.short());
        let pay = amount.as_ref().map_or_else(
            || "Pay open invoices".to_owned(),
            |amount| format!("Pay {amount}"),
        );
        let to = if self.stored.allowed {
            "to keep sending"
        } else {
            "to resume sending"
        };
        let (sentence, action) = match self.card() {
            // The sentence says what the button does.
            _ if self.is_updated => {
                let sentence = Sentence::of(format!("Card saved. {pay} {to}."));
                (sentence, Action::Pay(pay))
            }
            Card::Missing => {
                let sentence = self.failure().then(format!(" Add a card, then pay {to}."));
                (sentence, Action::AddCard)
            }
            Card::Unknown | Card::Entered | Card::Saved(_) => (self.failure(), Action::Pay(pay)),
        };
        Head {
            status: badge(word, class),
            amount: amount.unwrap_or_default(),
            sentence,
            action,
        }
    }

    /// What happened, and what it means for sending.
    fn failure(&self) -> Sentence {
        let stops = if self.stored.allowed {
            ""
        } else {
            "Sending is stopped: "
        };
        let due = self.due();
        let amount = due.map(|due| due.amount.short());
        let since = due.and_then(|due| due.since);
        let sentence = match (amount, due.is_some_and(|due| due.is_failed)) {
            (Some(amount), true) => {
                let the = if stops.is_empty() { "The" } else { "the" };
                let sentence = Sentence::of(format!("{stops}{the} payment of {amount} failed"));
                match since {
                    Some(at) => sentence.then(" on ").on(day(at, self.now)),
                    None => sentence,
                }
            }
            (Some(amount), false) => {
                let sentence = Sentence::of(format!("{stops}{amount} is due"));
                match since {
                    Some(at) => sentence.then(" since ").on(day(at, self.now)),
                    None => sentence,
                }
            }
            (None, _) => {
                let the = if stops.is_empty() { "A" } else { "a" };
                Sentence::of(format!("{stops}{the} payment is due"))
            }
        };
        match self.stored.grace_ends_at.filter(|_| self.stored.allowed) {
            Some(end) => sentence
                .then(". Sending stops on ")
                .on(day(end, self.now))
                .then("."),
            None => sentence.then("."),
        }
    }

    fn ended(&self) -> Head {
        let amount = self.period(self.stored.quantity);
        let restart = if amount.is_empty() {
            "Restart subscription".to_owned()
        } else {
            format!("Restart for {amount}")
        };
        let (sentence, action) = match self.card() {
            _ if self.is_updated => (
                "Card saved. Restart the subscription to resume sending.",
                Action::Pay(restart),
            ),
            Card::Missing => (
                "Sending is stopped: the subscription has ended. Add a card, then restart it.",
                Action::AddCard,
            ),
            _ => (
                "Sending is stopped: the subscription has ended. Restart it to send again.",
                Action::Pay(restart),
            ),
        };
        Head {
            status: badge("Cancelled", "bad"),
            amount,
            sentence: Sentence::of(sentence),
            action,
        }
    }
}

const fn badge(word: &'static str, class: &'static str) -> Status {
    Status { word, class }
}

#[cfg(test)]
mod tests;
