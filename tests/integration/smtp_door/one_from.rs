//! A message that is taken has one From for every reader: what programs that nobody here wrote make of the
//! fields that the gateway takes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use chrono::DateTime;
use mailgate_domain::sending::accept::raw_message::RawMessage;
use mailgate_types::email_address::EmailAddress;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::RECIPIENT;
use crate::peers::{node, process, sources};
use crate::support::gateway::{Gateway, MAILBOX};
use crate::support::smtp_client::SmtpClient;

/// Longest that a reader may take, the compiler of one among them on a busy machine.
const LIMIT: Duration = Duration::from_mins(3);

/// Which of these some reader takes for evil@example.org, though the mailbox's address stands in brackets.
const TWO_FACED: [&str; 16] = [
    " evil@example.org <ada@sandbox.example>",
    " evil@example.org<ada@sandbox.example>",
    " x evil@example.org <ada@sandbox.example>",
    " \"x\" evil@example.org <ada@sandbox.example>",
    " x.evil@example.org <ada@sandbox.example>",
    " \"x\"@example.org <ada@sandbox.example>",
    " evil@example.org\r\n <ada@sandbox.example>",
    " evil@example.org (x) <ada@sandbox.example>",
    " (x) evil@example.org <ada@sandbox.example>",
    " =?utf-8?q?evil=40example.org?= <ada@sandbox.example>",
    " =?utf-8?b?ZXZpbEBleGFtcGxlLm9yZw==?= <ada@sandbox.example>",
    " =?utf-8?q?x?= evil@example.org <ada@sandbox.example>",
    " J\u{f6}rg evil@example.org <ada@sandbox.example>",
    " <evil@example.org> <ada@sandbox.example>",
    " evil@example.org, <ada@sandbox.example>",
    " evil@example.org; <ada@sandbox.example>",
];

/// Names that hold another address, in every form that a name has. No reader need take it for the sender: it is
/// what people see.
const NAMED_LIKE_ANOTHER: [&str; 12] = [
    " \"evil@example.org\" <ada@sandbox.example>",
    " \"evil\\@example.org\" <ada@sandbox.example>",
    " \"Evil <evil@example.org>\" <ada@sandbox.example>",
    " \"ada@sandbox.example, evil@example.org\" <ada@sandbox.example>",
    " \"evil @ example.org\" <ada@sandbox.example>",
    " \"evil@\" \"example.org\" <ada@sandbox.example>",
    " \"=?utf-8?q?evil=40example.org?=\" <ada@sandbox.example>",
    " =?utf-8?q?Evil_=3Cevil=40example.org=3E?= <ada@sandbox.example>",
    " <ada@sandbox.example> (evil@example.org)",
    " ada@sandbox.example (=?utf-8?q?evil=40example.org?=)",
    " evil\u{ff20}example.org <ada@sandbox.example>",
    " \"evil\u{fe6b}example.org\" <ada@sandbox.example>",
];

/// What people and programs write.
const PLAIN: [&str; 12] = [
    " ada@sandbox.example",
    "ada@sandbox.example (Ada)",
    " Ada Lovelace <ada@sandbox.example>",
    " Ada K. Lovelace <ada@sandbox.example>",
    " \"Lovelace, Ada\" <ada@sandbox.example>",
    " \"ada@sandbox.example\" <ada@sandbox.example>",
    " ada@sandbox.example <ada@sandbox.example>",
    " \"'Ada@sandbox.example'\" <ada@sandbox.example>",
    " \"Ada \\\"Countess\\\" L. @ Work\" <ada@sandbox.example>",
    " J\u{f6}rg <ada@sandbox.example>",
    " =?utf-8?q?J=C3=B6rg=2C_Ada?= <ada@sandbox.example>",
    " =?utf-8?b?YWRhQHNhbmRib3guZXhhbXBsZQ==?= <ada@sandbox.example>",
];

