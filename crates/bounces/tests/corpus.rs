//! What is read from the corpus: notifications in the shapes of real servers, and messages that aren't any.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use mailgate_bounces::{Bounce, is_calendar_answer, is_candidate, read};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(name)
}

/// The messages of a folder by name.
fn messages(name: &str) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<(String, Vec<u8>)> = fs::read_dir(folder(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "eml"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    found.sort();
    found
}

/// A bounce in the form of the files.
fn shown(bounce: &Bounce) -> String {
    let mut text = String::new();
    for id in &bounce.message_ids {
        writeln!(text, "message {id}").unwrap();
    }
    for id in &bounce.log_ids {
        writeln!(text, "log {id}").unwrap();
    }
    for recipient in &bounce.recipients {
        let (kind, status) = (recipient.bounce_type.as_str(), recipient.status.as_deref());
        let words = recipient.diagnostic.as_deref().unwrap_or("-");
        writeln!(
            text,
            "{} {kind} {}",
            recipient.address,
            status.unwrap_or("-")
        )
        .unwrap();
        writeln!(text, "    {words}").unwrap();
    }
    text
}

/// The same message with its lines ended in another way.
fn with_ends(message: &[u8], end: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    for byte in message.iter().filter(|byte| **byte != b'\r') {
        match byte {
            b'\n' => lines.extend_from_slice(end),
            byte => lines.push(*byte),
        }
    }
    lines
}

#[test]
fn each_bounce_is_read() {
    let found = messages("bounces");
    assert!(found.len() >= 40, "{}", found.len());
    let mut wrong = Vec::new();
    for (name, message) in found {
        let file = folder("bounces").join(format!("{name}.expected"));
        let Some(bounce) = read(&message) else {
            wrong.push(format!("{name} isn't read as a bounce"));
            continue;
        };
        let shown = shown(&bounce);
        if std::env::var("BOUNCES_CORPUS").is_ok_and(|mode| mode == "write") {
            fs::write(&file, &shown).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        if shown != expected {
            wrong.push(format!("{name}\n{shown}instead of\n{expected}"));
        }
        assert!(is_candidate(&message), "{name} wouldn't be fetched");
        for end in [&b"\n"[..], b"\r\n", b"\r"] {
            // A gateway may translate the lines.
            assert_eq!(
                read(&with_ends(&message, end)),
                Some(bounce.clone()),
                "{name} {end:?}"
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_else_is_a_bounce() {
    let found = messages("others");
    assert!(found.len() >= 15, "{}", found.len());
    for (name, message) in found {
        assert_eq!(read(&message), None, "{name}");
        assert_eq!(is_calendar_answer(&message), name == "calendar", "{name}");
        for end in [&b"\n"[..], b"\r\n", b"\r"] {
            assert_eq!(read(&with_ends(&message, end)), None, "{name} {end:?}");
        }
    }
}

#[test]
fn the_index_lists_every_file() {
    let index = fs::read_to_string(folder("README.md")).unwrap();
    let listed: BTreeSet<String> = index
        .lines()
        .filter_map(|line| {
            line.strip_prefix("| `")?
                .split_once('`')
                .map(|(name, _)| name.to_owned())
        })
        .collect();
    let mut files = BTreeSet::new();
    for kind in ["bounces", "others"] {
        files.extend(
            messages(kind)
                .into_iter()
                .map(|(name, _)| format!("{kind}/{name}")),
        );
    }
    assert_eq!(listed, files);
}
