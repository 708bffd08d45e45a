//! The extensions that a server announces in its EHLO reply.

use super::super::reply::Reply;
use crate::mail::bearer::Mechanism;

/// The announced extensions.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a keyword of its own in EHLO"
)]
pub(super) struct Extensions {
    pub(super) pipelining: bool,
    pub(super) size: bool,
    pub(super) eight_bit_mime: bool,
    pub(super) smtputf8: bool,
    pub(super) starttls: bool,
    pub(super) plain: bool,
    pub(super) login: bool,
    /// The mechanism for an access token.
    pub(super) bearer: Mechanism,
}

impl Extensions {
    pub(super) fn read(reply: &Reply) -> Self {
        let offers = |keyword: &str| {
            reply.lines.iter().skip(1).any(|line| {
                line.split(' ')
                    .next()
                    .is_some_and(|word| word.eq_ignore_ascii_case(keyword))
            })
        };
        let mechanism = |name: &str| {
            reply.lines.iter().skip(1).any(|line| {
                // Very old servers write `AUTH=`.
                let mut words = line.split([' ', '=']);
                words
                    .next()
                    .is_some_and(|word| word.eq_ignore_ascii_case("AUTH"))
                    && words.any(|word| word.eq_ignore_ascii_case(name))
            })
        };
        Self {
            pipelining: offers("PIPELINING"),
            size: offers("SIZE"),
            eight_bit_mime: offers("8BITMIME"),
            smtputf8: offers("SMTPUTF8"),
            starttls: offers("STARTTLS"),
            plain: mechanism("PLAIN"),
            login: mechanism("LOGIN"),
            bearer: Mechanism::among(mechanism),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanisms_are_read_in_either_form() {
        for (line, plain, login) in [
            ("AUTH PLAIN LOGIN", true, true),
            ("auth login", false, true),
            ("AUTH=PLAIN", true, false),
            ("AUTH XOAUTH2 PLAIN-CLIENTTOKEN", false, false),
            ("PLAIN LOGIN", false, false),
        ] {
            let reply = Reply {
                code: 250,
                lines: vec!["relay".to_owned(), line.to_owned()],
            };
            let extensions = Extensions::read(&reply);
            assert_eq!(
                (extensions.plain, extensions.login),
                (plain, login),
                "{line}"
            );
        }
    }
}
