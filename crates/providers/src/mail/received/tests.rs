//! Reading the headers of received mail.

use super::answers::REFERENCES;
use super::*;
use proptest::prelude::*;

fn is_fetched(name: &str) -> bool {
    header_names().any(|known| known.eq_ignore_ascii_case(name))
}

#[test]
fn what_is_looked_at_is_fetched() {
    for name in mailgate_bounces::HEADERS {
        assert!(is_fetched(name), "{name}");
    }
}

#[test]
fn a_bounce_is_automatic() {
    let bounce = b"From: mailer-daemon@x.org\r\nX-Failed-Recipients: a@x.org\r\nIn-Reply-To: <m@x.org>\r\n\r\n";
    let mut received = Received::default();
    assert!(received.is_read_whole(bounce));
    received.read_whole(bounce);
    assert!(received.automatic && received.bounce.is_some());
    received.read_whole(b"Subject: hi\r\n\r\n");
    assert_eq!(received.bounce, None);
}

#[test]
fn what_a_calendar_answers_is_automatic() {
    let header = "From: Bob <bob@x.org>\r\nSubject: Accepted: Lunch\r\nIn-Reply-To: <m@y.org>\r\n\
        Content-Type: multipart/alternative; boundary=b\r\n\r\n";
    let mut received = Received::parse(header.as_bytes());
    assert!(!received.automatic && received.is_read_whole(header.as_bytes()));
    received.read_whole(format!("{header}--b\r\n\r\nSee you\r\n--b--\r\n").as_bytes());
    assert!(!received.automatic, "a person's");
    let object =
        "--b\r\nContent-Type: text/calendar; method=REPLY\r\n\r\nBEGIN:VCALENDAR\r\n--b--\r\n";
    received.read_whole(format!("{header}{object}").as_bytes());
    assert!(received.automatic && received.bounce.is_none());
}

#[test]
fn a_reply() {
    let received = Received::parse(
        b"Return-Path: <bob@example.org>\r\nMessage-ID: <r1@example.org>\r\n\
          From: Bob <bob@example.org>\r\nTo: Ada <ada@example.com>, x@example.com\r\n\
          Subject: =?utf-8?q?Re:_Gr=C3=BC=C3=9Fe?=\r\nIn-Reply-To: <m2@example.com>\r\n\
          References: <m1@example.com>\r\n <m2@example.com>\r\n\r\nBody: no",
    );
    assert_eq!(
        received,
        Received {
            message_id: Some("<r1@example.org>".to_owned()),
            answers: vec!["<m2@example.com>".to_owned(), "<m1@example.com>".to_owned()],
            from: "bob@example.org".to_owned(),
            to: "ada@example.com".to_owned(),
            subject: "Re: Grüße".to_owned(),
            automatic: false,
            bounce: None,
        }
    );
}

#[test]
fn a_long_message_id_fits_the_index_and_is_still_one_of_its_own() {
    let of = |id: &str| {
        let headers = format!("Message-ID: <{id}>\r\nIn-Reply-To: <{id}>\r\n\r\n");
        Received::parse(headers.as_bytes())
    };
    let long = "字".repeat(998);
    let (one, other) = (of(&format!("{long}1@x")), of(&format!("{long}2@x")));
    assert!(one.message_id != other.message_id && one.answers != other.answers);
    assert!(
        one.message_id
            .is_some_and(|id| id.len() <= message_id::LONGEST)
    );
}

proptest! {
    #[test]
    fn any_headers_are_read_to_what_a_row_holds(
        name in "(Message-ID|In-Reply-To|References|From|To|Subject|Auto-Submitted|Date)",
        value in prop::collection::vec(any::<u8>(), 0..4_000),
    ) {
        let headers = [name.as_bytes(), b": <", &value, b">\r\n\r\n"].concat();
        let received = Received::parse(&headers);
        for id in received.message_id.iter().chain(&received.answers) {
            prop_assert!(id.len() <= message_id::LONGEST);
        }
        for text in [&received.from, &received.to, &received.subject] {
            prop_assert!(text.chars().count() <= LENGTH && !text.contains(char::is_control));
        }
    }
}

#[test]
fn nothing_is_something() {
    assert_eq!(Received::parse(b""), Received::default());
    assert_eq!(Received::parse(b"\r\n\r\n"), Received::default());
}

