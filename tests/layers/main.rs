//! Imports run downward only, files form no circles, and each kind of work stays in the room that it belongs to.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod deletions;
mod migrations;
mod sources;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sources::{Module, Sources, find};

/// The crates, from the lowest floor up, as the table in `lib.rs` has them. A crate may depend on those of lower rows.
const FLOORS: &[&[&str]] = &[
    &["types"],
    &["bounces", "server", "smtp"],
    &["sandbox", "settings"],
    &["storage", "providers", "telemetry"],
    &["domain"],
    &["rest", "portal"],
];

/// The crates that `rest` and `portal` may not depend on: the domain re-exports what they need of these.
const HIDDEN_FROM_INTERFACES: [&str; 2] = ["mailgate-storage", "mailgate-providers"];

/// The rooms of the domain, from the lowest up. What is written in one row doesn't know each other.
const DOMAIN: &[&[&str]] = &[
    &["compose", "explanation"],
    &["accounts"],
    &["webhooks"],
    &["billing"],
    &["mailboxes"],
    &["sending", "reports", "certificates", "history"],
];

/// The rooms of the program, which stands on all crates.
const PROGRAM: &[&[&str]] = &[
    &["smtp", "workers", "operator"],
    &["certificates"],
    &["daemon"],
    &["dev"],
];

const CRATES: [&str; 13] = [
    ".",
    "crates/bounces",
    "crates/domain",
    "crates/portal",
    "crates/providers",
    "crates/rest",
    "crates/sandbox",
    "crates/server",
    "crates/settings",
    "crates/smtp",
    "crates/storage",
    "crates/telemetry",
    "crates/types",
];

/// Those whose pages are made by templates.
const WITH_TEMPLATES: [&str; 5] = [
    "crates/domain",
    "crates/portal",
    "crates/rest",
    "crates/sandbox",
    "crates/server",
];

/// Elements of HTML that a page of ours may have, so that nothing else in angle brackets is taken for one.
const ELEMENTS: [&str; 33] = [
    "a", "bdi", "body", "br", "button", "code", "dd", "div", "dl", "dt", "form", "h1", "h2", "h3",
    "head", "html", "img", "input", "label", "li", "main", "meta", "ol", "p", "pre", "script",
    "small", "span", "strong", "style", "table", "title", "ul",
];

fn folder(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(of)
}

fn sources(of: &str) -> Sources {
    Sources::read(&folder(of).join("src"))
}

fn row(rows: &[&[&str]], room: &str) -> Option<usize> {
    rows.iter().position(|row| row.contains(&room))
}

fn violations(rows: &[&[&str]], sources: &Sources) -> Vec<String> {
    let mut wrong = Vec::new();
    for (module, _) in sources.modules().filter(|(module, _)| !module.is_empty()) {
        let Some(own) = row(rows, &module[0]) else {
            wrong.push(format!(
                "{}: the room {} has no floor",
                module.join("/"),
                module[0]
            ));
            continue;
        };
        let others = sources.imports(module).into_iter();
        for to in others.filter(|to| !to.is_empty() && to[0] != module[0]) {
            if row(rows, &to[0]).is_none_or(|other| other >= own) {
                let (from, to) = (module.join("/"), to.join("/"));
                wrong.push(format!("{from} must not know {to}"));
            }
        }
    }
    wrong
}

#[test]
fn imports_run_downward_only() {
    for (of, rows) in [("crates/domain", DOMAIN), (".", PROGRAM)] {
        let sources = sources(of);
        let files = sources.len();
        assert!(files > 30, "the walk found only {files} files in {of}");
        let wrong = violations(rows, &sources);
        assert!(wrong.is_empty(), "{of}:\n{}", wrong.join("\n"));
    }
}

/// What a crate's released code depends on.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let manifest: toml::Table = manifest.parse().expect("a manifest is TOML");
    let dependencies = manifest["dependencies"].as_table().expect("a table");
    dependencies.keys().cloned().collect()
}

/// What a crate's manifest lists that lies on its own floor or above it.
fn upward(own: &str, manifest: &str) -> Vec<String> {
    let floor = row(FLOORS, own).expect("a crate has a floor");
    let dependencies = dependencies(manifest).into_iter();
    dependencies
        .filter(|it| {
            let other = it.strip_prefix("mailgate-").and_then(|it| row(FLOORS, it));
            let is_hidden =
                ["rest", "portal"].contains(&own) && HIDDEN_FROM_INTERFACES.contains(&it.as_str());
            is_hidden || other.is_some_and(|other| other >= floor)
        })
        .collect()
}

