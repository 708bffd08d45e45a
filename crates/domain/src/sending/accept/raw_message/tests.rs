#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

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
fn no_client_says_the_log_id() {
    let content = "From: a@example.com\r\nX-Mailgate-Id: log_00000000000000000000000000\r\nx-mailgate-id : x\r\n\r\nX-Mailgate-Id: body\r\n";
    let read = read(content, &["b@example.org"]).unwrap();
    let id = read.prepared("").id;
    let sent = sent(&read);
    let (head, body) = sent.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        head.to_lowercase().matches("x-mailgate-id").count(),
        1,
        "{head}"
    );
    assert!(
        head.contains(&format!("\r\nX-Mailgate-Id: {id}\r\n")),
        "{head}"
    );
    assert_eq!(body, "X-Mailgate-Id: body\r\n");
}

#[test]
fn bcc_goes_in_all_its_forms() {
    for bcc in [
        "Bcc: hidden@example.org\r\n",
        "BCC : hidden@example.org\r\n",
        "bcc:\r\n hidden@example.org,\r\n\tother@example.org\r\n",
        "Bcc: hidden@example.org\r\nbcc: hidden2@example.org\r\n",
        "Bcc:\r\n",
        "Resent-Bcc: hidden@example.org\r\n",
    ] {
        for (before, after) in [
            ("", "From: a@example.com\r\nTo: b@example.org\r\n"),
            ("From: a@example.com\r\n", "To: b@example.org\r\n"),
            ("From: a@example.com\r\nTo: b@example.org\r\n", ""),
        ] {
            let content = format!("{before}{bcc}{after}\r\nBcc: stays, it is body\r\n");
            let sent = sent(&read(&content, &["hidden@example.org"]).unwrap());
            assert!(
                sent.ends_with(&format!("{before}{after}\r\nBcc: stays, it is body\r\n")),
                "{content}\n---\n{sent}"
            );
        }
    }
}

#[test]
fn what_is_wrong_with_a_sender_is_said() {
    use SenderError::{
        Ambiguous, ControlCharacter, Empty, EmptyFirstLine, Form, InvalidAddress, Missing, Name,
        NoAddress, Several,
    };
    for (content, error) in [
        ("", Missing),
        ("Subject: none\r\n\r\n", Missing),
        ("Sender: a@example.com\r\n\r\n", Missing),
        ("X-From: a@example.com\r\n\r\n", Missing),
        ("\r\nFrom: a@example.com\r\n", EmptyFirstLine),
        ("\r\n", EmptyFirstLine),
        ("From: a@x.y\r\nFrom: b@x.y\r\n\r\n", Several),
        ("From: a@x.y\r\nfrom : a@x.y\r\n\r\n", Several),
    ] {
        assert_eq!(
            read(content, &["x@example.org"]).map(|_| ()),
            Err(RawMessageError::From(error)),
            "{content:?}"
        );
    }
    for (value, error) in [
        ("", Empty),
        (" \r\n ", Empty),
        (" <>", Empty),
        (" nobody", NoAddress),
        (" Ada Lovelace", NoAddress),
        (" <ada>", NoAddress),
        (" root (Cron Daemon)", NoAddress),
        (" undisclosed-senders: ;", NoAddress),
        (" =?utf-8?q?Ad=C3=A4?=", NoAddress),
        // Apps with names from a database send these.
        (" Lovelace, Ada <ada@x.y>", Name),
        (" [JIRA] Ada <ada@x.y>", Name),
        (" Ada (Sales <ada@x.y>", Name),
        (" Sales: Ada <ada@x.y>", Name),
        (" A; B <ada@x.y>", Name),
        (" DOMAIN\\ada <ada@x.y>", Name),
        (" J\u{f6}rg, Ada <ada@x.y>", Name),
        (" \"Ada <ada@x.y>", Form),
        (" Ada\" <ada@x.y>", Form),
        (" <ada@x.y", Form),
        (" Ada <ada@x.y", Form),
        (" ada@x.y>", Form),
        (" Ada ada@x.y", Form),
        (" \"Ada\" ada@x.y", Form),
        (" <ada@x.y> Ada", Form),
        (" friends: ada@x.y;", Form),
        (" ada@x.y,", Form),
        (" ada@", InvalidAddress),
        (" @x.y", InvalidAddress),
        (" Ada <ada@x..y>", InvalidAddress),
        (" Ada <.ada@x.y>", InvalidAddress),
        (" a..da@x.y", InvalidAddress),
        (" Ada <ada lovelace@x.y>", InvalidAddress),
        (" Ada <mailto:ada@x.y>", InvalidAddress),
        (" Ada\u{0} <ada@x.y>", ControlCharacter),
        (" Ada\u{b} <ada@x.y>", ControlCharacter),
        (" a@x.y, b@x.y", Ambiguous),
        (" a@x.y; b@x.y", Ambiguous),
        (" friends: a@x.y, b@x.y;", Ambiguous),
        (" \"eve@x.y\" <ada@x.y>", Ambiguous),
        (" eve@x.y <ada@x.y>", Ambiguous),
        (" =?utf-8?q?eve=40x.y?= <ada@x.y>", Ambiguous),
        (" =?utf-7?q?eve+AEA-x.y?= <ada@x.y>", Ambiguous),
        (" eve\u{ff20}x.y <ada@x.y>", Ambiguous),
    ] {
        let content = format!("From:{value}\r\n\r\n");
        assert_eq!(
            read(&content, &["x@example.org"]).map(|_| ()),
            Err(RawMessageError::From(error)),
            "{value:?}"
        );
    }
}