fn check(cases: &[(&str, bool)]) {
    for (header, automatic) in cases {
        for line in header.lines().filter(|_| *automatic) {
            let name = line.split(':').next().unwrap_or_default();
            assert!(line.starts_with([' ', '\t']) || is_fetched(name), "{name}");
        }
        // A person's reply, without it.
        let header = format!(
            "From: Bob <bob@x.org>\r\nSubject: Re: offer\r\nIn-Reply-To: <m@y.org>\r\n{header}\r\n\r\n"
        );
        let received = Received::parse(header.as_bytes());
        assert_eq!(received.automatic, *automatic, "{header}");
    }
}

#[test]
fn headers_that_say_it_by_their_names() {
    // freescout-help-desk/freescout#4226, Probesys/bileto#1008, jbostoen/itop-jb-mail-to-ticket-automation-v2#21,
    // postalserver/postal#826
    check(&[
        ("X-Autoreply: yes", true),
        ("X-AUTOREPLY: Yes", true),
        ("X-Autoreply: no", false),
        ("X-Autoreply: No (written by hand)", false),
        ("X-Autoreply: false", false),
        ("X-Auto-Reply: 1", true),
        ("X-Auto-Reply: 0", false),
        ("X-Autorespond: Re: your offer", true),
        ("X-Autorespond:", true),
        ("X-Autoresponder: is silent for a day now", true),
        ("X-Mail-Autoreply:\r\n true", true),
        ("X-Auto-Reply-From: bob@x.org", true),
        ("X-AutoReply-From: bob@x.org", true),
        ("x-autoresponse: on", true),
        ("X-FC-MachineGenerated: true", true),
        ("X-FC-MachineGenerated: FALSE", false),
        ("X-POST-MessageClass: 9; Autoresponder", true),
        ("X-Post-MessageClass: 9;\r\n\tAUTORESPONDER", true),
        ("X-POST-MessageClass: 1; Mail", false),
        ("Delivered-To: Autoresponder", true),
        ("Delivered-To: <autoresponder>", true),
        (
            "Delivered-To: ada@y.org\r\nDelivered-To: AUTORESPONDER",
            true,
        ),
        ("Delivered-To: autoresponder@y.org", false),
        ("X-Autogenerated: Reply", true),
        ("X-Autogenerated: Forward", false),
        ("X-Autogenerated: no", false),
        ("X-Autoreplying-Is-Off: yes", false),
        // It asks others not to reply: discourse/discourse#21367, sisimai/p5-sisimai#491
        ("X-Auto-Response-Suppress: All", false),
        ("X-Auto-Response-Suppress: OOF, AutoReply, DR", false),
        ("x-auto-response-suppress: none", false),
    ]);
}

#[test]
fn auto_submitted() {
    // RFC 3834 §5
    check(&[
        ("Auto-Submitted: no", false),
        ("Auto-Submitted: NO (really)", false),
        ("Auto-Submitted: (really) no", false),
        ("Auto-Submitted: (a (b) c)\r\n no; owner-email=\"x\"", false),
        ("Auto-Submitted: \"no\"", false),
        ("Auto-Submitted: false", false),
        ("Auto-Submitted: auto-replied", true),
        ("Auto-Submitted: (vacation) Auto-Replied", true),
        ("Auto-Submitted: auto-notified; owner-email=x", true),
        ("auto-submitted:\r\n auto-generated; owner-email=x", true),
        ("Auto-Submitted: no\r\nAuto-Submitted: auto-replied", true),
        ("X-Auto-Submitted: auto-replied", true),
    ]);
}

#[test]
fn paths_that_nobody_reads() {
    check(&[
        ("Return-Path: <>", true),
        ("Return-Path: < >", true),
        ("Return-Path: <MAILER-DAEMON>", true),
        ("Return-Path: <Mailer-Daemon@mx.x.org>", true),
        ("Return-Path: MAILER-DAEMON", true),
        ("return-path:\r\n <mailer_daemon@x.org>", true),
        ("Return-Path: <#@[]>", true),
        ("Return-Path: <bob@x.org>", false),
        // From lists, and from people.
        ("Return-Path: <bounces+ada=y.org@x.org>", false),
        ("Return-Path: <postmaster@x.org>", false),
    ]);
}

