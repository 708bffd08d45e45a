//! Headers that the caller adds. Headers in which the gateway, the provider or a relay describes a message are
//! excluded, so that they can't be forged, and so are those that SMTP clients use in place of the request's fields.

use super::described::{is_of_receivers, of_sender};
use super::header;

/// Maximum headers of one message.
pub const MOST_HEADERS: usize = 50;

/// Longest name, in octets: it leaves room for the colon and a space on a line of 78.
const NAME_LENGTH: usize = 76;

/// Longest value, in characters. RFC 5322 §2.1.1 limits lines, and a header is folded; a long thread's References have
/// some thousands.
pub const HEADER_LENGTH: usize = 16_000;

/// Longest values of all headers of one message, in characters.
pub const HEADERS_LENGTH: usize = 64_000;

/// Longest word that is left unencoded, in octets: it fits on a line with the white space before it.
const LONGEST_WORD: usize = 900;

/// Longest word of free text, in characters: no line holds a longer one (RFC 5322 §2.1.1).
const LONGEST_ENCODED_WORD: usize = 998;

/// Names in lower case that a caller can't set, besides those of senders and receivers.
const RESERVED: [&str; 12] = [
    "from",
    "reply-to",
    "to",
    "cc",
    "bcc",
    "subject",
    "date",
    "message-id",
    "received",
    "mime-version",
    "dkim-signature",
    "idempotency-key",
];

/// Prefixes of such names.
const RESERVED_PREFIXES: [&str; 3] = ["resent-", "content-", "x-mailgate-"];

/// Names in lower case whose values have a grammar of their own instead of free text, which doesn't allow encoded
/// words.
const STRUCTURED: [&str; 10] = [
    "in-reply-to",
    "references",
    "auto-submitted",
    "list-unsubscribe",
    "list-unsubscribe-post",
    "list-subscribe",
    "list-help",
    "list-post",
    "list-owner",
    "list-archive",
];

/// Names in lower case whose values have ids or addresses in angle brackets, in front of which only a name may have
/// encoded words (RFC 2047 §5, RFC 2919 §3).
const NAMED: [&str; 5] = [
    "list-id",
    "disposition-notification-to",
    "return-receipt-to",
    "x-confirm-reading-to",
    "errors-to",
];

/// Why a header is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHeader {
    /// The name isn't valid by RFC 5322 §2.2, or is too long.
    #[error("isn't a header name: 1 to 76 printable ASCII characters without space and colon")]
    Name,
    /// The request has a field of its own for it.
    #[error("is set by the field {0}")]
    OwnField(&'static str),
    /// It is reserved.
    #[error("can't be set")]
    Reserved,
    /// The value is empty.
    #[error("must not be empty")]
    Empty,
    /// It contains a line break or another control character.
    #[error("must not contain control characters")]
    Control,
    /// It is too long.
    #[error("may have {HEADER_LENGTH} characters at most")]
    TooLong,
    /// It isn't ASCII, and encoded words aren't allowed in it.
    #[error("must be ASCII")]
    NotAscii,
    /// A word is too long for a line.
    #[error("may have {0} characters without a space at most")]
    LongWord(usize),
}

/// A header that a caller may add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomHeader {
    name: String,
    value: String,
}

impl CustomHeader {
    /// A header with this name and text; white space around the text is ignored.
    pub fn new(name: &str, value: &str) -> Result<Self, InvalidHeader> {
        // ftext (RFC 5322 §3.6.8).
        let is_name = (1..=NAME_LENGTH).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b':');
        if !is_name {
            return Err(InvalidHeader::Name);
        }
        let lower = name.to_ascii_lowercase();
        if let Some(field) = own_field(&lower) {
            return Err(InvalidHeader::OwnField(field));
        }
        if RESERVED.contains(&lower.as_str())
            || is_of_receivers(&lower)
            || of_sender(&lower).is_some()
            || RESERVED_PREFIXES
                .iter()
                .any(|prefix| lower.starts_with(prefix))
        {
            return Err(InvalidHeader::Reserved);
        }
        if value.contains(char::is_control) {
            return Err(InvalidHeader::Control);
        }
        if value.chars().count() > HEADER_LENGTH {
            return Err(InvalidHeader::TooLong);
        }
        let value = value.trim_matches(' ');
        if value.is_empty() {
            return Err(InvalidHeader::Empty);
        }
        let is_structured = is_structured(&lower);
        let is_plain =
            value.is_ascii() || NAMED.contains(&lower.as_str()) && named(value).is_some();
        if is_structured && !is_plain {
            return Err(InvalidHeader::NotAscii);
        }
        let longest = if is_structured {
            LONGEST_WORD
        } else {
            LONGEST_ENCODED_WORD
        };
        if (value.split(' ')).any(|word| word.chars().count() > longest) {
            return Err(InvalidHeader::LongWord(longest));
        }
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }

    /// Its name, spelled as given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Characters of its value.
    #[must_use]
    pub fn length(&self) -> usize {
        self.value.chars().count()
    }

    /// Its lines.
    pub(super) fn lines(&self) -> String {
        if !is_structured(&self.name.to_ascii_lowercase()) {
            return header::text(&self.name, &self.value, LONGEST_WORD);
        }
        match named(&self.value) {
            Some((name, id)) => header::named(&self.name, name, id),
            None => header::verbatim(&self.name, &self.value),
        }
    }
}

fn is_structured(lower: &str) -> bool {
    STRUCTURED.contains(&lower) || NAMED.contains(&lower)
}