/// The compiler holds a crate to its manifest, and this its manifest to the floors.
#[test]
fn crates_depend_on_lower_floors_only() {
    let listed: BTreeSet<&str> = FLOORS.iter().copied().flatten().copied().collect();
    let crates = CRATES.iter().filter_map(|it| it.strip_prefix("crates/"));
    assert_eq!(listed, crates.collect());
    let folders = fs::read_dir(folder("crates")).expect("the crates can be read");
    assert_eq!(folders.count(), listed.len());
    for own in listed {
        let path = folder("crates").join(own).join("Cargo.toml");
        let manifest = fs::read_to_string(path).expect("a manifest can be read");
        let wrong = upward(own, &manifest);
        assert!(wrong.is_empty(), "{own} must not depend on {wrong:?}");
    }
}

/// A message is composed of its fields alone.
#[test]
fn composing_knows_neither_database_nor_settings() {
    let above = [
        "mailgate_storage",
        "mailgate_providers",
        "mailgate_settings",
    ];
    for (module, code) in sources("crates/domain").modules() {
        let is_composing = module.first().is_some_and(|room| room == "compose");
        let known = above.iter().find(|name| code.contains(**name));
        assert!(!is_composing || known.is_none(), "{module:?}: {known:?}");
    }
}

#[test]
fn the_reader_sees_a_crate_that_reaches_up() {
    let wrong = |own, on: &str| upward(own, &format!("[dependencies]\n{on}.workspace = true"));
    assert_eq!(wrong("rest", "mailgate-storage"), ["mailgate-storage"]);
    assert_eq!(wrong("portal", "mailgate-rest"), ["mailgate-rest"]);
    assert_eq!(wrong("storage", "mailgate-domain"), ["mailgate-domain"]);
    assert!(wrong("domain", "mailgate-storage").is_empty());
    assert!(wrong("rest", "tokio").is_empty());
}

#[test]
fn files_form_no_circles() {
    for of in CRATES {
        let circles = sources(of).circles();
        let shown: Vec<String> = circles
            .iter()
            .map(|circle| {
                circle
                    .iter()
                    .map(|it| it.join("/"))
                    .collect::<Vec<_>>()
                    .join(" ⇄ ")
            })
            .collect();
        assert!(circles.is_empty(), "{of}:\n{}", shown.join("\n"));
    }
}

/// The modules that may use the database, outside of these crates, in which one of the words stands. The sandbox has a
/// Postgres of its own.
fn outside(crates: &[&str], words: &[&str]) -> Vec<Module> {
    let others = CRATES.iter().filter(|of| {
        let manifest = fs::read_to_string(folder(of).join("Cargo.toml"));
        let manifest = manifest.expect("a manifest can be read");
        dependencies(&manifest).contains("sqlx")
            && **of != "crates/sandbox"
            && !crates.contains(&of.trim_start_matches("crates/"))
    });
    let mut found = Vec::new();
    for of in others {
        for (module, code) in sources(of).modules() {
            if words.iter().any(|word| code.contains(word)) {
                found.push([&[(*of).to_owned()], module.as_slice()].concat());
            }
        }
    }
    found
}

#[test]
fn sql_stays_in_storage() {
    let words = [
        "sqlx::query",
        "sqlx::raw_sql",
        "query!(",
        "query_as!(",
        "query_scalar!(",
        ".execute(\"",
    ];
    let found = outside(&["storage"], &words);
    assert!(found.is_empty(), "SQL outside of storage: {found:?}");
}

#[test]
fn transactions_begin_in_the_domain() {
    let found = outside(
        &["domain"],
        &[".begin()", "transaction::begin(", "audit::begin"],
    );
    assert!(
        found.is_empty(),
        "transactions begun outside of the domain: {found:?}"
    );
}

/// sqlx's own way leaves one open where the caller is dropped meanwhile.
#[test]
fn transactions_of_the_pool_begin_in_one_place() {
    let found = outside(&[], &["pool.begin(", ".begin_with(", ".try_begin"]);
    assert!(
        found.is_empty(),
        "transactions begun beside storage::transaction: {found:?}"
    );
}

/// The first element whose tag stands in a source.
fn tag(code: &str) -> Option<&'static str> {
    code.split('<').skip(1).find_map(|rest| {
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        let is_tag = |element: &&str| {
            // `<a>` alone is a Message-ID.
            rest.strip_prefix(*element).is_some_and(|after| {
                after.starts_with([' ', '/', '\\']) || (after.starts_with('>') && *element != "a")
            })
        };
        ELEMENTS.into_iter().find(is_tag)
    })
}

#[test]
fn html_stays_in_templates() {
    for of in CRATES {
        for (module, code) in sources(of).modules() {
            let found = tag(code);
            assert_eq!(found, None, "a tag in {of}: {}", module.join("/"));
        }
    }
}

