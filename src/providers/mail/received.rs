//! The headers of a received message that identify it as a reply.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;

use std::collections::BTreeSet;

use mail_parser::{HeaderName, HeaderValue, MessageParser};

use mailgate_bounces::Bounce;
use mailgate_types::message_id;

/// Message-IDs of one message that are considered; a long thread lists the latest ones last.
const REFERENCES: usize = 50;

/// Longest address or subject that is kept, in characters.
const LENGTH: usize = 998;

/// Bytes of a message that [`Received::read_bounce`] is given at most. What a bounce says stands before the message that
/// it returns.
pub const BOUNCE_BYTES: usize = 256 * 1024;

/// Messages that are fetched whole in one check, since they may be bounces. The rest waits for the next one.
pub const BOUNCES: usize = 100;

/// The same for the junk folder.
pub const BOUNCES_IN_JUNK: usize = 25;

/// The headers that [`Received::parse`] and [`may_be_bounce`] need, for readers that fetch headers by name.
pub const HEADERS: [&str; 11] = [
    "Message-ID",
    "In-Reply-To",
    "References",
    "From",
    "To",
    "Subject",
    "Auto-Submitted",
    "Return-Path",
    "Precedence",
    "Content-Type",
    "X-Failed-Recipients",
];

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Received {
    /// Its Message-ID, with the angle brackets.
    pub message_id: Option<String>,
    /// The messages that it replies to: In-Reply-To first, then References starting from the last one; with the angle
    /// brackets, deduplicated.
    pub answers: Vec<String>,
    /// The From address; empty if there is none.
    pub from: String,
    /// The first To address; empty if there is none.
    pub to: String,
    /// The subject, decoded.
    pub subject: String,
    /// It was not written by a person: it has Auto-Submitted (RFC 3834 §5), or it is a bounce or
    /// another report.
    pub automatic: bool,
    /// What it says, if it is a bounce.
    pub bounce: Option<Bounce>,
}

impl Received {
    /// Parses a block of header lines; anything after an empty line is ignored.
    #[must_use]
    pub fn parse(headers: &[u8]) -> Self {
        let Some(parsed) = MessageParser::new().parse_headers(headers) else {
            return Self::default();
        };
        let ids = |name: HeaderName<'_>| -> Vec<String> {
            match parsed.header(name) {
                Some(HeaderValue::Text(id)) => vec![bracketed(id)],
                Some(HeaderValue::TextList(ids)) => ids.iter().map(|id| bracketed(id)).collect(),
                _ => Vec::new(),
            }
        };
        let mut seen = BTreeSet::new();
        let answers = ids(HeaderName::InReplyTo)
            .into_iter()
            .chain(ids(HeaderName::References).into_iter().rev())
            .filter(|id| seen.insert(id.clone()))
            .take(REFERENCES)
            .collect();
        let first = |address: Option<&mail_parser::Address<'_>>| {
            address
                .and_then(mail_parser::Address::first)
                .and_then(|address| address.address.as_deref())
                .map(kept)
                .unwrap_or_default()
        };
        Self {
            message_id: parsed.message_id().map(bracketed),
            answers,
            from: first(parsed.from()),
            to: first(parsed.to()),
            subject: parsed.subject().map(kept).unwrap_or_default(),
            automatic: is_automatic(&parsed),
            bounce: None,
        }
    }

    /// Reads what a message says that may be a bounce, as far as it was fetched.
    pub fn read_bounce(&mut self, raw: &[u8]) {
        self.bounce = mailgate_bounces::read(raw);
        self.automatic |= self.bounce.is_some();
    }
}

/// Whether the message with these headers should be fetched whole for [`Received::read_bounce`].
#[must_use]
pub fn may_be_bounce(headers: &[u8]) -> bool {
    mailgate_bounces::is_candidate(headers)
}

/// Joins headers that an API lists one by one into the lines that [`Received::parse`] reads. A line break within a name
/// or a value would forge a header.
pub(super) fn header_block<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut block = String::new();
    for (name, value) in headers {
        let is_name = (name.bytes()).all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_name || name.is_empty() {
            continue;
        }
        block.push_str(name);
        block.push_str(": ");
        let letters = value.trim().chars();
        block.extend(letters.map(|letter| if letter.is_control() { ' ' } else { letter }));
        block.push_str("\r\n");
    }
    block.push_str("\r\n");
    block.into_bytes()
}

