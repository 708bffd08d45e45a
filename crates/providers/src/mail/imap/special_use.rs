//! Finds the mailboxes for special uses (RFC 6154): sent messages, and junk.

use super::response::Listed;

/// A special use.
#[derive(Debug)]
pub(super) struct SpecialUse {
    /// RFC 6154 §2, in lower case.
    attribute: &'static str,
    /// Common names, for servers that mark none, the likeliest first.
    names: &'static [&'static str],
}

/// Sent messages.
pub(super) const SENT: SpecialUse = SpecialUse {
    attribute: "\\sent",
    names: &[
        "[Gmail]/Sent Mail",
        "Sent",
        "Sent Items",
        "Sent Messages",
        "INBOX.Sent",
        "INBOX/Sent",
    ],
};

/// Spam.
pub(super) const JUNK: SpecialUse = SpecialUse {
    attribute: "\\junk",
    names: &[
        "[Gmail]/Spam",
        "Junk",
        "Spam",
        "Junk Email",
        "Junk E-mail",
        "Bulk Mail",
        "INBOX.Junk",
        "INBOX.Spam",
        "INBOX/Junk",
        "INBOX/Spam",
    ],
};

/// Attributes of mailboxes that can't be opened (RFC 9051 §7.3.1).
const CLOSED: [&str; 2] = ["\\noselect", "\\nonexistent"];

/// The best candidate so far.
#[derive(Debug)]
pub(super) struct Finder {
    wanted: &'static SpecialUse,
    best: Option<(usize, Vec<u8>)>,
}

impl Finder {
    pub(super) fn of(wanted: &'static SpecialUse) -> Self {
        Self { wanted, best: None }
    }

    /// Considers one more mailbox.
    pub(super) fn consider(&mut self, listed: Listed) {
        let has = |attribute: &str| listed.attributes.iter().any(|it| it == attribute);
        if CLOSED.into_iter().any(has) {
            return;
        }
        let rank = if has(self.wanted.attribute) {
            Some(0)
        } else {
            (self.wanted.names)
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
    fn junk_goes_by_many_names() {
        for (attributes, name) in [
            ("\\junk", "Unwanted"),
            ("", "junk email"),
            ("", "INBOX.Spam"),
        ] {
            let mut finder = Finder::of(&JUNK);
            finder.consider(Listed {
                attributes: vec![attributes.to_owned()],
                name: name.as_bytes().to_vec(),
            });
            assert_eq!(finder.name().as_deref(), Some(name.as_bytes()));
        }
    }

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
            let mut sent = Finder::of(&SENT);
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
