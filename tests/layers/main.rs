//! Imports run downward only, files form no circles, and each kind of work stays in the room that it belongs to.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod deletions;
mod migrations;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};

use sources::{Module, Sources, find};

/// The rooms, from the lowest floor up, as the table in `lib.rs` has them. A room may use those of lower rows, and
/// itself. What is written in one row doesn't know each other.
const ROWS: &[&[&str]] = &[
    &["config", "compose"],
    &["telemetry"],
    &["storage", "providers"],
    &["accounts"],
    &["webhooks"],
    &["billing"],
    &["mailboxes"],
    &["sending", "reports", "certificates"],
    &["rest", "portal", "smtp", "workers", "operator"],
    &["daemon"],
    &["dev"],
];

/// The rooms where transactions begin: the domain.
const DOMAIN: [&str; 7] = [
    "accounts",
    "webhooks",
    "billing",
    "mailboxes",
    "sending",
    "reports",
    "certificates",
];

const CRATES: [&str; 6] = [
    ".",
    "crates/bounces",
    "crates/sandbox",
    "crates/server",
    "crates/smtp",
    "crates/types",
];

/// Those whose pages are made by templates.
const WITH_TEMPLATES: [&str; 3] = [".", "crates/sandbox", "crates/server"];

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

fn row(room: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&room))
}

fn violations(sources: &Sources) -> Vec<String> {
    let mut wrong = Vec::new();
    for (module, _) in sources.modules().filter(|(module, _)| !module.is_empty()) {
        let Some(own) = row(&module[0]) else {
            wrong.push(format!(
                "{}: the room {} has no floor",
                module.join("/"),
                module[0]
            ));
            continue;
        };
        let others = sources.imports(module).into_iter();
        for to in others.filter(|to| !to.is_empty() && to[0] != module[0]) {
            if row(&to[0]).is_none_or(|other| other >= own) {
                let (from, to) = (module.join("/"), to.join("/"));
                wrong.push(format!("{from} must not know {to}"));
            }
        }
    }
    wrong
}

#[test]
fn imports_run_downward_only() {
    let sources = sources(".");
    assert!(
        sources.len() > 200,
        "the walk found only {} files",
        sources.len()
    );
    let wrong = violations(&sources);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
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

/// The modules outside of these rooms in which one of the words stands.
fn outside(rooms: &[&str], words: &[&str]) -> Vec<Module> {
    let sources = sources(".");
    let found = sources.modules().filter(|(module, code)| {
        let is_in = module
            .first()
            .is_some_and(|room| rooms.contains(&room.as_str()));
        !is_in && words.iter().any(|word| code.contains(word))
    });
    found.map(|(module, _)| module.clone()).collect()
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
        &DOMAIN,
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
        "transactions begun beside storage/transaction.rs: {found:?}"
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
fn the_table_of_the_crate_lists_every_room() {
    let library = include_str!("../../src/lib.rs");
    for room in ROWS.iter().copied().flatten() {
        assert!(
            library.contains(&format!("`{room}`")),
            "lib.rs says nothing of {room}"
        );
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
    let wrong = |files: &[(&str, &str)]| violations(&Sources::of(files)).len();
    let (apps, pool) = (("storage/apps.rs", ""), ("storage/pool.rs", ""));
    let uses = |source| {
        [
            ("storage/apps.rs", source),
            pool,
            ("providers/tls.rs", ""),
            ("rest/send.rs", ""),
        ]
    };
    assert_eq!(wrong(&uses("use super::pool;")), 0);
    assert_eq!(wrong(&uses("use crate::providers::tls;")), 1);
    assert_eq!(
        wrong(&uses("use crate::{storage::pool::{A, B}, rest::send};")),
        1
    );
    assert_eq!(
        wrong(&uses(
            "fn f() { crate::rest::send::f() } // crate::providers::tls"
        )),
        1
    );
    assert_eq!(
        wrong(&[("rest/send.rs", "use crate::storage::apps::App;"), apps]),
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