#[test]
fn one_of_many_is_automatic_with_another_sign() {
    check(&[
        ("Precedence: auto_reply", true),
        ("Precedence: Auto-Reply", true),
        ("X-Precedence: auto_reply", true),
        ("Precedence: list", false),
        ("Precedence: first-class", false),
        // Help desks send their staff's replies this way.
        ("Precedence: bulk", false),
        ("Precedence: junk", false),
        ("Precedence: bulk\r\nX-Auto-Response-Suppress: All", false),
        ("Precedence: junk\r\nX-Loop: bob@x.org", true),
        ("Precedence: Bulk\r\nX-Autoreply: yes", true),
        ("Precedence: bulk\r\nFrom: <No-Reply@x.org>", true),
        (
            "Precedence: bulk (x)\r\nSubject: Out of Office: offer",
            true,
        ),
        (
            "Precedence: bulk\r\nSubject: =?utf-8?q?R=C3=A9ponse_automatique?=",
            true,
        ),
        ("Subject: Out of Office: offer", false),
        ("X-Loop: bob@x.org", false),
        ("List-Id: <people.x.org>", false),
        (
            "List-Id: <people.x.org>\r\nPrecedence: bulk\r\nX-Loop: people@x.org",
            false,
        ),
        (
            "List-Id: <people.x.org>\r\nAuto-Submitted: auto-replied",
            true,
        ),
    ]);
}

#[test]
fn reports_and_the_answers_of_calendars() {
    check(&[
        ("Content-Type: Multipart/Report; boundary=x", true),
        ("Content-Type: multipart/mixed; boundary=x", false),
        ("Content-Type: message/disposition-notification", true),
        ("From: Mail Delivery <MAILER-DAEMON@x.org>", true),
        ("From: <postmaster@x.org>", false),
        ("X-Failed-Recipients: a@x.org", true),
        ("Content-Type: text/calendar; method=REPLY", true),
        (
            "Content-Type: Text/Calendar; charset=utf-8;\r\n METHOD=\"reply\"",
            true,
        ),
        (
            "Content-Type: text/calendar; method=COUNTER; component=vevent",
            true,
        ),
        ("Content-Type: text/calendar; method=REQUEST", false),
        ("Content-Type: text/calendar; method=CANCEL", false),
        ("Content-Type: text/calendar; name=\"reply.ics\"", false),
        ("Content-Type: text/plain; method=REPLY", false),
    ]);
}

fn answers(header: &str) -> Vec<String> {
    Received::parse(format!("{header}\r\n\r\n").as_bytes()).answers
}

#[test]
fn answers_that_are_encoded_or_folded() {
    // neomutt/neomutt#2315, python/cpython#79986; RFC 5322 §3.6.4 allows neither.
    for header in [
        "In-Reply-To: =?utf-8?q?=3Cours=401234567890=2Eexample=2Ecom=3E?=",
        "In-Reply-To: =?utf-8?q?=3Cours=40123456?=\r\n =?utf-8?q?7890=2Eexample=2Ecom=3E?=",
        "In-Reply-To: =?utf-8?q?=3Cours?=\r\n =?UTF-8?Q?=401234567890?=\r\n\t=?utf-8?q?=2Eexample=2Ecom=3E?=",
        "In-Reply-To: =?US-ASCII?B?PG91cnNAMTIzNDU2Nzg5MC5leGFtcGxlLmNvbT4=?=",
        "In-Reply-To: <ours@=?utf-8?q?1234567890?= =?utf-8?q?=2Eexample=2Ecom?=>",
        "References: =?utf-8?q?=3Cother=40x=2Eorg=3E_=3Cours=401234567890=2Eexample=2Ecom=3E?=",
        "References: <other@x.org>\r\n =?utf-8?q?=3Cours=401234567890=2Eexample=2Ecom=3E?=",
        "In-Reply-To: <ours@1234567890\r\n .example.com>",
        "In-Reply-To: <ours@\r\n\t1234567890.\r\n  example.com>",
        "In-Reply-To: <ours@1234567890.example.com\r\n >",
        "In-Reply-To:\r\n \r\n <ours@1234567890.example.com>",
        "In-Reply-To: <\r\n ours@1234567890.example.com>",
        "In-Reply-To : <ours@1234567890.example.com>",
        "in-reply-to:<ours@1234567890.example.com>",
        "REFERENCES: <ours@1234567890.example.com> (the first)",
        "In-Reply-To: <ours@1234567890.example.com",
        "In-Reply-To: ours@1234567890.example.com",
        "In-Reply-To: ours@1234567890\r\n .example.com",
        "In-Reply-To: Your message of Monday <ours@1234567890.example.com>",
        "In-Reply-To: <<ours@1234567890.example.com>>",
        "In-Reply-To: <other@x.org>, <ours@1234567890.example.com>",
        "In-Reply-To: <other@x.org>\r\nIn-Reply-To: <ours@1234567890.example.com>",
        "References: <broken <ours@1234567890.example.com>",
    ] {
        let found = answers(header);
        let ours = "<ours@1234567890.example.com>".to_owned();
        assert!(found.contains(&ours), "{header:?} has {found:?}");
    }
    // A Message-ID that was sent with blanks, or encoded, is copied unchanged.
    let found = answers("In-Reply-To: <a\r\n b@x.org>");
    assert_eq!(found, ["<ab@x.org>", "<a b@x.org>"]);
    let word = "=?utf-8?q?=3Ca=40x=2Eorg=3E?=";
    assert_eq!(
        answers(&format!("In-Reply-To: {word}")),
        ["<a@x.org>", word]
    );
    for nothing in [
        "",
        "<>",
        "< >",
        "<>, <>",
        "Your message of Monday",
        "=?utf-8?q??=",
    ] {
        let found = answers(&format!("In-Reply-To: {nothing}"));
        assert!(found.iter().all(|id| id.starts_with("=?")), "{found:?}");
    }
}

