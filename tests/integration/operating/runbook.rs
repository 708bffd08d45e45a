//! The runbook: each alert leads to its section, and what a section lets somebody ask can be asked.

use std::collections::BTreeSet;
use std::io::Write as _;

use sqlx::{AssertSqlSafe, Executor as _};
use tempfile::{NamedTempFile, TempDir};

use crate::command_line::process::run;
use crate::command_line::serve::replica;
use crate::documents::blocks::Page;
use crate::documents::commands::type_in;
use crate::documents::languages::Environment;
use crate::documents::links::{anchor, anchors};
use crate::documents::{Use, used};
use crate::support::database;
use crate::support::gateway::Gateway;
use crate::support::ports;

const RULES: &str = include_str!("../../../config/prometheus/mailgate.rules.yml");
const PAGE: &str = "docs/runbook.md";

/// The other page with a query.
const RESTORING: &str = "docs/postgres.md";

/// The alerts, with what each says where to read.
fn alerts() -> Vec<(String, String)> {
    let rules = RULES.split("- alert: ").skip(1);
    rules
        .map(|rule| {
            let name = rule.lines().next().unwrap().to_owned();
            let url = rule
                .lines()
                .find_map(|line| line.trim().strip_prefix("runbook_url: \""))
                .unwrap_or_else(|| panic!("{name} has no runbook_url"));
            (name, url.trim_end_matches('"').to_owned())
        })
        .collect()
}

#[test]
fn every_alert_leads_to_its_section_and_every_section_is_an_alerts() {
    let page = Page::named(PAGE);
    let anchors = anchors(&page);
    let alerts = alerts();
    for (name, url) in &alerts {
        assert_eq!(*url, format!("{PAGE}#{}", anchor(name)));
        let (_, place) = url.split_once('#').unwrap();
        assert!(anchors.contains(place), "{PAGE} has no {name}");
    }
    let names: BTreeSet<&str> = alerts.iter().map(|(name, _)| name.as_str()).collect();
    let mut sections = page.text.split("\n## Mailgate").skip(1).peekable();
    assert!(sections.peek().is_some());
    for section in sections {
        let name = format!("Mailgate{}", section.lines().next().unwrap());
        assert!(names.contains(name.as_str()), "no alert: {name}");
        let section = section.split("\n## ").next().unwrap();
        for part in ["**Symptom**", "**What to ask**", "**What to do**"] {
            assert!(section.contains(part), "{name} has no {part}");
        }
    }
}

#[tokio::test]
async fn every_query_is_answered() {
    let url = database::create().await;
    let mut connection = database::connect(&url).await;
    let queries = used(Use::Query);
    assert!(queries.len() > 10);
    for query in queries {
        assert!([PAGE, RESTORING].contains(&query.page.as_str()));
        let answer = connection.execute(AssertSqlSafe(query.text.clone())).await;
        if let Err(error) = answer {
            panic!("{}: {error}\n{}", query.place(), query.text);
        }
    }
}

#[tokio::test]
async fn every_expression_is_one() {
    let mut rules = NamedTempFile::with_suffix(".yml").unwrap();
    writeln!(rules, "groups:\n  - name: runbook\n    rules:").unwrap();
    let expressions = used(Use::Expression);
    assert!(expressions.len() > 5);
    for (expression, number) in expressions.iter().flat_map(|it| it.text.lines()).zip(1..) {
        let expression = serde_json::to_string(expression).unwrap();
        writeln!(
            rules,
            "      - record: asked:{number}\n        expr: {expression}"
        )
        .unwrap();
    }
    let said = run(
        "promtool",
        &["check", "rules", rules.path().to_str().unwrap()],
    )
    .await;
    assert!(said.contains("SUCCESS"), "{said}");
}

#[tokio::test]
async fn every_command_is_answered() {
    let gateway = Gateway::start().await;
    let metrics = ports::local_address();
    let mut serve = replica(&gateway)
        .set("METRICS__LISTEN", metrics.to_string())
        .start();
    let addresses = serve.ready().await;
    let folder = TempDir::new().unwrap();
    let blocks = used(Use::Asking);
    assert!(!blocks.is_empty());
    for block in blocks {
        let script = block
            .text
            .replace("127.0.0.1:9464", &metrics.to_string())
            .replace("127.0.0.1:8080", &addresses.http.to_string());
        // Each line by itself, and each says something.
        for line in script.lines() {
            let printed = type_in(folder.path(), line, &Environment::new()).await;
            assert!(!printed.is_empty(), "{}: {line}", block.place());
        }
    }
    serve.terminate().await;
    gateway.stop().await;
}
