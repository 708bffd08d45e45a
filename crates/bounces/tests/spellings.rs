//! A report is read in whatever way its header is folded and its status names the message.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mailgate_bounces::{is_candidate, read};

const OURS: &str = "<ours@example.com>";

/// A report whose header has `header` before what tells its kind, whose status has `message` in the fields of the message,
/// and `recipient` in those of its first recipient, and which returns `returned`.
fn report(header: &str, message: &str, recipient: &str, returned: &str) -> String {
    format!(
        "Return-Path: <>\nFrom: MAILER-DAEMON@mx.example.net\n{header}Subject: Undelivered mail\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=b\n\n\
         --b\n\nNobody here.\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example.net\n{message}\n\
         Final-Recipient: rfc822; a@x.org\nAction: failed\nStatus: 5.1.1\n{recipient}\n\
         Final-Recipient: rfc822; b@x.org\nAction: delayed\nStatus: 4.2.2\n{returned}--b--\n"
    )
}

/// Checks a report that is about our message alone, whatever ends its lines.
fn check(report: &str) {
    for end in ["\n", "\r\n", "\r", "\r\r\n"] {
        let report = report.replace('\n', end);
        assert!(is_candidate(report.as_bytes()), "{report:?}");
        let bounce = read(report.as_bytes()).unwrap_or_else(|| panic!("{report:?}"));
        assert_eq!(bounce.message_ids, [OURS], "{report:?}");
        let addresses: Vec<&str> = (bounce.recipients.iter())
            .map(|recipient| recipient.address.as_str())
            .collect();
        assert_eq!(addresses, ["a@x.org", "b@x.org"], "{report:?}");
    }
}

// laminas/laminas-mail#25: SpamAssassin and rspamd write such headers (RFC 5322 §4.2, obs-FWS).
#[test]
fn lines_of_blanks_alone_continue_a_header() {
    let named = format!("X-Original-Message-ID: {OURS}\n");
    let returned = format!(
        "--b\nContent-Type: message/rfc822\n\nFrom: ada@example.com\nX-Spam-Report:\n \n\t* 1.0 x\n\t \nMessage-ID: {OURS}\n\nHi\n"
    );
    for header in [
        "X-Spam-Report:\n \n",
        "X-Spam-Report: x\n\t\n",
        "X-Spam-Report: \n \t \n  * 1.0 one\n \n  * 2.0 two\n",
        "X-Spam-Report: x\n \n\t\n \nX-Other: y\n",
        "X-Spamd-Result: default: False [1.0 / 9.0];\n\t\n\tONE(1.0)[];\n \n",
        "Received: from a\n \n by b\n",
    ] {
        check(&report(header, &named, "", ""));
        check(&report(header, "", "", &returned));
    }
    // Within the fields that it is about.
    for header in ["", "Subject:\n \n"] {
        let folded = format!("X-Original-Message-ID:\n \n {OURS}\n");
        check(&report(header, &folded, "", ""));
    }
    let diagnostic = "Diagnostic-Code: smtp;\n \n\t550 5.1.1 nobody\n";
    let bounce = read(report("", &named, diagnostic, "").as_bytes()).unwrap();
    assert_eq!(
        bounce.recipients[0].diagnostic.as_deref(),
        Some("550 5.1.1 nobody")
    );
    let kind = "Content-Type:\n \n multipart/report;\n\t\n boundary=b\n\n";
    let report = report("", &named, "", "");
    let (before, after) = report.split_once("Content-Type: multipart").unwrap();
    let (_, after) = after.split_once("\n\n").unwrap();
    check(&format!("{before}{kind}{after}"));
}

#[test]
fn text_behind_a_line_of_blanks_is_the_body() {
    let text = "From: MAILER-DAEMON@mx.example.net\nReturn-Path: <>\nSubject: Undelivered mail\n \n\
        Hello, your message could not be delivered to:\n\n<a@x.org>: 550 5.1.1 nobody\n\n\
        From: ada@example.com\nMessage-ID: <ours@example.com>\n";
    for text in [text.to_owned(), text.replace('\n', "\r\n")] {
        let bounce = read(text.as_bytes()).unwrap();
        assert_eq!(bounce.message_ids, [OURS]);
        assert_eq!(bounce.recipients[0].address, "a@x.org");
    }
}

