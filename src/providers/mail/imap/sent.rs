//! Finds the mailbox for sent messages.

use super::response::Listed;

/// RFC 6154 §2, in lower case.
const SENT: &str = "\\sent";

/// Attributes of mailboxes that can't be opened (RFC 9051 §7.3.1).
const CLOSED: [&str; 2] = ["\\noselect", "\\nonexistent"];

/// Common names, for servers that mark none, the likeliest first.
const NAMES: [&str; 6] = [
    "[Gmail]/Sent Mail",
    "Sent",
    "Sent Items",
    "Sent Messages",
    "INBOX.Sent",
    "INBOX/Sent",
];

/// The best candidate so far.
#[derive(Debug, Default)]
pub(super) struct SentMailbox {
    best: Option<(usize, Vec<u8>)>,
}

impl SentMailbox {
    /// Considers one more mailbox.
    pub(super) fn consider(&mut self, listed: Listed) {
        let has = |attribute: &str| listed.attributes.iter().any(|it| it == attribute);
        if CLOSED.into_iter().any(has) {
            return;
        }
        let rank = if has(SENT) {
            Some(0)
        } else {
            NAMES
                .iter()
                .position(|name| listed.name.eq_ignore_ascii_case(name.as_bytes()))
                .map(|position| position + 1)
        };
        let best = self.best.as_ref().map_or(usize::MAX, |(rank, _)| *rank);
        if let Some(rank) = rank.filter(|rank| *rank < best) {
            self.best = Some((rank, listed.name));
        }
    }

    /// Its name, as the server wrote it.
    pub(super) fn name(self) -> Option<Vec<u8>> {
        self.best.map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_outweighs_a_name() {
        for (mailboxes, expected) in [
            (&[][..], None),
            (&[("", "INBOX"), ("", "Drafts")][..], None),
            (&[("", "sent items"), ("", "SENT")], Some("SENT")),
            (&[("", "Sent"), ("", "Sent Items")], Some("Sent")),
            (
                &[("", "Sent"), ("\\hasnochildren \\sent", "Gesendet")],
                Some("Gesendet"),
            ),
            (&[("\\sent", "A"), ("\\sent", "B")], Some("A")),
            (
                &[
                    ("\\noselect", "Sent"),
                    ("\\sent \\nonexistent", "x"),
                    ("", "INBOX.Sent"),
                ],
                Some("INBOX.Sent"),
            ),
        ] {
            let mut sent = SentMailbox::default();
            for (attributes, name) in mailboxes {
                sent.consider(Listed {
                    attributes: attributes.split(' ').map(str::to_owned).collect(),
                    name: name.as_bytes().to_vec(),
                });
            }
            let expected = expected.map(|name: &str| name.as_bytes().to_vec());
            assert_eq!(sent.name(), expected, "{mailboxes:?}");
        }
    }
}
