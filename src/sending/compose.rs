//! Composes a message from the fields of a REST call.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::{Address, Message as Builder};

use super::prepared::{Prepared, Summary};
use crate::providers::mail::transport::Recipients;
use crate::types::email_address::EmailAddress;
use crate::types::ids::LogId;
use crate::types::message::Message;

/// Octets that one encoded word carries: with its frame and the header's name it keeps to the 76 of
/// RFC 2047 §2.
const ENCODED_WORD: usize = 36;

/// Longest word that the builder may leave on a line of its own.
const PLAIN_WORD: usize = 200;

/// The fields of a message. At least one of the bodies is there; no field holds a line end that the
/// caller's own validation should have refused.
#[derive(Debug, Clone)]
pub struct Fields {
    /// Whom it goes to.
    pub to: EmailAddress,
    /// Its subject.
    pub subject: String,
    /// Its text body.
    pub text: Option<String>,
    /// Its HTML body.
    pub html: Option<String>,
}

/// The fields make no message.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    /// An address has a form that a header can't show.
    #[error("the address {0} can't stand in a header")]
    Address(String),
    /// The builder refused.
    #[error("the message can't be composed: {0}")]
    Builder(#[from] lettre::error::Error),
}

/// Composes the message that `from` sends at the moment `at`: text, HTML or both as alternatives,
/// with a Message-ID and a Date of ours.
///
/// # Errors
///
/// [`ComposeError`].
pub fn compose(
    fields: Fields,
    from: &EmailAddress,
    at: DateTime<Utc>,
) -> Result<Prepared, ComposeError> {
    let id = LogId::at(at);
    let message_id = format!("<{id}@{}>", message_id_domain(from));
    let builder = Builder::builder()
        .from(mailbox(from)?)
        .to(mailbox(&fields.to)?)
        .raw_header(subject(&fields.subject))
        .message_id(Some(message_id.clone()))
        .date(at.into());
    let built = match (
        fields.text.as_deref().map(with_crlf),
        fields.html.as_deref().map(with_crlf),
    ) {
        (Some(text), Some(html)) => {
            builder.multipart(MultiPart::alternative_plain_html(text, html))?
        }
        (None, Some(html)) => builder.singlepart(SinglePart::html(html))?,
        (text, None) => builder.singlepart(
            SinglePart::builder()
                .header(ContentType::TEXT_PLAIN)
                .body(text.unwrap_or_default()),
        )?,
    };
    let to = fields.to.as_str().to_owned();
    Ok(Prepared {
        id,
        at,
        message: Message::from_pieces(vec![Bytes::from(built.formatted())]),
        recipients: Recipients {
            smtputf8: !fields.to.is_ascii() || !from.is_ascii(),
            addresses: vec![to.clone()],
        },
        message_id: Some(message_id),
        summary: Summary {
            to_address: to,
            subject: fields.subject,
            ..Summary::default()
        },
    })
}

/// Every kind of line end as CRLF: a CR by itself would pass through the builder, and some servers
/// take it for a line end where it helps a forger.
fn with_crlf(text: &str) -> String {
    let mut lines = String::with_capacity(text.len() + text.len() / 32);
    let mut rest = text;
    while let Some(end) = rest.find(['\r', '\n']) {
        lines.push_str(&rest[..end]);
        lines.push_str("\r\n");
        let length = if rest[end..].starts_with("\r\n") {
            2
        } else {
            1
        };
        rest = &rest[end + length..];
    }
    lines.push_str(rest);
    lines
}

/// The Subject header. What a reader would take for an encoded word, and words too long for a line,
/// are encoded though they are ASCII; the builder would leave them as they are.
fn subject(text: &str) -> HeaderValue {
    let name = HeaderName::new_from_ascii_str("Subject");
    let ambiguous = text.contains("=?") || text.split(' ').any(|word| word.len() > PLAIN_WORD);
    if !ambiguous {
        return HeaderValue::new(name, text.to_owned());
    }
    let mut words: Vec<String> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.floor_char_boundary(ENCODED_WORD));
        words.push(format!("=?utf-8?B?{}?=", STANDARD.encode(word)));
        rest = after;
    }
    HeaderValue::dangerous_new_pre_encoded(name, text.to_owned(), words.join("\r\n "))
}