// chatmail/core#1478
#[test]
fn the_status_names_the_message() {
    for field in [
        "X-Original-Message-ID: <ours@example.com>",
        "x-original-message-id: <ours@example.com>",
        "X-ORIGINAL-MESSAGE-ID:<ours@example.com>",
        "X-Original-Message-Id: ours@example.com",
        "X-Original-Message-ID:\n <ours@example.com>",
        "X-Original-Message-ID: <ours@\n\texample.com>",
        "X-Original-Message-ID : <ours@example.com> (added)",
        "X-Original-Message-ID: rfc822; <ours@example.com>",
        "X-Original-Message-ID: <ours@=?utf-8?q?exam?= =?utf-8?q?ple=2Ecom?=>",
        "Original-Message-ID: <ours@example.com>",
        "original-message-id: ours@example.com",
        "Original-Envelope-Id: <ours@example.com>",
        "Original-Envelope-Id: ours@example.com",
        "Original-Envelope-ID: ours+40example.com",
        "Original-Envelope-Id: +3Cours+40example.com+3E",
        "X-Original-Message-ID: <ours@example.com>\nOriginal-Message-ID: <ours@example.com>",
    ] {
        let field = format!("{field}\n");
        check(&report("", &field, "", ""));
        check(&report("", "", &field, ""));
        check(&report("", &field, &field, ""));
        // The text of the message alone doesn't name it.
        check(&report(
            "",
            &field,
            "",
            "--b\nContent-Type: message/rfc822\n\nSubject: x\n\n",
        ));
    }
    // What else it may mean stands there too.
    for field in [
        "Original-Envelope-Id: +3Cours@example.com+3E\n",
        "X-Original-Message-ID: =?utf-8?q?=3Cours=40example=2Ecom=3E?=\n",
    ] {
        let bounce = read(report("", field, "", "").as_bytes()).unwrap();
        assert_eq!(bounce.message_ids[0], OURS, "{field}");
    }
    for nothing in [
        "",
        "X-Original-Message-ID:\n",
        "X-Original-Message-ID: <>\n",
        "Original-Envelope-Id: QQ123\n",
        "Original-Envelope-Id: rfc822;a+ZZ\n",
        "X-Original-Message-Idea: <ours@example.com>\n",
    ] {
        assert_eq!(
            read(report("", nothing, "", "").as_bytes()),
            None,
            "{nothing}"
        );
    }
}

#[test]
fn an_envelope_may_be_named_by_the_log_id() {
    let id = "log_00000000000000000000000007";
    let report = report("", &format!("Original-Envelope-Id: {id}\n"), "", "");
    assert_eq!(read(report.as_bytes()).unwrap().log_ids, [id]);
}

/// The first id is that of the message returned: it is more certain than what the status calls the original's.
#[test]
fn what_is_returned_comes_first() {
    let returned = "--b\nContent-Type: text/rfc822-headers\n\nMessage-ID: <returned@example.com>\nX-Original-Message-ID: <before@example.com>\n";
    let report = report(
        "In-Reply-To: <answered@example.com>\n",
        "X-Original-Message-ID: <ours@example.com>\n",
        "",
        returned,
    );
    assert_eq!(
        read(report.as_bytes()).unwrap().message_ids,
        [
            "<returned@example.com>",
            "<before@example.com>",
            OURS,
            "<answered@example.com>"
        ]
    );
}

#[test]
fn subjects_and_names_whose_words_split_a_character() {
    // RFC 2047 §6.2
    for header in [
        "Return-Path: <>\nSubject: =?utf-8?b?VW56dXN0ZWxs?=\n =?utf-8?b?YmFyOiDDvA==?=",
        "Return-Path: <>\nSubject: =?UTF-8?Q?=C3=9Cbrigens_?= =?utf-8?q?unzustell?=\n =?utf-8?q?bar?=",
        "From: =?utf-8?q?Mail?= =?utf-8?q?_Delivery_System?= <x@x.org>",
        "From: =?utf-8?b?TWFpbCBEZQ==?=\n\t=?UTF-8?B?bGl2ZXJ5?= <x@x.org>",
        "From: =?utf-8?b?UG9zdG1?= =?utf-8?b?hc3Rlcg==?= <x@x.org>",
    ] {
        assert!(is_candidate(format!("{header}\n\n").as_bytes()), "{header}");
    }
}
