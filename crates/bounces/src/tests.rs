//! Truncated, nested, huge or garbled messages: nothing panics, everything is bounded, and time is linear in the size.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use crate::fuzzing::bounces;
use crate::{RECIPIENTS, read};

/// The part of a message that readers fetch.
const LARGEST: usize = 256 * 1024;

/// The time limit for the largest message, without optimization; a quadratic pass takes minutes.
const LONGEST: Duration = Duration::from_secs(10);

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut found = Vec::new();
    for kind in ["bounces", "others"] {
        for entry in fs::read_dir(folder.join(kind)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "eml") {
                found.push(fs::read(path).unwrap());
            }
        }
    }
    found
}

#[test]
fn cut_off_anywhere() {
    for message in corpus() {
        for length in (0..message.len()).step_by(7) {
            bounces(&message[..length]);
        }
    }
}

/// A message of the largest size that repeats `unit` after `head`.
fn repeated(head: &str, unit: &str) -> Vec<u8> {
    let mut message = head.as_bytes().to_vec();
    while message.len() + unit.len() <= LARGEST {
        message.extend_from_slice(unit.as_bytes());
    }
    message
}

#[test]
fn time_grows_with_the_size() {
    let daemon = "From: mailer-daemon@x.org\nReturn-Path: <>\nSubject: Undeliverable mail\nIn-Reply-To: <m@x>\n";
    let report = format!("{daemon}Content-Type: multipart/report; boundary=b\n\n");
    let status = format!("{report}--b\nContent-Type: message/delivery-status\n\n");
    for (head, unit) in [
        ("", "X-Many: headers\n"),
        ("", "X: \n folded"),
        ("", " "),
        ("", "\r"),
        ("", "\n"),
        ("", "<"),
        ("Content-Type: ", "a;b=\"c\";"),
        ("Content-Type: ", "\""),
        ("Subject: ", "=?utf-8?q?=C3?= "),
        ("References: ", "<a@b> "),
        (&report, "--b\n"),
        (
            &report,
            "--b\nContent-Type: multipart/mixed; boundary=b\n\n",
        ),
        (
            &report,
            "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n",
        ),
        (&report, "--b\n\n<a@x.org>: 550 5.1.1 x\n"),
        (
            &status,
            "Final-Recipient: rfc822; a@x.org\nAction: failed\n\n",
        ),
        (&status, "Final-Recipient: rfc822; a@x.org\n"),
        (&status, "Diagnostic-Code: smtp; x\n y\n"),
        (daemon, "\n<a@x.org>: 550 5.1.1 x\n"),
        (daemon, "\nto a@x.org "),
        (daemon, "a@"),
        (daemon, "\n\nMessage-ID: <m@x>\nTo: a@x.org\n\n"),
        (daemon, "\n\nMessage-ID: <m@x>\n"),
        (&format!("{daemon}Content-Type: text/html\n\n"), "<style>"),
        (&format!("{daemon}Content-Type: text/html\n\n"), "<a "),
        (&format!("{daemon}Content-Type: text/html\n\n"), "&amp;lt;"),
        (&format!("{daemon}X-Failed-Recipients: "), "a@x.org, "),
        (
            &format!("{daemon}Content-Type: text/plain; charset=utf-7\n\n"),
            "+AGE-",
        ),
        (
            &format!("{daemon}Content-Transfer-Encoding: base64\n\n"),
            "AAAA",
        ),
        (
            &format!("{daemon}Content-Transfer-Encoding: quoted-printable\n\n"),
            "=41=\n",
        ),
    ] {
        let message = repeated(head, unit);
        let began = Instant::now();
        bounces(&message);
        assert!(
            began.elapsed() < LONGEST,
            "{unit:?} takes {:?}",
            began.elapsed()
        );
    }
}

#[test]
fn as_many_recipients_as_are_kept() {
    let groups: String = (0..1_000)
        .map(|number| {
            [
                "\nFinal-Recipient: rfc822; ",
                &number.to_string(),
                "@x.org\nAction: failed\n",
            ]
            .concat()
        })
        .collect();
    let message = format!(
        "From: mailer-daemon@x.org\nIn-Reply-To: <m@x>\nContent-Type: multipart/report; boundary=b\n\n\
         --b\nContent-Type: message/delivery-status\n{groups}"
    );
    assert_eq!(
        read(message.as_bytes()).unwrap().recipients.len(),
        RECIPIENTS
    );
}

proptest! {
    #[test]
    fn any_bytes(data in prop::collection::vec(any::<u8>(), 0..3_000)) {
        bounces(&data);
    }

    #[test]
    fn any_text_in_a_report(
        header in "(?s).{0,200}",
        status in "(Final-Recipient|Original-Recipient|Action|Status|Diagnostic-Code|X): (?s).{0,300}",
        original in "(?s).{0,300}",
    ) {
        bounces(format!(
            "{header}\nContent-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/delivery-status\n\n\
             Final-Recipient: rfc822; a@x.org\nAction: failed\n{status}\n--b\nContent-Type: message/rfc822\n\n\
             Message-ID: <{original}>\nX-Mailgate-Id: {original}\n--b--"
        ).as_bytes());
    }

    #[test]
    fn any_prose_of_a_server(
        text in "(?s)([ -~\n<>@:]|.){0,400}",
        original in "[ -~\n]{0,200}",
        charset in "(utf-8|utf-16|utf-7|iso-2022-jp|gbk|koi8-r|x|)",
        encoding in "(base64|quoted-printable|8bit|x)",
    ) {
        bounces(format!(
            "From: mailer-daemon@x.org\nSubject: Undeliverable\nContent-Type: text/plain; charset={charset}\n\
             Content-Transfer-Encoding: {encoding}\n\n<a@x.org>: {text}\n\nMessage-ID: <m@x>\nTo: {original}\n"
        ).as_bytes());
    }

    #[test]
    fn a_corpus_with_changes(
        index in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        cut in any::<prop::sample::Index>(),
        again in any::<prop::sample::Index>(),
    ) {
        let corpus = corpus();
        let mut message = index.get(&corpus).clone();
        for (place, byte) in changes {
            let place = place.index(message.len());
            message[place] = byte;
        }
        let (cut, again) = (cut.index(message.len()), again.index(message.len()));
        let spliced = [&message[..cut], &message[again..]].concat();
        bounces(&message);
        bounces(&spliced);
    }
}