fn is_automatic(parsed: &mail_parser::Message<'_>) -> bool {
    parsed.headers_raw().any(|(name, value)| {
        let value = value.trim().to_ascii_lowercase();
        let word = value.split([';', ' ', '(']).next().unwrap_or_default();
        match name.trim().to_ascii_lowercase().as_str() {
            "auto-submitted" => word != "no",
            "return-path" => value == "<>",
            "precedence" => word == "auto_reply",
            // A bounce, a read receipt (RFC 8098), or another report (RFC 6522).
            "content-type" => word == "multipart/report",
            "x-failed-recipients" => true,
            _ => false,
        }
    })
}

fn bracketed(id: &str) -> String {
    message_id::bounded(&format!("<{}>", id.trim_matches(['<', '>', ' '])))
}

/// Removes everything that is unsafe for a database or a log line.
fn kept(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_control())
        .take(LENGTH)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_tells_a_bounce_is_fetched() {
        assert!(
            mailgate_bounces::HEADERS
                .iter()
                .all(|name| HEADERS.contains(name))
        );
    }

    #[test]
    fn a_bounce_is_automatic() {
        let bounce = b"From: mailer-daemon@x.org\r\nX-Failed-Recipients: a@x.org\r\nIn-Reply-To: <m@x.org>\r\n\r\n";
        assert!(may_be_bounce(bounce));
        let mut received = Received::default();
        received.read_bounce(bounce);
        assert!(received.automatic && received.bounce.is_some());
        received.read_bounce(b"Subject: hi\r\n\r\n");
        assert_eq!(received.bounce, None);
    }

    #[test]
    fn a_reply() {
        let received = Received::parse(
            b"Return-Path: <bob@example.org>\r\nMessage-ID: <r1@example.org>\r\n\
              From: Bob <bob@example.org>\r\nTo: Ada <ada@example.com>, x@example.com\r\n\
              Subject: =?utf-8?q?Re:_Gr=C3=BC=C3=9Fe?=\r\nIn-Reply-To: <m2@example.com>\r\n\
              References: <m1@example.com>\r\n <m2@example.com>\r\n\r\nBody: no",
        );
        assert_eq!(
            received,
            Received {
                message_id: Some("<r1@example.org>".to_owned()),
                answers: vec!["<m2@example.com>".to_owned(), "<m1@example.com>".to_owned()],
                from: "bob@example.org".to_owned(),
                to: "ada@example.com".to_owned(),
                subject: "Re: Grüße".to_owned(),
                automatic: false,
                bounce: None,
            }
        );
    }

    #[test]
    fn what_no_person_wrote() {
        for (headers, automatic) in [
            ("Subject: x", false),
            ("Auto-Submitted: no", false),
            ("Auto-Submitted: NO (really)", false),
            ("Auto-Submitted: auto-replied", true),
            ("auto-submitted:\r\n auto-generated; owner-email=x", true),
            ("Return-Path: <>", true),
            ("Precedence: auto_reply", true),
            ("Precedence: list", false),
            ("Content-Type: Multipart/Report; boundary=x", true),
            ("Content-Type: multipart/mixed; boundary=x", false),
            ("X-Failed-Recipients: a@x.org", true),
        ] {
            let received = Received::parse(format!("{headers}\r\n\r\n").as_bytes());
            assert_eq!(received.automatic, automatic, "{headers}");
        }
    }

    #[test]
    fn a_long_message_id_fits_the_index_and_is_still_one_of_its_own() {
        let of = |id: &str| {
            let headers = format!("Message-ID: <{id}>\r\nIn-Reply-To: <{id}>\r\n\r\n");
            Received::parse(headers.as_bytes())
        };
        let long = "字".repeat(998);
        let (one, other) = (of(&format!("{long}1@x")), of(&format!("{long}2@x")));
        assert!(one.message_id != other.message_id && one.answers != other.answers);
        assert!(
            one.message_id
                .is_some_and(|id| id.len() <= message_id::LONGEST)
        );
    }

    proptest! {
        #[test]
        fn any_headers_are_read_to_what_a_row_holds(
            name in "(Message-ID|In-Reply-To|References|From|To|Subject|Auto-Submitted|Date)",
            value in prop::collection::vec(any::<u8>(), 0..4_000),
        ) {
            let headers = [name.as_bytes(), b": <", &value, b">\r\n\r\n"].concat();
            let received = Received::parse(&headers);
            for id in received.message_id.iter().chain(&received.answers) {
                prop_assert!(id.len() <= message_id::LONGEST);
            }
            for text in [&received.from, &received.to, &received.subject] {
                prop_assert!(text.chars().count() <= LENGTH && !text.contains(char::is_control));
            }
        }
    }

    #[test]
    fn nothing_is_something() {
        assert_eq!(Received::parse(b""), Received::default());
        assert_eq!(Received::parse(b"\r\n\r\n"), Received::default());
    }
}
