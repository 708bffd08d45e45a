//! Migrations only add: the last release goes on reading and writing the tables while the next one starts beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;

use super::folder;
use super::sources::find;

/// Those of before the first release, which nothing ran beside.
const BEFORE_THE_FIRST_RELEASE: [&str; 2] = ["0009_webhooks.sql", "0012_reports.sql"];

/// What a migration does that the last release can't live with, statement by statement.
fn violations(sql: &str) -> Vec<String> {
    let mut created = BTreeSet::new();
    let mut wrong = Vec::new();
    for statement in statements(sql) {
        let words: Vec<&str> = statement.split(' ').collect();
        if let ["CREATE", rest @ ..] = words.as_slice() {
            if let Some(table) = after(rest, "TABLE") {
                created.insert(table.to_owned());
            }
            continue;
        }
        let why = match words.as_slice() {
            ["TRUNCATE", ..] => Some("TRUNCATE"),
            ["DROP", "INDEX", ..] => None,
            ["DROP", "TABLE", rest @ ..] if created.contains(name(rest)) => None,
            ["DROP", ..] => Some("DROP"),
            ["ALTER", "TABLE", rest @ ..] if created.contains(name(rest)) => None,
            ["ALTER", "TABLE", rest @ ..] => actions(&rest.join(" ")).find_map(|it| refused(&it)),
            ["ALTER", ..] if words.contains(&"RENAME") => Some("RENAME"),
            _ => None,
        };
        wrong.extend(why.map(|why| format!("{why}: {statement}")));
    }
    wrong
}

/// Why one action of an `ALTER TABLE` is refused.
fn refused(action: &str) -> Option<&'static str> {
    let bare = outside_parentheses(action);
    let words: Vec<&str> = bare.split_whitespace().collect();
    let has = |wanted: &[&str]| words.windows(wanted.len()).any(|words| words == wanted);
    match words.as_slice() {
        ["RENAME", ..] => Some("RENAME"),
        ["DROP", "CONSTRAINT", ..]
        | [
            "ADD",
            "CONSTRAINT" | "CHECK" | "UNIQUE" | "FOREIGN" | "PRIMARY",
            ..,
        ] => None,
        ["DROP", ..] => Some("DROP"),
        ["ALTER", ..] if has(&["TYPE"]) => Some("a change of type"),
        ["ALTER", ..] if has(&["SET", "NOT", "NULL"]) => Some("NOT NULL"),
        ["ALTER", ..] if has(&["DROP", "DEFAULT"]) => Some("DROP DEFAULT"),
        ["ADD", ..]
            if (has(&["NOT", "NULL"]) || has(&["PRIMARY", "KEY"]))
                && !has(&["DEFAULT"])
                && !has(&["GENERATED"]) =>
        {
            Some("NOT NULL without DEFAULT")
        }
        _ => None,
    }
}

/// Without what a check or a type has in parentheses.
fn outside_parentheses(text: &str) -> String {
    let mut depth = 0_usize;
    let mut outside = String::new();
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => outside.push(letter),
            _ => {}
        }
    }
    outside
}

/// The actions of an `ALTER TABLE`, without its table: what stands between its commas.
fn actions(rest: &str) -> impl Iterator<Item = String> {
    let words: Vec<&str> = rest.split(' ').collect();
    let table = words.iter().position(|word| *word == name(&words));
    let text = words[table.map_or(0, |at| at + 1)..].join(" ");
    let mut depth = 0_usize;
    let mut all = vec![String::new()];
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                all.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = all.last_mut() {
            last.push(letter);
        }
    }
    all.into_iter().map(|it| it.trim().to_owned())
}

/// The name behind a word.
fn after<'a>(words: &[&'a str], word: &str) -> Option<&'a str> {
    let at = words.iter().position(|it| *it == word)?;
    Some(name(&words[at + 1..]))
}

/// The first word that is a name.
fn name<'a>(words: &[&'a str]) -> &'a str {
    let noise = ["IF", "NOT", "EXISTS", "ONLY"];
    let found = words.iter().find(|word| !noise.contains(word));
    found.map_or("", |word| word.trim_end_matches(['(', '*']))
}

/// The statements in capitals, with one space between words, without comments and what is quoted.
fn statements(sql: &str) -> Vec<String> {
    let mut bare = String::new();
    let mut rest = sql;
    while let Some(letter) = rest.chars().next() {
        let (end, keeps) = if rest.starts_with("--") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if letter == '\'' {
            (rest[1..].find('\'').map_or(rest.len(), |at| at + 2), false)
        } else if let Some(tag) = dollar_tag(rest) {
            let end = rest[tag.len()..].find(tag);
            (end.map_or(rest.len(), |at| at + 2 * tag.len()), false)
        } else {
            (letter.len_utf8(), true)
        };
        bare.push_str(if keeps { &rest[..end] } else { " " });
        rest = &rest[end..];
    }
    let bare = bare.to_uppercase().replace('(', " (");
    bare.split(';')
        .map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|it| !it.is_empty())
        .collect()
}

/// `$$` or `$name$` at the start.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text.strip_prefix('$')?.find('$')? + 2;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text[1..end - 1].chars().all(is_name).then(|| &text[..end])
}