/// The sender, where the gateway would take the field.
fn sender(field: &str) -> Option<String> {
    let message = format!("From:{field}\r\nTo: {RECIPIENT}\r\n\r\nHello\r\n");
    let recipients = [EmailAddress::parse(RECIPIENT).unwrap()];
    let at = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
    let pieces = vec![Bytes::from(message)];
    let submitted = RawMessage::read(pieces, &recipients, false, "gateway.example", at);
    submitted.ok().map(|submitted| submitted.from.to_string())
}

/// Fields that are close to the border of what is taken, always the same ones.
fn generated() -> impl Iterator<Item = String> {
    let pieces = [
        " ",
        " ",
        "\"",
        "\"",
        "\\",
        "(",
        ")",
        "<",
        ">",
        ",",
        ";",
        ":",
        "@",
        "x",
        ".",
        "'",
        "[",
        "]",
        "\t",
        "\r\n ",
        "\u{e9}",
        "=?utf-8?q?",
        "=?iso-8859-1?b?",
        "?=",
        "=40",
        "ZXZpbEB4",
        "evil",
        "evil@example.org",
        "<evil@example.org>",
        "\"evil@example.org\"",
        "\"x\"",
        "(x)",
        "Ada",
        "ada@sandbox.example",
    ];
    let piece = || prop::sample::select(pieces.to_vec());
    let field = (
        prop::collection::vec(piece(), 0..7),
        any::<bool>(),
        prop::collection::vec(piece(), 0..3),
    );
    let field = field.prop_map(|(before, in_brackets, behind)| {
        let (open, close) = if in_brackets { ("<", ">") } else { ("", "") };
        format!(
            " {}{open}{MAILBOX}{close}{}",
            before.concat(),
            behind.concat()
        )
    });
    let mut runner = TestRunner::deterministic();
    std::iter::repeat_with(move || field.new_tree(&mut runner).unwrap().current()).take(60_000)
}

/// How each reader is run, and whether it takes folded fields.
fn readers(folder: &Path) -> [(Command, bool); 4] {
    let sources = sources();
    let program = |program: &Path, name: &str| {
        let mut command = Command::new(program);
        command.arg(sources.join(name));
        command
    };
    let mut go = Command::new("go");
    go.arg("run")
        .arg(sources.join("from_readers.go"))
        .env("GOCACHE", folder)
        .env("GOFLAGS", "-p=1")
        .env("GO111MODULE", "off");
    [
        (program("python3".as_ref(), "from_readers.py"), true),
        (go, true),
        (program("perl".as_ref(), "from_readers.pl"), false),
        (program(&node(), "from_readers.mjs"), false),
    ]
}

/// Per field, the addresses that each way of reading shows.
async fn shown(fields: &[String]) -> Vec<BTreeMap<String, Vec<String>>> {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers/go");
    let unfolded: Vec<String> = fields
        .iter()
        .map(|field| field.replace("\r\n", ""))
        .collect();
    let mut all = vec![BTreeMap::new(); fields.len()];
    for (command, takes_folds) in readers(&cache) {
        let given = if takes_folds { fields } else { &unfolded };
        let input = serde_json::to_vec(given).unwrap();
        let output = process::run(command, &input, LIMIT).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let answers: Vec<BTreeMap<String, Vec<String>>> =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"));
        assert_eq!(answers.len(), fields.len());
        for (all, answers) in all.iter_mut().zip(answers) {
            all.extend(answers);
        }
    }
    all
}

/// Whether it is the sender's own address: a reader from before UTF-8 in headers (RFC 6532) has a replacement
/// character for each octet that it doesn't know, which makes nobody else of it.
fn is_shown_as(sender: &str, shown: &str) -> bool {
    let unknown = |octet: u8| match octet {
        0..=127 => char::from(octet),
        _ => char::REPLACEMENT_CHARACTER,
    };
    let damaged: String = sender.bytes().map(unknown).collect();
    [sender, &damaged]
        .iter()
        .any(|it| it.eq_ignore_ascii_case(shown))
}