/// The sender's own domain, as receivers expect it; an internationalized one has no place there.
fn message_id_domain(from: &EmailAddress) -> &str {
    if from.is_ascii() && !from.domain().starts_with('[') {
        from.domain()
    } else {
        "mailgate.invalid"
    }
}

fn mailbox(address: &EmailAddress) -> Result<Mailbox, ComposeError> {
    address
        .as_str()
        .parse::<Address>()
        .map(|address| Mailbox::new(None, address))
        .map_err(|_| ComposeError::Address(address.as_str().to_owned()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use mail_parser::MessageParser;
    use proptest::prelude::*;

    fn composed(subject: &str, text: Option<&str>, html: Option<&str>) -> Vec<u8> {
        let prepared = compose(
            Fields {
                to: EmailAddress::parse("bob@example.org").unwrap(),
                subject: subject.to_owned(),
                text: text.map(str::to_owned),
                html: html.map(str::to_owned),
            },
            &EmailAddress::parse("ada@example.com").unwrap(),
            DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
        )
        .unwrap();
        let bytes = prepared.message.chunks().collect::<Vec<_>>().concat();
        let parsed = MessageParser::new().parse(&bytes).unwrap();
        assert_eq!(
            prepared.message_id.unwrap(),
            format!("<{}>", parsed.message_id().unwrap())
        );
        bytes
    }

    #[test]
    fn text_alone() {
        let bytes = composed("Hi", Some("Hello\nthere"), None);
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.contains("Content-Type: text/plain; charset=utf-8\r\n"),
            "{text}"
        );
        assert!(
            text.contains("Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"),
            "{text}"
        );
        assert!(text.contains("Hello\r\nthere"), "{text}");
    }

    #[test]
    fn every_line_end_becomes_crlf() {
        for (text, expected) in [
            ("a\nb\rc\r\nd", "a\r\nb\r\nc\r\nd"),
            ("x\r.\r\ny", "x\r\n.\r\ny"),
            ("\r\r\n\n", "\r\n\r\n\r\n"),
            ("", ""),
        ] {
            assert_eq!(with_crlf(text), expected, "{text:?}");
        }
        let bytes = composed("Hi", Some("x\r.\r\nMAIL FROM:<a@b>"), Some("<p>\r</p>"));
        let bare = bytes
            .windows(2)
            .any(|pair| pair[0] == b'\r' && pair[1] != b'\n');
        assert!(!bare, "{}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn html_alone_and_both() {
        let html = String::from_utf8(composed("Hi", None, Some("<p>x</p>"))).unwrap();
        assert!(
            html.contains("Content-Type: text/html; charset=utf-8\r\n"),
            "{html}"
        );
        let both = composed("Hi", Some("plain"), Some("<p>rich</p>"));
        let parsed = MessageParser::new().parse(&both).unwrap();
        assert_eq!(parsed.body_text(0).unwrap().trim_end(), "plain");
        assert_eq!(parsed.body_html(0).unwrap().trim_end(), "<p>rich</p>");
        assert!(String::from_utf8_lossy(&both).contains("multipart/alternative"));
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(subject in "[^\\p{C}]{0,300}", text in "[^\\p{C}]{1,2000}") {
            let bytes = composed(&subject, Some(&text), None);
            for line in bytes.split(|byte| *byte == b'\n') {
                prop_assert!(line.len() <= 999, "a line of {} bytes", line.len());
            }
            let parsed = MessageParser::new().parse(&bytes).unwrap();
            let body = parsed.body_text(0).unwrap();
            prop_assert_eq!(body.trim_end(), text.trim_end());
        }
    }
}