#[test]
fn migrations_only_add() {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder("migrations")).expect("there are migrations") {
        let path = entry.expect("it can be read").path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let found = violations(&fs::read_to_string(&path).expect("it can be read"));
        let is_allowed = BEFORE_THE_FIRST_RELEASE.contains(&&*file);
        if is_allowed {
            assert!(
                !found.is_empty(),
                "{file} only adds, and needs no exception"
            );
        } else {
            all.extend(found.into_iter().map(|it| format!("{file}: {it}")));
        }
    }
    assert!(
        all.is_empty(),
        "a release that runs beside the next one reads and writes these still; add what is new, and take what is old \
         away a release later:\n{}",
        all.join("\n")
    );
}

/// The names of the triggers that a migration makes, each with its table.
fn triggers(sql: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for statement in statements(sql) {
        let words: Vec<&str> = statement.split(' ').collect();
        let (Some(trigger), Some(on)) = (
            words.iter().position(|it| *it == "TRIGGER"),
            words.iter().position(|it| *it == "ON"),
        ) else {
            continue;
        };
        if words[0] == "CREATE" {
            found.push((
                words[trigger + 1].to_lowercase(),
                words[on + 1].to_lowercase(),
            ));
        }
    }
    found
}

/// What happens to a table by itself is said where its statements are, with the migration that creates it.
#[test]
fn each_trigger_is_named_in_the_file_of_its_table() {
    let sources = sources("crates/storage/src");
    let mut count = 0;
    let mut latest = BTreeMap::new();
    for entry in fs::read_dir(folder("migrations")).expect("there are migrations") {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().and_then(OsStr::to_str).expect("a name");
        let number = name[..4].to_owned();
        for (trigger, table) in triggers(&fs::read_to_string(&path).expect("it can be read")) {
            let migration = latest.entry((table, trigger)).or_insert_with(String::new);
            *migration = number.clone().max(std::mem::take(migration));
        }
    }
    for ((table, trigger), migration) in latest {
        let of_table = format!("//! The table `{table}`");
        let of_tables = format!("//! The tables `{table}`");
        let is_named = sources
            .iter()
            .filter(|text| text.starts_with(&of_table) || text.starts_with(&of_tables))
            .any(|text| names_with_migration(text, &trigger, &migration));
        assert!(is_named, "{table}: {trigger}, migration {migration}");
        count += 1;
    }
    assert!(count > 15, "only {count} triggers were found");
}

/// Whether a `//!` names this trigger, and near it the migration, which several triggers may share.
fn names_with_migration(text: &str, trigger: &str, migration: &str) -> bool {
    let Some(at) = text.find(&format!("`{trigger}`")) else {
        return false;
    };
    let mut numbers = text.match_indices(migration).map(|(number, _)| number);
    numbers.any(|number| number.abs_diff(at) < 200)
}

fn sources(of: &str) -> Vec<String> {
    let mut files = Vec::new();
    find(&folder(of), "rs", &mut files);
    let read = |path| fs::read_to_string(path).expect("a source can be read");
    files.into_iter().map(read).collect()
}

#[test]
fn what_breaks_the_last_release_is_seen() {
    for sql in [
        "DROP TABLE spool;",
        "drop view a;",
        "ALTER TABLE a DROP COLUMN b;",
        "ALTER TABLE a ADD COLUMN c text, DROP b;",
        "ALTER TABLE IF EXISTS ONLY a DROP b;",
        "ALTER TABLE a RENAME b TO c;",
        "ALTER TABLE a RENAME TO c;",
        "ALTER INDEX a RENAME TO c;",
        "ALTER TABLE a ALTER COLUMN b TYPE bigint;",
        "ALTER TABLE a ALTER b SET DATA TYPE bigint USING (b::bigint);",
        "ALTER TABLE a ALTER COLUMN b SET NOT NULL;",
        "ALTER TABLE a ALTER COLUMN b DROP DEFAULT;",
        "ALTER TABLE a -- DEFAULT 1\n ADD COLUMN b text NOT NULL CHECK (b IN ('DEFAULT', 'x'));",
        "ALTER TABLE a ADD b text NOT NULL;",
        "ALTER TABLE a ADD COLUMN b numeric (3, 1) DEFAULT 1, ADD COLUMN c text NOT NULL;",
        "CREATE TABLE other (x text); ALTER TABLE a DROP COLUMN x;",
        "TRUNCATE a;",
    ] {
        assert_eq!(violations(sql).len(), 1, "{sql}");
    }
}

#[test]
fn what_adds_is_allowed() {
    for sql in [
        "CREATE TABLE a (b text NOT NULL, type text); ALTER TABLE a ALTER b DROP DEFAULT; DROP TABLE a;",
        "CREATE TABLE IF NOT EXISTS a(b text); ALTER TABLE a RENAME b TO c;",
        "ALTER TABLE a ADD COLUMN b text NOT NULL DEFAULT 'x', ADD COLUMN c text;",
        "ALTER TABLE a ADD COLUMN b bigint NOT NULL GENERATED ALWAYS AS IDENTITY;",
        "ALTER TABLE a DROP CONSTRAINT a_check, ADD CONSTRAINT a_check CHECK (b IN ('x', 'y'));",
        "ALTER TABLE a ALTER COLUMN b SET STORAGE EXTERNAL, ALTER COLUMN b DROP NOT NULL;",
        "ALTER TABLE a ADD COLUMN b text CHECK (b IS NOT NULL OR c);",
        "DROP INDEX a_by_b;",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DROP TABLE x; END $$;",
        "-- DROP TABLE a;\nSELECT 'DROP TABLE a';",
    ] {
        assert_eq!(violations(sql), Vec::<String>::new(), "{sql}");
    }
}
