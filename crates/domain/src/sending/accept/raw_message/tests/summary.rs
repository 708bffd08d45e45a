//! What the log shows of a message.

use super::*;

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