/// A name that isn't ASCII, and the id or the address behind it.
fn named(value: &str) -> Option<(&str, &str)> {
    let (name, _) = value.split_once('<').filter(|_| !value.is_ascii())?;
    let id = &value[name.len()..];
    let is_one = id.is_ascii() && id.ends_with('>') && !id.contains([' ', ',']);
    let name = name.trim().trim_matches('"');
    (is_one && !name.contains(['"', ','])).then_some((name, id))
}

/// The request's own field for a header, if there is one.
fn own_field(lower: &str) -> Option<&'static str> {
    let fields = ["from", "reply_to", "to", "cc", "bcc", "subject"];
    fields
        .into_iter()
        .find(|field| field.replace('_', "-") == lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_gateway_says_is_not_the_callers() {
        for name in RESERVED {
            for spelling in [name.to_owned(), name.to_uppercase()] {
                let refused = CustomHeader::new(&spelling, "x");
                assert!(
                    matches!(
                        refused,
                        Err(InvalidHeader::Reserved | InvalidHeader::OwnField(_))
                    ),
                    "{spelling}: {refused:?}"
                );
            }
        }
        for name in [
            "Resent-From",
            "resent-bcc",
            "Content-Type",
            "CONTENT-TRANSFER-ENCODING",
            "ARC-Seal",
            "X-Mailgate-Send-At",
        ] {
            assert_eq!(
                CustomHeader::new(name, "x"),
                Err(InvalidHeader::Reserved),
                "{name}"
            );
        }
        assert_eq!(
            CustomHeader::new("Reply-To", "x"),
            Err(InvalidHeader::OwnField("reply_to"))
        );
    }

    #[test]
    fn names_and_values_keep_to_their_forms() {
        let long = "x ".repeat(8_001);
        let long_word = "x".repeat(901);
        let longer_word = "x".repeat(999);
        for (name, value, expected) in [
            ("", "x", InvalidHeader::Name),
            ("X Y", "x", InvalidHeader::Name),
            ("X:", "x", InvalidHeader::Name),
            ("X\r\nBcc", "x", InvalidHeader::Name),
            ("From ", "x", InvalidHeader::Name),
            ("X-ü", "x", InvalidHeader::Name),
            (&long_word[..77], "x", InvalidHeader::Name),
            ("X", "a\r\nBcc: eve@example.com", InvalidHeader::Control),
            ("X", "a\nb", InvalidHeader::Control),
            ("X", "a\rb", InvalidHeader::Control),
            ("X", "a\0b", InvalidHeader::Control),
            ("X", "a\tb", InvalidHeader::Control),
            ("X", "a\u{85}b", InvalidHeader::Control),
            ("X", &long, InvalidHeader::TooLong),
            ("X", "", InvalidHeader::Empty),
            ("X", "  ", InvalidHeader::Empty),
            ("References", "<ü@example.com>", InvalidHeader::NotAscii),
            ("References", "ü <a@example.com>", InvalidHeader::NotAscii),
            ("List-Id", "Grüße", InvalidHeader::NotAscii),
            (
                "List-Id",
                "Grüße <lüste.example.com>",
                InvalidHeader::NotAscii,
            ),
            (
                "List-Id",
                "Grüße <list.example.com> x",
                InvalidHeader::NotAscii,
            ),
            (
                "Errors-To",
                "Jörg <j@x.de>, Ada <a@x.de>",
                InvalidHeader::NotAscii,
            ),
            ("X", &longer_word, InvalidHeader::LongWord(998)),
            ("List-Unsubscribe", &long_word, InvalidHeader::LongWord(900)),
        ] {
            assert_eq!(
                CustomHeader::new(name, value),
                Err(expected),
                "{name:?} {value:?}"
            );
        }
    }

    #[test]
    fn what_callers_use_is_allowed() {
        for (name, value) in [
            ("In-Reply-To", "<a@example.com>"),
            ("References", "<a@example.com> <b@example.com>"),
            ("List-Unsubscribe", "<https://example.com/u?x=1>"),
            ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
            ("List-Id", "Grüße <list.example.com>"),
            ("Auto-Submitted", "auto-generated"),
            ("X-Anything", "ä"),
            ("Precedence", "bulk"),
            ("Importance", "high"),
            ("X", &"x".repeat(998)),
            ("X", &"x ".repeat(8_000)),
            ("References", &"<a@example.com> ".repeat(1_000)),
        ] {
            assert!(CustomHeader::new(name, value).is_ok(), "{name}");
        }
    }
    #[test]
    fn ids_and_addresses_stay_what_they_are() {
        for (name, value, expected) in [
            (
                "List-Id",
                "Grüße <list.example.com>",
                "List-Id: =?utf-8?b?R3LDvMOfZQ==?= <list.example.com>\r\n",
            ),
            ("list-id", "\"Grüße, alle\" <list.example.com>", ""),
            (
                "Disposition-Notification-To",
                "Jörg <j@x.de>",
                "Disposition-Notification-To: =?utf-8?b?SsO2cmc=?= <j@x.de>\r\n",
            ),
            (
                "Disposition-Notification-To",
                "=?utf-8?q?J=C3=B6rg?= <j@x.de>",
                "Disposition-Notification-To: =?utf-8?q?J=C3=B6rg?= <j@x.de>\r\n",
            ),
            ("Errors-To", "<a@x.de>", "Errors-To: <a@x.de>\r\n"),
            (
                "Errors-To",
                "Ada <a@x.de>, Bob <b@x.de>",
                "Errors-To: Ada <a@x.de>, Bob <b@x.de>\r\n",
            ),
        ] {
            let header = CustomHeader::new(name, value);
            let lines = header.map(|header| header.lines()).unwrap_or_default();
            assert_eq!(lines.to_lowercase(), expected.to_lowercase(), "{value}");
        }
    }
}