#[test]
fn nothing_but_the_frame_of_all_pages_leaves_text_as_it_is() {
    let mut templates = Vec::new();
    for of in WITH_TEMPLATES {
        find(&folder(of).join("templates"), "", &mut templates);
    }
    assert!(templates.len() > 10, "only {} templates", templates.len());
    for path in templates {
        let shown = path.display();
        // Only this ending escapes by itself.
        assert!(path.extension().is_some_and(|it| it == "html"), "{shown}");
        let text = fs::read_to_string(&path).expect("a template can be read");
        let text = text.replace(char::is_whitespace, "");
        let is_frame = path.ends_with("server/templates/page.html");
        assert_eq!(text.contains("|safe"), is_frame, "{shown}");
        for other in ["|escape", "|e(", "{%filter", "{%-filter"] {
            assert!(!text.contains(other), "{shown}: {other}");
        }
    }
    for of in WITH_TEMPLATES {
        for (module, code) in sources(of).modules() {
            for attribute in code.split("#[template(").skip(1) {
                let attribute = attribute.split(")]").next().unwrap_or_default();
                let is_plain = !["escape", "ext", "source"]
                    .iter()
                    .any(|it| attribute.contains(it));
                assert!(is_plain, "{of}, {module:?}: {attribute}");
            }
        }
    }
}

#[test]
fn the_tables_list_every_crate_and_every_room() {
    let library = include_str!("../../src/lib.rs");
    let crates = FLOORS.iter().copied().flatten();
    for name in crates.map(|it| format!("mailgate_{it}")) {
        assert!(library.contains(&name), "lib.rs says nothing of {name}");
    }
    let domain = include_str!("../../crates/domain/src/lib.rs");
    for (rows, table) in [(PROGRAM, library), (DOMAIN, domain)] {
        for room in rows.iter().copied().flatten() {
            assert!(table.contains(&format!("`{room}`")), "no word of {room}");
        }
    }
}

#[test]
fn the_reader_sees_tags() {
    for code in [
        r#""<p>{}</p>""#,
        r#""{text}</div>""#,
        r#""<a href=\"{}\">""#,
    ] {
        assert!(tag(code).is_some(), "{code}");
    }
    for code in [
        r#""<>", "<a>", "<a@x.test>", "<message_id>""#,
        "Vec<u8>, Page<'a, T>, a < b, x <<= 1, Option<Body>",
    ] {
        assert_eq!(tag(code), None, "{code}");
    }
}

#[test]
fn the_reader_sees_what_runs_up_or_in_circles() {
    let wrong = |files: &[(&str, &str)]| violations(DOMAIN, &Sources::of(files)).len();
    let (apps, rate) = (("accounts/apps.rs", ""), ("accounts/rate.rs", ""));
    let uses = |source| {
        [
            ("accounts/apps.rs", source),
            rate,
            ("webhooks/sign.rs", ""),
            ("sending/gate.rs", ""),
        ]
    };
    assert_eq!(wrong(&uses("use super::rate;")), 0);
    assert_eq!(wrong(&uses("use crate::webhooks::sign;")), 1);
    assert_eq!(
        wrong(&uses("use crate::{accounts::rate::{A, B}, sending::gate};")),
        1
    );
    assert_eq!(
        wrong(&uses(
            "fn f() { crate::sending::gate::f() } // crate::webhooks::sign"
        )),
        1
    );
    assert_eq!(
        wrong(&[("sending/gate.rs", "use crate::accounts::apps::App;"), apps]),
        0
    );
    assert_eq!(wrong(&[("attic/x.rs", "")]), 1);
    let circles = |files: &[(&str, &str)]| Sources::of(files).circles().len();
    let root = (
        "a.rs",
        "mod b;\nmod c;\npub use self::c::{C, D};\npub struct A;",
    );
    assert_eq!(
        circles(&[
            root,
            ("a/b.rs", "use super::A;"),
            ("a/c.rs", "use super::A;")
        ]),
        0
    );
    assert_eq!(
        circles(&[root, ("a/b.rs", "use super::c::C;"), ("a/c.rs", "")]),
        0
    );
    let back = ("a/c.rs", "use super::b::{self, B as Other};");
    assert_eq!(circles(&[root, ("a/b.rs", "use super::c::C;"), back]), 1);
    assert_eq!(
        circles(&[root, ("a/b.rs", "use super::{A, D};"), back]),
        1,
        "by a re-export"
    );
    let in_tests = (
        "a/c.rs",
        "#[cfg(test)]\nmod tests {\n use super::super::b::B;\n}",
    );
    assert_eq!(
        circles(&[root, ("a/b.rs", "use super::c::C;"), in_tests]),
        0
    );
}
