//! The machine-readable part of a delivery status notification (RFC 3464, RFC 6533 for addresses beyond ASCII).

use mailgate_types::bounce_type::BounceType;

use crate::bounce::{BouncedRecipient, RECIPIENTS};
use crate::fields::{Entries, Entry};
use crate::original::{ENVELOPE, REPORTED};
use crate::{diagnostic, recipient, status_code};

/// Maximum number of fields kept per part that identify the message.
const NAMES: usize = 10;

/// The fields of one recipient.
#[derive(Debug, Default)]
struct Group {
    original: Option<String>,
    final_recipient: Option<String>,
    action: Option<String>,
    status: Option<String>,
    diagnostic: Option<String>,
}

impl Group {
    fn has_recipient(&self) -> bool {
        self.original.is_some() || self.final_recipient.is_some()
    }

    fn has_outcome(&self) -> bool {
        self.action.is_some() || self.status.is_some()
    }

    /// The slot for a field's value.
    fn place(&mut self, name: &str) -> Option<&mut Option<String>> {
        match name {
            "original-recipient" => Some(&mut self.original),
            "final-recipient" => Some(&mut self.final_recipient),
            "action" => Some(&mut self.action),
            "status" => Some(&mut self.status),
            "diagnostic-code" => Some(&mut self.diagnostic),
            _ => None,
        }
    }

    /// The recipient, if its delivery failed or is delayed.
    ///
    /// `Action: failed` is permanent regardless of the status: a message given up after days of attempts has the status
    /// of the last one, 4.4.7 (RFC 3464 §2.3.3: "the message could not be delivered … the Reporting MTA has abandoned
    /// any attempts"). A status of class 4 without an action is a delay.
    fn outcome(&self) -> Option<BouncedRecipient> {
        // The address that the message was sent to: the final recipient may be a forwarding target.
        let address = [&self.original, &self.final_recipient]
            .into_iter()
            .flatten()
            .find_map(|value| recipient::typed(value))?;
        let words = self.diagnostic.as_deref().and_then(diagnostic::of_field);
        let status = status(self.status.as_deref(), words.as_deref());
        let action = self.action.as_deref().map(action);
        let bounce_type = match (
            action,
            status.as_deref().map(|status| status.starts_with('4')),
        ) {
            (Some(Action::Failed), _) | (Some(Action::Unknown) | None, Some(false)) => {
                BounceType::Permanent
            }
            (Some(Action::Delayed), _) | (Some(Action::Unknown) | None, Some(true)) => {
                BounceType::Temporary
            }
            (Some(Action::Arrived), _) | (Some(Action::Unknown) | None, None) => return None,
        };
        Some(BouncedRecipient {
            address,
            bounce_type,
            status,
            diagnostic: words,
        })
    }
}

/// RFC 3464 §2.3.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Failed,
    Delayed,
    /// Delivered, relayed to a server without notifications, or expanded to a list.
    Arrived,
    Unknown,
}

fn action(value: &str) -> Action {
    let word = value
        .split(|letter: char| !letter.is_ascii_alphabetic())
        .find(|word| !word.is_empty())
        .unwrap_or_default();
    match word.to_ascii_lowercase().as_str() {
        "failed" | "failure" | "fail" => Action::Failed,
        "delayed" | "delay" | "deferred" => Action::Delayed,
        "delivered" | "relayed" | "expanded" => Action::Arrived,
        _ => Action::Unknown,
    }
}

/// The Status; if it is only a class, the code at the beginning of the diagnostic text, since some servers report
/// `5.0.0` for every failure.
fn status(field: Option<&str>, words: Option<&str>) -> Option<String> {
    let own = field.and_then(status_code::leading);
    if own.as_deref().is_none_or(status_code::is_vague) {
        let better = words.and_then(status_code::within).filter(|code| {
            let same_class = |own: &String| own.as_bytes().first() == code.as_bytes().first();
            own.as_ref().is_none_or(same_class)
        });
        return better.or(own);
    }
    own
}

/// The content of a delivery status.
#[derive(Debug, Default)]
pub(crate) struct DeliveryStatus {
    /// The recipients with failed or delayed deliveries.
    pub(crate) recipients: Vec<BouncedRecipient>,
    /// Whether it has any recipients, with whatever outcome.
    pub(crate) has_groups: bool,
    /// Names and values of the fields that identify the message, per message or per recipient.
    pub(crate) names: Vec<(String, String)>,
}

