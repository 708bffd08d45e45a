//! Every text of ours has an explanation of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use mailgate_providers::explanation::is_general;

/// What precedes a text in these places.
const BEFORE: [(&str, &[&str]); 4] = [
    ("crates/providers/src/mail", &["Failure::own("]),
    (
        "crates/domain/src/sending",
        &[
            "Failure::own(",
            "failed(",
            "told(",
            "why: ",
            "let why = ",
            "&str = ",
            "Err(",
        ],
    ),
    ("crates/domain/src/mailboxes/token.rs", &["Unavailable("]),
    // Errors whose texts are stored.
    ("", &["#[error("]),
];

const ERRORS: [&str; 5] = [
    "crates/domain/src/sending/accept/gate.rs",
    "crates/providers/src/mail/bearer.rs",
    "crates/providers/src/mail/oauth.rs",
    "crates/providers/src/mail/smtp/connection.rs",
    "crates/providers/src/mail/smtp/reply.rs",
];

/// Texts that only wrap another one, or that no message gets.
const OTHERS: [&str; 7] = [
    "{failure}; it is still among the mailbox's drafts",
    "{} {}",
    "{0}",
    "The message has waited for the maximum time",
    "It is scheduled",
    "scheduled",
    "X-Mailgate-Metadata-",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            files(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|it| it == "rs") {
        found.push(path.to_owned());
    }
}

/// The string literal at the beginning of the code, perhaps within `format!`.
fn literal(code: &str) -> Option<String> {
    let code = code.trim_start().trim_start_matches('&');
    let code = code.strip_prefix("format!(").unwrap_or(code).trim_start();
    let mut letters = code.strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match letters.next()? {
            '"' => return Some(text),
            '\\' => match letters.next()? {
                '\n' => letters = letters.as_str().trim_start().chars(),
                letter => text.push(letter),
            },
            letter => text.push(letter),
        }
    }
}

/// The text with something in its placeholders.
fn filled(text: &str) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').unwrap();
        filled.push_str(before);
        filled.push_str(match name {
            "status" => "400",
            "TOO_OLD" => "The message has waited for the maximum time",
            "UNVERIFIABLE" => "Delivery is unconfirmed",
            _ if behind.starts_with(" is not set up") => "plugin_a",
            _ if behind.starts_with(" without the id") => "200",
            "NO_ROOM" | "blocked" | "why" => "the mailbox has reached its daily limit",
            _ => "something",
        });
        rest = behind;
    }
    filled + rest
}

fn texts() -> Vec<String> {
    let mut found = Vec::new();
    for (place, before) in BEFORE {
        let mut all = Vec::new();
        if place.is_empty() {
            all.extend(ERRORS.map(|path| root().join(path)));
        } else {
            files(&root().join(place), &mut all);
        }
        for path in all {
            let source = fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for marker in before {
                found.extend(code.split(marker).skip(1).filter_map(literal));
            }
        }
    }
    found
}

#[test]
fn every_text_of_ours_has_an_explanation_of_its_own() {
    let texts = texts();
    assert!(texts.len() > 50, "only {} texts", texts.len());
    let unknown: Vec<String> = texts
        .into_iter()
        .filter(|text| !OTHERS.contains(&text.as_str()))
        .filter(|text| is_general(&of_failure(&filled(text), LogStatus::FailedTemp)))
        .collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}
