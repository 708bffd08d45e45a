//! Imports run downward only: this reads every `crate::…` path under `src/` and fails on one that
//! runs up or sideways.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms, from the lowest floor up. A room may use those of lower rows, and itself. What is
/// written in one row doesn't know each other.
const ROWS: &[&[&str]] = &[
    &["types"],
    &["config"],
    &["compose", "telemetry", "shutdown"],
    &["storage", "providers"],
    &["accounts"],
    &["webhooks"],
    &["billing"],
    &["mailboxes"],
    &["sending", "reports"],
    &["rest", "smtp", "workers"],
    &["daemon", "operator"],
    &["sandbox"],
    &["fuzzing"],
];

/// Files that belong to no room.
const OUTSIDE: &[&str] = &["lib", "main"];

fn row(room: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&room))
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("src can be read") {
        let path = entry.expect("src can be read").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The room of a file: the first word of its path below `src/`.
fn room(path: &Path) -> String {
    path.with_extension("")
        .components()
        .next()
        .map(|first| first.as_os_str().to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The rooms that a source names, `use crate::{a, b}` forms included; comments don't count.
fn named_rooms(source: &str) -> Vec<String> {
    let code: String = source
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut rooms = Vec::new();
    for (position, _) in code.match_indices("crate::") {
        let before = code[..position].chars().next_back();
        if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
            continue;
        }
        let rest = &code[position + "crate::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => top_level(list),
            None => vec![rest],
        };
        for name in names {
            let word: String = name
                .trim_start()
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                .collect();
            rooms.push(word);
        }
    }
    rooms
}

/// The parts of a braced list between the commas of its own level.
fn top_level(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (position, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => {
                parts.push(&list[start..position]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[start..position]);
                start = position + 1;
            }
            _ => {}
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn violations(file: &Path, source: &str) -> Vec<String> {
    let from = room(file);
    if OUTSIDE.contains(&from.as_str()) {
        return Vec::new();
    }
    let Some(own) = row(&from) else {
        return vec![format!("{}: the room {from} has no floor", file.display())];
    };
    named_rooms(source)
        .into_iter()
        .filter(|to| *to != from)
        .filter(|to| row(to).is_none_or(|other| other >= own))
        .map(|to| format!("{}: {from} must not know {to}", file.display()))
        .collect()
}

#[test]
fn imports_run_downward_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    assert!(
        files.len() > 50,
        "the walk found only {} files",
        files.len()
    );
    let wrong: Vec<String> = files
        .iter()
        .flat_map(|path| {
            let source = fs::read_to_string(path).expect("a source can be read");
            violations(path.strip_prefix(&root).expect("below src"), &source)
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn sql_stays_in_storage() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    // The private Postgres makes databases; there is no table of the product's in there.
    let exempt = ["storage", "sandbox/postgres"];
    let wrong: Vec<String> = files
        .iter()
        .filter(|path| {
            let below = path
                .strip_prefix(&root)
                .expect("below src")
                .to_string_lossy();
            !exempt.iter().any(|prefix| below.starts_with(prefix))
        })
        .filter(|path| {
            let source = fs::read_to_string(path).expect("a source can be read");
            ["sqlx::query", "query!(", "query_as!(", "query_scalar!("]
                .iter()
                .any(|form| source.contains(form))
        })
        .map(|path| path.display().to_string())
        .collect();
    assert!(
        wrong.is_empty(),
        "SQL outside of storage/: {}",
        wrong.join(", ")
    );
}

#[test]
fn the_reader_sees_what_runs_up_or_sideways() {
    let wrong = |file: &str, source: &str| violations(Path::new(file), source).len();
    assert_eq!(
        wrong("storage/apps.rs", "use mailgate_types::ids::AppId;"),
        0
    );
    assert_eq!(wrong("storage/apps.rs", "use crate::storage::pool;"), 0);
    assert_eq!(wrong("storage/apps.rs", "use crate::providers::tls;"), 1);
    assert_eq!(
        wrong(
            "storage/apps.rs",
            "use crate::{types::ids::{AppId, LogId}, rest::send};"
        ),
        1
    );
    assert_eq!(wrong("types.rs", "fn f() { crate::config::load(); }"), 1);
    assert_eq!(
        wrong("mailboxes/token.rs", "use crate::sending::Sending;"),
        1
    );
    assert_eq!(
        wrong(
            "sending.rs",
            "use crate::mailboxes::Mailboxes; // not crate::rest::send"
        ),
        0
    );
    assert_eq!(wrong("reports/stats.rs", "use crate::sending::Sending;"), 1);
    assert_eq!(wrong("rest/send.rs", "use mailgate_server::tls;"), 1);
    assert_eq!(wrong("attic/x.rs", ""), 1);
    assert_eq!(wrong("lib.rs", "pub use crate::dev;"), 0);
}
