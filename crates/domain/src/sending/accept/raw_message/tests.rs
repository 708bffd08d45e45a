//! A submitted message, as it is read and as it goes out.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod message_id;
mod private_headers;
mod sender;
mod summary;

use super::*;

fn read(content: &str, recipients: &[&str]) -> Result<RawMessage, RawMessageError> {
    let recipients: Vec<EmailAddress> = recipients
        .iter()
        .map(|recipient| EmailAddress::parse(recipient).unwrap())
        .collect();
    RawMessage::read(
        vec![Bytes::from(content.to_owned())],
        &recipients,
        false,
        "mail.example.net",
        DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
    )
}

fn sent(submitted: &RawMessage) -> String {
    let bytes = submitted
        .prepared("")
        .message
        .chunks()
        .collect::<Vec<_>>()
        .concat();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn goes_out_byte_for_byte_behind_one_received_header() {
    let content = "Subject:  odd   spacing\r\ndate : yesterday\r\nMessage-ID: <x@y>\r\nFrom: Ada <ada@example.com>\r\nX-A: b\r\n\tc \r\n\r\nBody \r\n.\r\n\r\n";
    let sent = sent(&read(content, &["bob@example.org"]).unwrap());
    let (received, rest) = sent.split_at(sent.len() - content.len());
    assert_eq!(rest, content);
    assert!(
        received.starts_with("Received: by mail.example.net with ESMTPSA id log_"),
        "{received}"
    );
    assert!(
        received.contains("Tue, 14 Nov 2023 22:13:20 +0000\r\nX-Mailgate-Id: log_"),
        "{received}"
    );
    assert_eq!(received.matches("\r\n").count(), 3);
}

#[test]
fn pieces_cut_anywhere_read_like_the_whole() {
    let content = "From: a@example.com\r\nBcc: hidden@example.org\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Disposition: attachment\r\n\r\nx\r\n--b--\r\n";
    let whole = sent(&read(content, &["hidden@example.org"]).unwrap());
    let recipients = [EmailAddress::parse("hidden@example.org").unwrap()];
    for cut in 0..=content.len() {
        let pieces = [&content[..cut], &content[cut..]];
        let pieces = pieces.map(|piece| Bytes::from(piece.to_owned())).to_vec();
        let at = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let submitted =
            RawMessage::read(pieces, &recipients, false, "mail.example.net", at).unwrap();
        assert!(submitted.prepared.summary.has_attachments, "cut at {cut}");
        let sent = sent(&submitted);
        assert_eq!(
            sent[sent.find("From:").unwrap()..],
            whole[whole.find("From:").unwrap()..]
        );
    }
}

#[test]
fn endless_headers_are_refused() {
    let line = Bytes::from(format!("X: {}\r\n", "x".repeat(60_000)));
    let pieces = vec![line; 30];
    let at = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
    let refused = RawMessage::read(pieces, &[], false, "mail.example.net", at);
    assert_eq!(refused.map(|_| ()), Err(RawMessageError::TooManyHeaders));
}