#[test]
fn a_long_thread_keeps_both_its_ends() {
    let thread = |count: usize| -> Vec<String> {
        (0..count)
            .map(|number| format!("<m{number}@x.org>"))
            .collect()
    };
    // RFC 5322 §3.6.4: the first one began the thread, the last one is answered.
    for count in [1, 2, 49, 50, 51, 60, 150, 200, 201, 1_000] {
        let ids = thread(count);
        let header = format!("References: {}", ids.join("\r\n "));
        let found = answers(&header);
        assert!(found.len() <= REFERENCES);
        assert_eq!(found.first(), ids.last(), "the nearest comes first");
        for near in ids.iter().take(30).chain(ids.iter().rev().take(30)) {
            assert!(found.contains(near), "{near} of {count}");
        }
        if count <= 150 {
            let backwards: Vec<String> = ids.into_iter().rev().collect();
            assert_eq!(found, backwards);
        }
    }
    let ids = thread(60);
    let header = format!("In-Reply-To: <m59@x.org>\r\nReferences: {}", ids.join(" "));
    assert_eq!(answers(&header).len(), 60);
    // Long ones are bounded too.
    let long: Vec<String> = (0..200)
        .map(|number| format!("<{}{number}@x.org>", "x".repeat(900)))
        .collect();
    let found = answers(&format!("References: {}", long.join("\r\n ")));
    assert!(found.len() < 60 && found.contains(&long[0]) && found.contains(&long[199]));
}

#[test]
fn subjects_whose_words_split_a_character() {
    // RFC 2047 §6.2
    for (subject, expected) in [
        (
            "=?UTF-8?Q?pasi=C5=BEad=C4?=\r\n =?UTF-8?Q?=97jim?=",
            "pasi\u{17e}ad\u{117}jim",
        ),
        ("Re: =?utf-8?q?=E2=82?= =?UTF-8?B?rCA1?=", "Re: \u{20ac} 5"),
        ("=?utf-8?b?4oI=?=\r\n\t=?utf-8?b?rA==?=", "\u{20ac}"),
        ("=?utf-8?b?4oKs4?= =?utf-8?b?oKs?=", "\u{20ac}\u{20ac}"),
        (
            "=?ISO-2022-JP?B?GyRCJCIkJBsoQg==?= =?iso-2022-jp?B?GyRCJCYbKEI=?=",
            "\u{3042}\u{3044}\u{3046}",
        ),
        (
            "=?ISO-2022-JP?B?GyRCJCIk?= =?ISO-2022-JP?B?JBsoQg==?=",
            "\u{3042}\u{3044}",
        ),
        ("=?utf-8?q?a?= b =?utf-8?q?c?=", "a b c"),
        ("=?iso-8859-1?q?=FC?= =?utf-8?q?=C3=BC?=", "\u{fc}\u{fc}"),
        ("=?iso-8859-1?q?=C3?= =?utf-8?q?=BC?=", "\u{c3}\u{fffd}"),
        ("Gr\u{fc}\u{df}e", "Gr\u{fc}\u{df}e"),
    ] {
        let header = format!("Subject: {subject}\r\n\r\n");
        assert_eq!(
            Received::parse(header.as_bytes()).subject,
            expected,
            "{subject}"
        );
    }
}

#[test]
fn octets_of_no_charset() {
    let received = Received::parse(b"X-Autorespond: Gr\xfc\xdfe\r\nSubject: a \xfc\r\n\r\n");
    assert!(received.automatic);
    assert_eq!(received.subject, "a \u{fffd}");
}
