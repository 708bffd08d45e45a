//! The rules for failures of which nothing is known.

use super::rule::{Concern, Explanation, Remedy, Rule};

/// For a failure that no rule knows.
pub const GENERAL: Rule = Rule {
    meaning: "The message was not accepted, and the other side gave no reason that the gateway knows.",
    remedy: Remedy::Either {
        waiting: "Nothing to do: the gateway tries again by itself; the other side's own words are in the message's attempts.",
        ended: "Read the other side's own words in the message's attempts or bounces, and ask the provider or the recipient what \
                they mean.",
    },
    concerns: Concern::Message,
};

/// For an answer that isn't a refusal, and isn't the one that confirms a message either.
pub(super) const ODD_ANSWER: Rule = Rule {
    meaning: "The provider gave an answer that neither confirms nor refuses the message.",
    remedy: Remedy::Look,
    concerns: Concern::Provider,
};

/// Whether an explanation is one of those above.
#[must_use]
pub fn is_general(explanation: &Explanation) -> bool {
    [GENERAL, ODD_ANSWER]
        .iter()
        .any(|rule| rule.meaning == explanation.meaning)
}
