//! The architecture's page names the files, tables and dependencies that there are.

use std::collections::BTreeSet;

use toml::Table;

use super::blocks::{Page, root};
use super::{Use, used};
use crate::support::database;

const PAGE: &str = "docs/architecture.md";

/// The names in the first column of a section's table, each of which says something.
fn listed(heading: &str) -> Vec<String> {
    let text = Page::named(PAGE).text;
    let (_, section) = text.split_once(&format!("\n{heading}\n")).expect(heading);
    let section = section.split("\n## ").next().unwrap();
    let mut names = Vec::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 2 && !cells[1].is_empty(), "{row}");
        let quoted = cells[0].split('`').skip(1).step_by(2);
        names.extend(quoted.map(str::to_owned));
    }
    names
}

fn distinct(names: &[String]) -> BTreeSet<&str> {
    let distinct: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(distinct.len(), names.len(), "twice: {names:?}");
    distinct
}

#[test]
fn every_dependency_has_its_reason() {
    let text = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: Table = text.parse().unwrap();
    let listed = listed("## Dependencies");
    let dependencies = manifest["workspace"]["dependencies"].as_table().unwrap();
    let is_other = |name: &&String| !name.starts_with("mailgate-");
    let missing: Vec<&String> = dependencies
        .keys()
        .filter(is_other)
        .filter(|name| !listed.contains(name))
        .collect();
    assert!(missing.is_empty(), "without a reason: {missing:?}");
    let there = |name: &str| dependencies.contains_key(name);
    let gone: Vec<_> = distinct(&listed)
        .into_iter()
        .filter(|name| !there(name))
        .collect();
    assert!(gone.is_empty(), "no dependency any more: {gone:?}");
}

#[tokio::test]
async fn every_table_is_explained() {
    let url = database::create().await;
    let mut connection = database::connect(&url).await;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition \
         AND relnamespace = 'public'::regnamespace AND relname <> '_sqlx_migrations'",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(distinct(&listed("## Tables")), distinct(&tables));
}

/// `rest/send.rs` is `crates/rest/src/send.rs`.
fn is_there(file: &str) -> bool {
    let (first, rest) = file.split_once('/').unwrap_or((file, ""));
    let in_crate = root().join("crates").join(first).join("src").join(rest);
    root().join(file).exists() || (!rest.is_empty() && in_crate.exists())
}

#[test]
fn every_file_that_is_named_is_there() {
    let text = Page::named(PAGE).text;
    let quoted = text.split('`').skip(1).step_by(2);
    let files: BTreeSet<&str> = quoted
        .filter(|it| {
            it.strip_suffix(".rs").is_some() && it.contains('/') && !it.contains(['\n', ' '])
        })
        .collect();
    let missing: Vec<_> = files.iter().filter(|file| !is_there(file)).collect();
    assert!(missing.is_empty(), "not there: {missing:?}");
    assert!(files.len() > 15, "{}", files.len());
}

#[test]
fn every_way_passes_files_that_are_there() {
    let mut count = 0;
    for block in used(Use::Way) {
        for word in block.text.split_whitespace() {
            let file = word.trim_end_matches([',', ':', ';']);
            if file.strip_suffix(".rs").is_some() {
                let place = block.place();
                assert!(is_there(file), "{place}: {file}");
                count += 1;
            }
        }
    }
    assert!(count > 40, "{count}");
}