#[tokio::test]
async fn no_reader_shows_another_sender_than_the_one_authorised() {
    let plain = PLAIN.map(str::to_owned);
    for field in &plain {
        assert_eq!(sender(field).as_deref(), Some(MAILBOX), "{field}");
    }
    let mut taken: BTreeSet<String> = generated()
        .filter(|field| sender(field).is_some())
        .collect();
    taken.extend(plain);
    assert!(taken.len() > 500, "{} fields are taken", taken.len());
    let taken: Vec<String> = taken.into_iter().collect();
    let mut counted = BTreeMap::new();
    for (field, readers) in taken.iter().zip(shown(&taken).await) {
        let sender = sender(field).unwrap();
        for (reader, addresses) in readers {
            // What holds no @ is nobody's address.
            let others = addresses.iter().filter(|it| it.contains('@'));
            let others: Vec<_> = others.filter(|it| !is_shown_as(&sender, it)).collect();
            assert!(others.is_empty(), "{reader} shows {others:?} for {field:?}");
            *counted.entry(reader).or_insert(0) += usize::from(!addresses.is_empty());
        }
    }
    // Each of them reads most of the fields at all.
    assert_eq!(counted.len(), 8, "{counted:?}");
    assert!(
        counted.values().all(|count| *count > taken.len() / 2),
        "{counted:?}"
    );

    let two_faced = TWO_FACED.map(str::to_owned);
    for (field, readers) in two_faced.iter().zip(shown(&two_faced).await) {
        let shown: Vec<_> = readers.values().flatten().collect();
        let is_two_faced = shown.iter().any(|address| address.contains("@example.org"));
        assert!(
            is_two_faced,
            "{field:?}: nobody takes it for another: {readers:?}"
        );
        assert_eq!(sender(field), None, "{field:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_from_that_readers_may_take_for_another_is_refused() {
    let gateway = Gateway::start().await;
    let mut client = SmtpClient::authenticated(&gateway).await;
    let message = |headers: &str| format!("{headers}Subject: x\r\n\r\nHello").into_bytes();
    for field in TWO_FACED.iter().chain(&NAMED_LIKE_ANOTHER) {
        let reply = client
            .submit(RECIPIENT, &message(&format!("From:{field}\r\n")))
            .await;
        let refused = reply.starts_with("550 5.7.1 From address not authorized");
        assert!(refused, "{field:?}: {reply}");
    }
    let from = format!("From: {MAILBOX}\r\n");
    for headers in [
        format!(" folded\r\n{from}"),
        format!("\tFrom: evil@example.org\r\n{from}"),
        format!(" \r\n{from}"),
        format!("From evil@example.org Sat Jan  3 01:05:34 1996\r\n{from}"),
        format!("garbage\r\n{from}"),
        format!("{from}garbage\r\n From: evil@example.org\r\n"),
        format!("F r o m: evil@example.org\r\n{from}"),
        format!(":From: evil@example.org\r\n{from}"),
        format!("\u{c}From: evil@example.org\r\n{from}"),
    ] {
        let reply = client.submit(RECIPIENT, &message(&headers)).await;
        assert!(
            reply.starts_with("550 5.6.0 A line of the"),
            "{headers:?}: {reply}"
        );
    }
    assert_eq!(gateway.sandbox.inbox.count(), 0);
    for field in PLAIN {
        let content = message(&format!("From:{field}\r\n"));
        let reply = client.submit(RECIPIENT, &content).await;
        assert!(reply.starts_with("250 2.0.0"), "{field:?}: {reply}");
        let arrived = gateway.arrived().await.pop().unwrap();
        let as_sent = arrived.ends_with(&[content.as_slice(), b"\r\n"].concat());
        assert!(as_sent, "{field:?} changed");
    }
    gateway.stop().await;
}
