//! Composes messages, and reads them back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod parts;
mod recipients;
mod round_trips;

use mail_parser::{Message, MessageParser};

use super::*;

fn address(text: &str) -> EmailAddress {
    EmailAddress::parse(text).unwrap()
}

fn fields(text: Option<&str>, html: Option<&str>) -> Fields {
    Fields {
        from_name: None,
        to: address("bob@example.org"),
        cc: Vec::new(),
        bcc: Vec::new(),
        reply_to: None,
        subject: "Hi".to_owned(),
        text: text.map(str::to_owned),
        html: html.map(str::to_owned),
        headers: Vec::new(),
        attachments: Vec::new(),
    }
}

fn file(name: &str, media_type: &str, content: &[u8], id: Option<&str>) -> Attachment {
    Attachment {
        filename: Filename::new(name.to_owned()).unwrap(),
        media_type: MediaType::parse(media_type).unwrap(),
        content: content.to_vec(),
        content_id: id.map(|id| ContentId::new(id.to_owned()).unwrap()),
    }
}

fn prepare(fields: Fields) -> Composed {
    compose(
        fields,
        &address("ada@example.com"),
        DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
        "log_1",
    )
}

/// The bytes, checked to be in wire form.
fn bytes(prepared: &Composed) -> Vec<u8> {
    let bytes = prepared.message.chunks().collect::<Vec<_>>().concat();
    let shown = || String::from_utf8_lossy(&bytes).into_owned();
    assert!(bytes.ends_with(b"\r\n"), "{}", shown());
    for line in bytes
        .strip_suffix(b"\r\n")
        .unwrap()
        .split(|byte| *byte == b'\n')
    {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        assert!(line.len() <= 998, "{} octets: {}", line.len(), shown());
        assert!(!line.contains(&b'\r'), "a bare CR: {}", shown());
    }
    let line_feeds = memchr::memchr_iter(b'\n', &bytes).count();
    let line_ends = bytes.windows(2).filter(|pair| *pair == b"\r\n").count();
    assert_eq!(line_feeds, line_ends, "a bare LF: {}", shown());
    assert!(bytes.is_ascii() || prepared.smtputf8, "{}", shown());
    bytes
}

fn composed(fields: Fields) -> String {
    String::from_utf8(bytes(&prepare(fields))).unwrap()
}

fn parse(bytes: &[u8]) -> Message<'_> {
    MessageParser::new().parse(bytes).unwrap()
}
