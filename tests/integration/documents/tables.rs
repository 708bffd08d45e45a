//! The tables of errors and of SMTP replies say all that there is, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use mailgate_types::audit::AuditAction;
use serde_json::Value;

use super::blocks::{Page, root};
use crate::openapi::described::errors::{failures, made};

/// The lines of a document from a heading to the next one of its rank.
fn section(page: &str, heading: &str) -> Vec<String> {
    let text = Page::named(page).text;
    let rank = heading.split(' ').next().unwrap();
    let next = format!("{rank} ");
    let lines = text.lines().skip_while(|line| *line != heading).skip(1);
    let lines: Vec<String> = lines
        .take_while(|line| !line.starts_with(&next))
        .map(str::to_owned)
        .collect();
    assert!(!lines.is_empty(), "no {heading}");
    lines
}

/// The cells of a table's row.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(
        inner
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect(),
    )
}

fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The document that the program prints.
fn document() -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_mailgate"))
        .arg("openapi")
        .output()
        .unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_error_code_stands_in_the_table_of_errors() {
    let mut listed = BTreeSet::new();
    for line in section("docs/errors.md", "# Errors") {
        let Some(cells) = cells(&line) else { continue };
        let [code, status, when, what] = cells.as_slice() else {
            panic!("four cells: {line}");
        };
        let Some(code) = quoted(code).next() else {
            continue;
        };
        assert!(!when.is_empty() && !what.is_empty(), "{line}");
        let row = (status.clone(), code.to_owned());
        assert!(listed.insert(row), "twice: {line}");
    }
    let described: BTreeSet<_> = failures(&document())
        .into_iter()
        .map(|(_, status, code)| (status, code))
        .collect();
    assert!(described.is_subset(&made()));
    // What the sources make and no operation describes, every path may answer.
    assert_eq!(listed, made());
}

#[test]
fn every_action_stands_in_the_table_of_the_trail() {
    let lines = section("docs/logs.md", "## Audit trail").into_iter();
    let rows = lines.skip_while(|line| !line.starts_with("| action |"));
    let listed: Vec<String> = rows
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| quoted(&cells(&line)?[0]).next().map(str::to_owned))
        .collect();
    let distinct: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
    assert_eq!(distinct.len(), listed.len(), "{listed:?}");
    let all = AuditAction::ALL.map(AuditAction::as_str);
    assert_eq!(distinct, BTreeSet::from(all));
}

/// The codes and enhanced codes of all replies that the sources of SMTP submission make.
fn replies() -> BTreeSet<(String, String)> {
    let mut replies = BTreeSet::new();
    let mut folders = vec![root().join("crates/smtp/src"), root().join("src/smtp")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("tests") {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") && !is_of_tests(&path) {
                replies_of(&std::fs::read_to_string(path).unwrap(), &mut replies);
            }
        }
    }
    assert!(replies.len() > 30, "{replies:?}");
    replies
}

/// Whether a source is compiled for tests alone.
fn is_of_tests(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.ends_with("fuzzing.rs")
}

/// Finds `(451, "4.3.0"`: in a reply's making, or in a pair that one is made of.
fn replies_of(source: &str, replies: &mut BTreeSet<(String, String)>) {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    for arguments in source.split('(').skip(1) {
        let mut words = arguments.splitn(3, ',').map(str::trim);
        let (Some(code), Some(enhanced)) = (words.next(), words.next()) else {
            continue;
        };
        let enhanced = enhanced.trim_end_matches(')');
        let is_code = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
        let quoted = enhanced
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        if let (true, Some(enhanced)) = (is_code, quoted) {
            replies.insert((code.to_owned(), enhanced.to_owned()));
        }
    }
}

#[test]
fn every_reply_stands_in_the_tables_of_replies() {
    let mut listed: BTreeMap<(String, String), String> = BTreeMap::new();
    for line in section("docs/sending.md", "## Send by SMTP") {
        let Some(cells) = cells(&line) else { continue };
        for reply in quoted(&cells[0]) {
            let mut words = reply.split(' ');
            let code = words.next().unwrap_or_default();
            if code.len() != 3 || code.parse::<u16>().is_err() {
                continue;
            }
            let enhanced = words.next().unwrap_or_default();
            let is_enhanced = enhanced.split('.').count() == 3
                && enhanced.split('.').all(|part| part.parse::<u16>().is_ok());
            let enhanced = if is_enhanced { enhanced } else { "" };
            assert!(cells.len() > 1 && !cells[1].is_empty(), "{line}");
            listed.insert((code.to_owned(), enhanced.to_owned()), line.clone());
        }
    }
    let mut replies = replies();
    // What a provider says without a code of its own.
    replies.insert(("554".to_owned(), "5.0.0".to_owned()));
    let listed: BTreeSet<_> = listed.into_keys().collect();
    assert_eq!(listed, replies);
}
