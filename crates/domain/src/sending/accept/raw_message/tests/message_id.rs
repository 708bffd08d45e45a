//! Date and Message-ID, of the client or of the gateway.

use super::*;

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