#[test]
fn only_one_sender_is_one() {
    for (content, address) in [
        ("From: a@example.com\r\n\r\n", "a@example.com"),
        (
            "From: \"Ada, L.\" <Ada@Example.com>\r\n\r\n",
            "Ada@Example.com",
        ),
        (
            "FROM:\r\n =?utf-8?q?Ad=C3=A9?=\r\n <a@example.com>\r\n\r\n",
            "a@example.com",
        ),
        ("from : <a@example.com>\r\n\r\n", "a@example.com"),
    ] {
        assert_eq!(
            read(content, &["x@example.org"]).unwrap().from.as_str(),
            address,
            "{content:?}"
        );
    }
}

#[test]
fn the_log_is_told_who_got_it() {
    let prepared = read(
        "From: a@example.com\r\nTo: One <one@example.org>, two@example.org\r\nCc: three@example.org\r\n\
         Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nMessage-ID: <x@y>\r\n\r\n",
        &["ONE@example.org", "three@example.org", "secret@example.org"],
    )
    .unwrap()
    .prepared("");
    assert_eq!(
        prepared.summary.to_address,
        "one@example.org, two@example.org"
    );
    assert_eq!(prepared.summary.cc_addresses, ["three@example.org"]);
    assert_eq!(prepared.summary.bcc_addresses, ["secret@example.org"]);
    assert_eq!(prepared.summary.subject, "Grüße");
    assert_eq!(prepared.message_id.as_deref(), Some("<x@y>"));
    assert!(!prepared.summary.has_attachments);
    let bare = read("From: a@example.com\r\n\r\n", &["one@example.org"])
        .unwrap()
        .prepared("");
    assert_eq!(bare.summary.to_address, "one@example.org");
    // The Message-ID holds the log id and comes first, after the Date.
    let given = format!("<{}@example.com>", bare.id);
    assert_eq!(bare.message_id.as_ref(), Some(&given));
    let content: Vec<u8> = bare.message.chunks().flatten().copied().collect();
    let content = String::from_utf8(content).unwrap();
    let expected = format!(
        "\r\nDate: Tue, 14 Nov 2023 22:13:20 +0000\r\nMessage-ID: {given}\r\nFrom: a@example.com\r\n\r\n"
    );
    assert!(content.ends_with(&expected), "{content}");
}

