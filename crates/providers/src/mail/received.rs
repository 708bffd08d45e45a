//! The headers of a received message that identify it as a reply.

mod answers;
mod automatic;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

use mail_parser::{HeaderName, Message};

use mailgate_bounces::Bounce;
use mailgate_types::message_parser::message_parser;
use mailgate_types::{encoded_words, message_id};

/// Longest address or subject that is kept, in characters.
const LENGTH: usize = 998;

/// Maximum bytes of a message for [`Received::read_whole`]. A bounce's report precedes the message that it returns.
pub const BOUNCE_BYTES: usize = 256 * 1024;

/// Messages fetched whole in one check: possible bounces or calendar replies. The rest waits for the next one.
pub const BOUNCES: usize = 100;

/// The same for the junk folder.
pub const BOUNCES_IN_JUNK: usize = 25;

/// Headers that are read besides those that show whether a program wrote a message.
const HEADERS: [&str; 5] = [
    "Message-ID",
    "In-Reply-To",
    "References",
    "To",
    "Content-Class",
];

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Received {
    /// Its Message-ID, with the angle brackets.
    pub message_id: Option<String>,
    /// The messages that it replies to: In-Reply-To first, then References starting from the last one; with the angle
    /// brackets (unless they are encoded), deduplicated.
    pub answers: Vec<String>,
    /// The From address; empty if there is none.
    pub from: String,
    /// The first To address; empty if there is none.
    pub to: String,
    /// The subject, decoded.
    pub subject: String,
    /// It was not written by a person: its header says so, or it is a bounce, another report, or a calendar reply.
    pub automatic: bool,
    /// Its report, if it is a bounce.
    pub bounce: Option<Bounce>,
}

impl Received {
    /// Parses a block of header lines; anything after an empty line is ignored.
    #[must_use]
    pub fn parse(headers: &[u8]) -> Self {
        let Some(parsed) = message_parser().parse_headers(headers) else {
            return Self::default();
        };
        let subject = raw_values(headers, &parsed, HeaderName::Subject).next();
        let subject = subject.map(encoded_words::decoded).unwrap_or_default();
        let first = |address: Option<&mail_parser::Address<'_>>| {
            address
                .and_then(mail_parser::Address::first)
                .and_then(|address| address.address.as_deref())
                .map(kept)
                .unwrap_or_default()
        };
        Self {
            message_id: parsed.message_id().map(bracketed),
            answers: answers::answers(headers, &parsed),
            from: first(parsed.from()),
            to: first(parsed.to()),
            automatic: automatic::is_automatic(headers, &parsed, &subject),
            subject: kept(&subject),
            bounce: None,
        }
    }

    /// Whether the message with these headers should be fetched whole for [`Self::read_whole`]: it may be a bounce or a
    /// calendar reply.
    #[must_use]
    pub fn is_read_whole(&self, headers: &[u8]) -> bool {
        let may_be_reply = !self.automatic && !self.answers.is_empty();
        mailgate_bounces::is_candidate(headers)
            || may_be_reply && mailgate_bounces::may_be_calendar_answer(headers)
    }

    /// Reads a message's parts, as far as they were fetched.
    pub fn read_whole(&mut self, raw: &[u8]) {
        self.bounce = mailgate_bounces::read(raw);
        self.automatic |= self.bounce.is_some() || mailgate_bounces::is_calendar_answer(raw);
    }
}

/// The names of the headers that [`Received::parse`] and [`Received::is_read_whole`] need, for readers that fetch headers
/// by name.
pub(super) fn header_names() -> impl Iterator<Item = &'static str> {
    HEADERS.into_iter().chain(automatic::HEADERS)
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

/// The values of the headers with this name, still folded, the last one first.
fn raw_values<'a>(
    headers: &'a [u8],
    parsed: &'a Message<'_>,
    name: HeaderName<'static>,
) -> impl Iterator<Item = &'a [u8]> {
    let named = parsed.headers().iter().rev();
    named
        .filter(move |header| header.name == name)
        .filter_map(|header| headers.get(header.offset_start as usize..header.offset_end as usize))
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
mod tests;
