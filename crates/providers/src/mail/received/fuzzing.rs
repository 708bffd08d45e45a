//! The fuzz target of received mail.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use super::answers::REFERENCES;
use super::{LENGTH, Received, header_block, header_names};
use mailgate_types::encoded_words::{decoded, joined};
use mailgate_types::fuzzing::is_printable;

/// Headers as a server sends them, and as an API lists them: the kept parts are bounded and safe for a database.
pub fn received_mail(data: &[u8]) {
    let mut received = Received::parse(data);
    check(&received);
    if received.is_read_whole(data) {
        received.read_whole(data);
        check(&received);
    }
    // Folded, words are joined only once they are unfolded.
    if !data.contains(&b'\n') && !data.contains(&b'\r') {
        assert_eq!(decoded(&joined(data)), decoded(data));
    }
    let text = String::from_utf8_lossy(data);
    let names: Vec<&str> = header_names().collect();
    let pairs = text.split('\n').enumerate().map(|(index, line)| {
        let known = names[index % names.len()];
        line.split_once('\t').unwrap_or((known, line))
    });
    let count = pairs.clone().count();
    let block = header_block(pairs);
    let lines: Vec<&[u8]> = block.split_inclusive(|byte| *byte == b'\n').collect();
    assert!(lines.len() <= count + 1, "a value became a header");
    assert!(lines.iter().all(|line| line.ends_with(b"\r\n")));
    let empty = lines.iter().position(|line| *line == b"\r\n");
    assert_eq!(empty, Some(lines.len() - 1), "a value ended the headers");
    check(&Received::parse(&block));
}

/// Checks the parts that become a row, a webhook's payload, a log line.
pub fn check(received: &Received) {
    let Received {
        message_id,
        answers,
        from,
        to,
        subject,
        automatic: _,
        bounce: _,
    } = received;
    for text in [from, to, subject] {
        assert!(
            is_printable(text) && text.chars().count() <= LENGTH,
            "{text:?}"
        );
    }
    for id in answers.iter().chain(message_id) {
        let is_bracketed = id.starts_with('<') && id.ends_with('>');
        assert!(is_bracketed || id.starts_with("=?"), "{id:?}");
        assert!(is_printable(id) && id.chars().count() <= LENGTH + 2);
    }
    assert!(answers.len() <= REFERENCES);
    let mut sorted = answers.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), answers.len(), "an answer stands there twice");
}

/// The header pairs in an API's response.
pub fn check_block(block: &[u8]) {
    assert!(block.ends_with(b"\r\n"));
    check(&Received::parse(block));
    // Parsing more data after the block yields the same message.
    let mut longer = block.to_vec();
    longer.extend_from_slice(b"From: <forged@x.org>\r\n\r\n");
    assert_eq!(Received::parse(&longer).from, Received::parse(block).from);
}