#[test]
fn a_message_id_is_kept_as_it_stands_there() {
    for (header, expected) in [
        ("Message-ID: <x@y>", "<x@y>"),
        ("Message-Id:\r\n  <x@y> ", "<x@y>"),
        ("message-id: abc", "abc"),
        ("Message-ID: a@b", "a@b"),
        ("Message-ID: <a@b>\r\nMessage-ID: <c@d>", "<a@b> <c@d>"),
        ("Message-ID: <a@b> (of mine)", "<a@b> (of mine)"),
    ] {
        let content = format!("From: a@example.com\r\n{header}\r\n\r\n");
        let prepared = read(&content, &["x@example.org"]).unwrap().prepared("");
        assert_eq!(prepared.message_id.as_deref(), Some(expected), "{header}");
    }
}

// microsoft/mas#4747; RFC 6409 §8.2 and §8.3 cover messages without one.
#[test]
fn an_empty_date_or_message_id_counts_as_absent() {
    let date = "Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n";
    for empty in [
        "Message-ID:\r\n",
        "Message-ID: \r\n",
        "message-id :\t \r\n",
        "Message-ID:\r\n \r\n\t\r\n",
        "MESSAGE-ID: <>\r\n",
        "Message-ID: < >\r\n",
        "Message-ID:\r\nMessage-ID: <>\r\n",
        "Date:\r\n",
        "DATE : \t\r\n",
        "date:\r\n \r\n",
        "Date:\r\nDate: \r\n",
        "Date:\r\nMessage-ID:\r\n",
    ] {
        for (before, after) in [
            ("", "From: a@example.com\r\nTo: b@example.org\r\n"),
            ("From: a@example.com\r\n", "To: b@example.org\r\n"),
            ("From: a@example.com\r\nTo: b@example.org\r\n", ""),
        ] {
            let content = format!("{before}{empty}{after}\r\nDate:\r\nMessage-ID:\r\n");
            let read = read(&content, &["b@example.org"]).unwrap();
            let prepared = read.prepared("");
            let id = format!("<{}@example.com>", prepared.id);
            assert_eq!(
                prepared.message_id.as_deref(),
                Some(id.as_str()),
                "{content:?}"
            );
            let expected = format!(
                "\r\n{date}Message-ID: {id}\r\n{before}{after}\r\nDate:\r\nMessage-ID:\r\n"
            );
            assert!(sent(&read).ends_with(&expected), "{content:?}");
        }
    }
    // Beside another one it is removed; a wrong one is the client's own.
    for (given, kept) in [
        ("Date: yesterday\r\nDate:\r\n", "Date: yesterday\r\n"),
        ("Date:\r\nDate: 0\r\n", "Date: 0\r\n"),
        ("Message-ID:\r\nMessage-ID: x\r\n", "Message-ID: x\r\n"),
        (
            "Message-ID: <x@y>\r\nMessage-ID: <>\r\n",
            "Message-ID: <x@y>\r\n",
        ),
        ("Message-ID: <@>\r\n", "Message-ID: <@>\r\n"),
    ] {
        let read = read(
            &format!("{given}From: a@example.com\r\n\r\n"),
            &["b@example.org"],
        )
        .unwrap();
        let sent = sent(&read).to_lowercase();
        assert!(
            sent.ends_with(&format!("{kept}From: a@example.com\r\n\r\n").to_lowercase()),
            "{sent}"
        );
        assert_eq!(sent.matches("\nmessage-id:").count(), 1, "{sent}");
        assert_eq!(sent.matches("\ndate:").count(), 1, "{sent}");
    }
}

