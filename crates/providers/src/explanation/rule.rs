//! A rule: what a failure means, whose concern it is, and what helps.

/// An explanation of a failure for people who don't know the protocols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What happened, in one sentence.
    pub meaning: String,
    /// What to do, in one sentence.
    pub action: String,
    /// Whose concern it is.
    pub concerns: Concern,
}

/// Whose concern a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// The sending mailbox's: its other messages fail likewise.
    Mailbox,
    /// A recipient's, or a recipient's mail server's.
    Recipient,
    /// The message's own.
    Message,
    /// The account's: its app, its key or its subscription.
    Account,
    /// The provider's, or the network's on the way to it.
    Provider,
    /// The gateway's, and so its operator's.
    Operator,
}

/// What the gateway does with the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It tries again by its schedule.
    Waiting,
    /// Nothing: the failure is final.
    Ended,
}

/// What helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Time alone.
    Retry,
    /// Time alone, but the message may have been sent already.
    Look,
    /// This, without a full stop: what the gateway or the reader does next follows it.
    Do(&'static str),
    /// These sentences, by what the gateway does next.
    Either {
        /// While the gateway tries again.
        waiting: &'static str,
        /// Once it doesn't.
        ended: &'static str,
    },
    /// This sentence, whatever the gateway does next.
    Always(&'static str),
}

/// A row of the tables.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// What happened, in one sentence.
    pub meaning: &'static str,
    /// What helps.
    pub remedy: Remedy,
    /// Whose concern it is.
    pub concerns: Concern,
}

impl Rule {
    /// The explanation of a message that goes on like this.
    #[must_use]
    pub fn explain(&self, next: Next) -> Explanation {
        Explanation {
            meaning: self.meaning.to_owned(),
            action: self.remedy.action(next),
            concerns: self.concerns,
        }
    }
}

impl Remedy {
    fn action(self, next: Next) -> String {
        match (self, next) {
            (Self::Retry, Next::Waiting) => "Nothing to do: the gateway tries again by itself.".to_owned(),
            (Self::Retry, Next::Ended) => {
                "Send the message again.".to_owned()
            }
            (Self::Look, Next::Waiting) => {
                "Nothing to do: the gateway tries again by itself, and first looks in the mailbox's Sent folder if the \
                 message may have been sent already."
                    .to_owned()
            }
            (Self::Look, Next::Ended) => {
                "Look in the mailbox's Sent folder, and send the message again only if it isn't there.".to_owned()
            }
            (Self::Do(what), Next::Waiting) => format!("{what}; the gateway tries again by itself."),
            (Self::Do(what), Next::Ended) => format!("{what}, then send the message again."),
            (Self::Either { waiting, .. }, Next::Waiting) => waiting.to_owned(),
            (Self::Either { ended, .. }, Next::Ended) => ended.to_owned(),
            (Self::Always(sentence), _) => sentence.to_owned(),
        }
    }
}
