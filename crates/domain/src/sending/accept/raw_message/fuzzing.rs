//! The fuzz target for messages submitted over SMTP.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use bytes::Bytes;
use chrono::DateTime;
use mail_parser::{HeaderName, MessageParser};

use super::private_headers::{PRIVATE, is_empty_one, is_named, metadata_key};
use super::summary::SUBJECT_LENGTH;
use super::{RawMessage, RawMessageError};
use crate::compose::{is_of_receivers, of_sender};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::fuzzing::{Input, is_printable, pieces, with_line_ends};
use mailgate_types::message_parser::message_parser;

/// Any message, in pieces or whole, is sent unchanged except for the headers meant for the gateway alone.
pub fn submitted_message(data: &[u8]) {
    let mut input = Input::new(data);
    let smtputf8 = input.flag();
    let cuts = input.cuts();
    let content = with_line_ends(input.rest());
    let whole = read(vec![Bytes::from(content.clone())], smtputf8);
    let cut = pieces(&content, cuts)
        .into_iter()
        .map(Bytes::copy_from_slice);
    let cut = read(cut.collect(), smtputf8);
    let (submitted, cut) = match (whole, cut) {
        (Ok(submitted), Ok(cut)) => (submitted, cut),
        (Err(whole), Err(cut)) => {
            assert_eq!(whole, cut);
            return;
        }
        _ => unreachable!("the split decides"),
    };
    let octets = without_received(&submitted);
    assert_eq!(octets, without_received(&cut));
    assert_eq!(submitted.from, cut.from);
    assert_eq!(submitted.idempotency_key, cut.idempotency_key);
    assert_eq!(submitted.send_at, cut.send_at);
    let prepared = &submitted.prepared;
    // A Message-ID of the client's is the same in both; one of ours is in both.
    let of_ours = |id: &Option<String>| id.as_deref().is_some_and(is_ours);
    let ids = (&prepared.message_id, &cut.prepared.message_id);
    assert!(ids.0 == ids.1 || (of_ours(ids.0) && of_ours(ids.1)));
    assert_eq!(prepared.summary.subject, cut.prepared.summary.subject);
    assert_eq!(prepared.summary.to_address, cut.prepared.summary.to_address);

    let summary = &prepared.summary;
    assert!(is_printable(&summary.subject) && is_printable(&summary.to_address));
    assert!(summary.subject.chars().count() <= SUBJECT_LENGTH);
    assert!(prepared.message_id.as_deref().is_none_or(is_printable));
    assert!(
        summary
            .cc_addresses
            .iter()
            .all(|address| is_printable(address))
    );
    if !smtputf8 {
        assert!(prepared.recipients.addresses.iter().all(|it| it.is_ascii()));
    }
    assert_eq!(submitted.named_senders, cut.named_senders);
    check_outgoing(&content, &octets, &submitted.from);
    check_senders(&octets, &submitted);
}

fn read(pieces: Vec<Bytes>, smtputf8: bool) -> Result<RawMessage, RawMessageError> {
    let recipients = ["a@x.org", "b@x.org"].map(EmailAddress::parse);
    let recipients: Vec<EmailAddress> = recipients.into_iter().flatten().collect();
    let at = DateTime::UNIX_EPOCH;
    RawMessage::read(pieces, &recipients, smtputf8, "gate.example", at)
}

/// Whether the gateway generated this Message-ID, which then holds a random id.
fn is_ours(id: &str) -> bool {
    id.starts_with("<log_")
}

/// The message after the gateway's own headers, which hold a random id.
fn without_received(submitted: &RawMessage) -> Vec<u8> {
    let octets = submitted
        .prepared
        .message
        .chunks()
        .collect::<Vec<_>>()
        .concat();
    let text = String::from_utf8_lossy(&octets);
    assert!(text.starts_with("Received: by gate.example with "));
    let end = memchr::memmem::find_iter(&octets, b"\r\n").nth(2);
    let rest = &octets[end.unwrap_or_default() + 2..];
    // The Date added to a message without one. A Date of its own that is identical is stripped from both splits.
    let given = format!("Date: {}\r\n", DateTime::UNIX_EPOCH.to_rfc2822());
    let rest = rest.strip_prefix(given.as_bytes()).unwrap_or(rest);
    let own = submitted.prepared.message_id.as_deref();
    let own = own.filter(|id| is_ours(id));
    let own = own.map(|id| format!("Message-ID: {id}\r\n"));
    let rest = own
        .and_then(|own| rest.strip_prefix(own.as_bytes()))
        .unwrap_or(rest);
    rest.to_vec()
}

/// Every sender named in the message is checked against the mailbox.
fn check_senders(octets: &[u8], submitted: &RawMessage) {
    let ended = [octets, b"\r\n"].concat();
    let parsed = message_parser().parse_headers(&ended);
    let named = parsed.iter().flat_map(mail_parser::Message::headers);
    let named = named.filter(|header| of_sender(header.name().trim_end()).is_some());
    let addresses = named
        .filter_map(|header| header.value.as_address())
        .flat_map(mail_parser::Address::iter)
        .filter_map(|address| address.address.as_deref());
    for address in addresses.filter(|address| !address.is_empty()) {
        let checked = submitted.named_senders.iter().map(|it| &it.address);
        let mut checked = checked.chain([&submitted.from]);
        assert!(
            checked.any(|it| it.as_str().eq_ignore_ascii_case(address)),
            "{address:?} isn't asked for"
        );
    }
}

/// Headers are removed as a whole, and nothing else changes.
fn check_outgoing(content: &[u8], octets: &[u8], from: &EmailAddress) {
    let body = |octets: &[u8]| {
        let end = if octets.starts_with(b"\r\n") {
            Some(0)
        } else {
            memchr::memmem::find(octets, b"\r\n\r\n").map(|end| end + 2)
        };
        end.map(|end| octets[end..].to_vec())
    };
    assert_eq!(body(octets), body(content), "the body is another");
    let mut rest = content;
    for line in octets.split_inclusive(|byte| *byte == b'\n') {
        let place = memchr::memmem::find(rest, line);
        let Some(place) = place else {
            unreachable!("{:?} was not sent so", String::from_utf8_lossy(line));
        };
        rest = &rest[place + line.len()..];
    }
    // The parser ignores a field without a line end, which a message by BDAT may end with.
    let ended = [octets, b"\r\n"].concat();
    let parser = MessageParser::new()
        .with_mime_headers()
        .with_address_headers();
    let Some(parsed) = parser.parse_headers(&ended) else {
        unreachable!("it can't be read any more");
    };
    let count = |name: &HeaderName<'_>| {
        let headers = parsed.headers().iter();
        headers.filter(|header| is_named(header, name)).count()
    };
    assert_eq!(count(&HeaderName::From), 1);
    for private in PRIVATE {
        assert_eq!(count(&private), 0, "{private:?} goes out");
    }
    for header in parsed.headers() {
        assert!(!is_of_receivers(header.name().trim_end()), "{header:?}");
    }
    let mut headers = parsed.headers().iter();
    assert!(headers.all(|it| metadata_key(it).is_none() && !is_empty_one(it, &ended)));
    let read = parsed.from().and_then(mail_parser::Address::first);
    let read = read.and_then(|address| address.address.as_deref());
    assert_eq!(read, Some(from.as_str()));
}