/// Reads the groups. An empty line should separate them (RFC 3464 §2.1), but some servers leave it out, and some put it
/// between the fields of one recipient: a group ends at a repeated field, or at a recipient after an empty line.
pub(crate) fn read(content: &[u8]) -> DeliveryStatus {
    let mut found = DeliveryStatus::default();
    let mut group = Group::default();
    let mut is_after_blank = false;
    for entry in Entries::of(content) {
        if found.recipients.len() >= RECIPIENTS {
            return found;
        }
        let Entry::Field { name, value } = entry else {
            is_after_blank = true;
            continue;
        };
        if REPORTED.contains(&name.as_str()) || name == ENVELOPE {
            let named = (name, value);
            if found.names.len() < NAMES && !found.names.contains(&named) {
                found.names.push(named);
            }
            continue;
        }
        let names_recipient = matches!(name.as_str(), "original-recipient" | "final-recipient");
        let is_another = (names_recipient && is_after_blank)
            || group.place(&name).is_some_and(|place| place.is_some());
        if is_another && group.has_recipient() && group.has_outcome() {
            found.take(&std::mem::take(&mut group));
        }
        if names_recipient {
            is_after_blank = false;
        }
        if let Some(place) = group.place(&name) {
            place.get_or_insert(value);
        }
    }
    found.take(&group);
    found
}

impl DeliveryStatus {
    /// Whether a text is a delivery status without being marked as one: it has recipients with outcomes.
    pub(crate) fn is_report(&self) -> bool {
        !self.recipients.is_empty()
    }

    fn take(&mut self, group: &Group) {
        self.has_groups |= group.has_recipient() && group.has_outcome();
        self.recipients.extend(group.outcome());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(content: &str) -> Vec<(String, BounceType, Option<String>)> {
        let found = read(content.as_bytes()).recipients;
        (found.into_iter())
            .map(|one| (one.address, one.bounce_type, one.status))
            .collect()
    }

    #[test]
    fn groups_however_they_are_separated() {
        let expected = vec![
            (
                "a@x.org".to_owned(),
                BounceType::Permanent,
                Some("5.1.1".to_owned()),
            ),
            (
                "b@x.org".to_owned(),
                BounceType::Temporary,
                Some("4.2.0".to_owned()),
            ),
        ];
        let one = "Final-Recipient: rfc822;a@x.org\nAction: failed\nStatus: 5.1.1\n";
        let other = "Final-Recipient: rfc822;b@x.org\nAction: delayed\nStatus: 4.2.0\n";
        let head = "Reporting-MTA: dns; mx.x.org\n";
        for separators in [
            ["\n", "\n"],
            ["", "\n"],
            ["\n", ""],
            ["", ""],
            ["\n\n", "\n \n"],
        ] {
            let content = format!("{head}{}{one}{}{other}", separators[0], separators[1]);
            assert_eq!(outcomes(&content), expected, "{content}");
        }
        let loose = format!("{head}\n{one}{other}").replace('\n', "\n\n");
        assert_eq!(outcomes(&loose), expected);
    }

    #[test]
    fn what_an_outcome_is() {
        use BounceType::{Permanent, Temporary};
        for (fields, expected) in [
            (
                "Action: failed\nStatus: 5.1.1",
                Some((Permanent, Some("5.1.1"))),
            ),
            (
                "Action: Failed (given up)\nStatus: 4.4.7",
                Some((Permanent, Some("4.4.7"))),
            ),
            (
                "Action: delayed\nStatus: 4.4.1",
                Some((Temporary, Some("4.4.1"))),
            ),
            (
                "Action: delayed\nStatus: 5.0.0",
                Some((Temporary, Some("5.0.0"))),
            ),
            ("Status: 4.2.2", Some((Temporary, Some("4.2.2")))),
            ("Status: 5.2.2 (full)", Some((Permanent, Some("5.2.2")))),
            ("Action: failed", Some((Permanent, None))),
            (
                "Action: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; 550 5.7.1 no",
                Some((Permanent, Some("5.7.1"))),
            ),
            (
                "Action: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; 450 4.7.1 no",
                Some((Permanent, Some("5.0.0"))),
            ),
            (
                "Action: failed\nDiagnostic-Code: smtp; 550-5.7.1 no",
                Some((Permanent, Some("5.7.1"))),
            ),
            ("Action: delivered\nStatus: 2.0.0", None),
            ("Action: relayed\nStatus: 5.0.0", None),
            ("Action: expanded", None),
            ("Action: unheard-of", None),
        ] {
            let content = format!("Final-Recipient: rfc822;a@x.org\n{fields}\n");
            let found = outcomes(&content);
            let found = found
                .first()
                .map(|(_, kind, status)| (*kind, status.as_deref()));
            assert_eq!(found, expected, "{fields}");
        }
    }

    #[test]
    fn the_original_recipient_is_the_one_that_was_sent_to() {
        let content = "Original-Recipient: rfc822;list@x.org\nFinal-Recipient: rfc822;member@y.org\nAction: failed\n";
        assert_eq!(outcomes(content)[0].0, "list@x.org");
        let content = "Original-Recipient: unknown;none\nFinal-Recipient: rfc822;member@y.org\nAction: failed\n";
        assert_eq!(outcomes(content)[0].0, "member@y.org");
        assert!(outcomes("Final-Recipient: system;root\nAction: failed\n").is_empty());
    }
}