#[test]
fn attachments_are_seen() {
    let multipart =
        "From: a@example.com\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n";
    let plain = "From: a@example.com\r\n\r\n";
    for (content, expected) in [
        (
            format!("{multipart}content-disposition:  Attachment; filename=x\r\n\r\n--b--\r\n"),
            true,
        ),
        (
            format!("{multipart}Content-Disposition: inline\r\n\r\n--b--\r\n"),
            false,
        ),
        (format!("{plain}Content-Disposition: attachment\r\n"), false),
        (
            "From: a@example.com\r\nContent-Disposition: attachment; filename=x\r\n\r\n".to_owned(),
            true,
        ),
    ] {
        let prepared = read(&content, &["x@example.org"]).unwrap().prepared("");
        assert_eq!(prepared.summary.has_attachments, expected, "{content}");
    }
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

#[test]
fn a_time_to_leave_is_read_and_taken_off() {
    // `at` is 2023-11-14T22:13:20Z.
    let with = |headers: &str| {
        let content = format!(
            "From: a@example.com\r\n{headers}Subject: x\r\n\r\nX-Mailgate-Send-At: body\r\n"
        );
        read(&content, &["x@example.org"])
    };
    for header in [
        "X-Mailgate-Send-At: 2023-11-15T09:00:00+01:00\r\n",
        "x-mailgate-send-at :\r\n\t2023-11-15T08:00:00Z\r\n",
        "X-MAILGATE-SEND-AT: Wed, 15 Nov 2023 08:00:00 +0000\r\n",
    ] {
        let read = with(header).unwrap();
        let at = read.send_at.unwrap().time().to_rfc3339();
        assert_eq!(at, "2023-11-15T08:00:00+00:00", "{header}");
        let sent = sent(&read);
        let rest = "From: a@example.com\r\nSubject: x\r\n\r\nX-Mailgate-Send-At: body\r\n";
        assert!(sent.ends_with(rest), "{sent}");
    }
    assert_eq!(with("").unwrap().send_at, None);
    // Whether it has passed is checked after its idempotency key.
    let past = with("X-Mailgate-Send-At: 2023-11-14T22:13:20Z\r\n").unwrap();
    assert!(past.send_at.is_some());
    let good = "X-Mailgate-Send-At: 2023-11-15T09:00:00Z\r\n";
    for (headers, error) in [
        (format!("{good}{good}"), RawMessageError::SendAtTwice),
        (
            "X-Mailgate-Send-At:\r\n".to_owned(),
            RawMessageError::SendAt(SendAtError::NoTime),
        ),
        (
            "X-Mailgate-Send-At: 2024-11-14T22:13:20Z\r\n".to_owned(),
            RawMessageError::SendAt(SendAtError::TooFar),
        ),
    ] {
        let refused = with(&headers).map(|_| ());
        assert_eq!(refused, Err(error), "{headers}");
    }
}

#[test]
fn metadata_is_read_and_taken_off() {
    let content = "From: a@example.com\r\nX-Mailgate-Metadata-Order.ID: 4711\r\n\
                   x-mailgate-METADATA-name :\r\n =?utf-8?q?Gr=C3=BC?= =?utf-8?b?w59l?=\r\n\tan alle\r\n\
                   X-Mailgate-Metadata-empty:\r\nSubject: x\r\n\r\nX-Mailgate-Metadata-body: x\r\n";
    let read = read(content, &["x@example.org"]).unwrap();
    let metadata = &read.prepared.summary.metadata;
    let expected = "{\"Order.ID\":\"4711\",\"empty\":\"\",\"name\":\"Grüße an alle\"}";
    assert_eq!(metadata.to_json().as_deref(), Some(expected));
    let sent = sent(&read);
    let rest = "From: a@example.com\r\nSubject: x\r\n\r\nX-Mailgate-Metadata-body: x\r\n";
    assert!(sent.ends_with(rest), "{sent}");
    assert!(!sent.contains("4711"), "{sent}");
}

#[test]
fn encoded_words_that_split_a_character_are_joined() {
    // RFC 2047 §6.2: programs fold words at a number of octets, whatever these belong to.
    for (value, expected) in [
        (
            "=?UTF-8?Q?pasi=C5=BEad=C4?= =?UTF-8?Q?=97jim?=",
            "pasi\u{17e}ad\u{117}jim",
        ),
        (
            "=?utf-8?q?=E2?=\r\n =?UTF-8?q?=82?=\r\n\t=?Utf-8*en?Q?=AC?=",
            "\u{20ac}",
        ),
        ("=?utf-8?b?8J+O?= =?utf-8?b?iQ==?=", "\u{1f389}"),
        ("=?utf-8?b?8J+OiSE?=\r\n =?utf-8?q?=21?=", "\u{1f389}!!"),
        ("=?utf-8?b?8J+Oi?=\r\n =?utf-8?b?Q==?=", "\u{1f389}"),
        ("=?utf-8?q?=F0=9F?= =?utf-8?B?jok=?=", "\u{1f389}"),
        (
            "=?ISO-2022-JP?B?GyRCJCI=?= =?ISO-2022-JP?B?JCQbKEI=?=",
            "\u{3042}\u{3044}",
        ),
        (
            "=?gb2312?b?xOPK?= =?GB2312?b?x8uto78=?=",
            "\u{4f60}\u{662f}\u{8c01}\u{ff1f}",
        ),
        ("order =?utf-8?q?=C3?= =?utf-8?q?=BC?= 7", "order \u{fc} 7"),
        ("=?utf-8?q?a?= =?iso-8859-1?q?=FC?=", "a\u{fc}"),
        ("=?utf-8?q?a_?= =?utf-8?q?_b?=", "a  b"),
        ("=?utf-8?q?a?=   =?utf-8?q?b?=", "ab"),
        ("=?utf-8?q?a?= =?x", "a =?x"),
        ("a  b =? c", "a  b =? c"),
    ] {
        let content = format!(
            "From: a@example.com\r\nX-Mailgate-Metadata-k: {value}\r\nSubject: {value}\r\n\r\n"
        );
        let read = read(&content, &["x@example.org"]).unwrap();
        let summary = &read.prepared.summary;
        let metadata: Vec<(&str, &str)> = summary.metadata.iter().collect();
        assert_eq!(metadata, [("k", expected)], "{value}");
        assert_eq!(summary.subject, expected, "{value}");
    }
}

#[test]
fn metadata_out_of_bounds_is_refused() {
    let many: Vec<String> = (0..21)
        .map(|number| format!("X-Mailgate-Metadata-K{number}: x\r\n"))
        .collect();
    for (headers, error) in [
        (many.concat(), InvalidMetadata::TooMany),
        (
            "X-Mailgate-Metadata-: x\r\n".to_owned(),
            InvalidMetadata::Key,
        ),
        (
            "X-Mailgate-Metadata-a/b: x\r\n".to_owned(),
            InvalidMetadata::Key,
        ),
        (
            format!("X-Mailgate-Metadata-{}: x\r\n", "k".repeat(41)),
            InvalidMetadata::Key,
        ),
        (
            "X-Mailgate-Metadata-a: x\r\nx-mailgate-metadata-A: y\r\n".to_owned(),
            InvalidMetadata::Twice,
        ),
        (
            format!("X-Mailgate-Metadata-a: {}\r\n", "x".repeat(501)),
            InvalidMetadata::TooLong,
        ),
        (
            "X-Mailgate-Metadata-a: =?utf-8?q?a=07b?=\r\n".to_owned(),
            InvalidMetadata::Control,
        ),
    ] {
        let content = format!("From: a@example.com\r\n{headers}\r\nx\r\n");
        let refused = read(&content, &["x@example.org"]).map(|_| ());
        assert_eq!(refused, Err(RawMessageError::Metadata(error)), "{headers}");
    }
}

#[test]
fn a_wrong_date_hides_no_other_field() {
    for date in [
        "yesterday",
        "2026-03-01T12:00:00Z",
        "Sun Mar  1 12:00:00 2026",
        "Sun, 1 Mar 2026 12:00:00 Z",
        "Sun, 1 Mar 2026 12:00:00 +d",
        "Sun, 1 Mar 2026 120:0:00 +d\0",
        "Sun, 1 Mar 2026 12:00:00 \"x",
        "Sun, 1 Mar 2026 12:00:00 (x",
        "Sun, 1 Mar 2026 12:00:00 +",
        "+",
    ] {
        let content = format!(
            "From: a@x.y\r\nDate: {date}\r\nSubject: x\r\nTo: b@x.y\r\nX-Mailgate-Metadata-k: v\r\n\r\nz: 1\r\n"
        );
        let summary = read(&content, &["b@x.y"]).unwrap().prepared("").summary;
        assert_eq!(
            (summary.subject.as_str(), summary.to_address.as_str()),
            ("x", "b@x.y"),
            "{date}"
        );
        assert!(!summary.metadata.is_empty(), "{date}");
    }
}
