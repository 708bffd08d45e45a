//! Metrics: what is named is there, what is there is named, and the figures are right.

use std::collections::BTreeSet;

use crate::command_line::process::{Addresses, http_client, run};
use crate::command_line::serve::{authenticated, replica};
use crate::documents::blocks::pages;
use crate::support::gateway::Gateway;
use crate::support::patience;
use crate::support::ports;
use crate::support::smtp_client::SmtpClient;

const PAGE: &str = include_str!("../../../docs/monitoring.md");
const DASHBOARD: &str = include_str!("../../../config/grafana/mailgate.json");
const RULES: &str = include_str!("../../../config/prometheus/mailgate.rules.yml");

/// The metrics that a text names; a histogram's parts count as the histogram.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words
        // The package's file has a digit there.
        .filter(|word| {
            let rest = word.strip_prefix("mailgate_").unwrap_or_default();
            rest.starts_with(|first: char| first.is_ascii_lowercase())
        })
        .map(|word| {
            let parts = ["_bucket", "_sum", "_count"];
            parts
                .iter()
                .find_map(|part| word.strip_suffix(part))
                .unwrap_or(word)
                .to_owned()
        })
        .collect()
}

/// The samples of a scrape: names with labels, but for the buckets, for those of requests, which begin with the first
/// request of their kind, and for those of subscribers, which come and go.
fn samples(scrape: &str) -> BTreeSet<&str> {
    let lines = scrape
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#') && !line.contains("le=\""))
        .filter(|line| !line.starts_with("mailgate_http_request"))
        .filter(|line| !line.starts_with("mailgate_top_subscriber_"));
    lines.filter_map(|line| line.split(' ').next()).collect()
}

/// The metrics of a scrape, with or without samples.
fn scraped_names(scrape: &str) -> BTreeSet<String> {
    let types = scrape
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    let names = types.filter_map(|line| line.split(' ').next());
    named(&names.collect::<Vec<_>>().join(" "))
}

pub(super) fn value(scrape: &str, sample: &str) -> f64 {
    let line = scrape.lines().find_map(|line| line.strip_prefix(sample));
    let line = line.unwrap_or_else(|| panic!("{sample} in\n{scrape}"));
    line.trim().parse().unwrap()
}

/// What a scrape says after [`traffic`], exactly.
const COUNTED: [(&str, f64); 11] = [
    (
        "mailgate_messages_total{outcome=\"sent\",plugin=\"plugin_a\"}",
        1.0,
    ),
    (
        "mailgate_messages_total{outcome=\"failed_temp\",plugin=\"plugin_a\"}",
        1.0,
    ),
    (
        "mailgate_messages_total{outcome=\"failed_perm\",plugin=\"plugin_a\"}",
        1.0,
    ),
    ("mailgate_provider_seconds_count{plugin=\"plugin_a\"}", 3.0),
    ("mailgate_token_refreshes_total{outcome=\"refreshed\"}", 1.0),
    ("mailgate_authentication_failures_total{door=\"rest\"}", 1.0),
    ("mailgate_authentication_failures_total{door=\"smtp\"}", 0.0),
    ("mailgate_smtp_sessions_open{listener=\"starttls\"}", 1.0),
    ("mailgate_smtp_sessions_total{listener=\"starttls\"}", 1.0),
    ("mailgate_smtp_sessions_total{listener=\"tls\"}", 0.0),
    ("mailgate_database_up", 1.0),
];

/// A message of each outcome, with a token that has to be refreshed, and a wrong key. Answers the session.
async fn traffic(gateway: &Gateway, addresses: &Addresses) -> SmtpClient {
    let authorization = &gateway.sandbox.authorization;
    authorization.expire_access_tokens().await.unwrap();
    sqlx::query("UPDATE mailboxes SET access_token_expires_at = now()")
        .execute(&mut gateway.database().await)
        .await
        .unwrap();
    let mut client = authenticated(gateway, addresses.starttls).await;
    let message = b"From: ada@sandbox.example\r\nSubject: Hello\r\n\r\nIt works.";
    for (recipient, code) in [
        ("bob@example.com", "250 2.0.0"),
        ("tempfail@example.com", "250 2.0.0"),
        ("permfail@example.com", "550"),
    ] {
        let reply = client.submit(recipient, message).await;
        assert!(reply.starts_with(code), "{reply}");
    }
    let me = http_client().get(format!("http://{}/me", addresses.http));
    let me = me.header("x-api-secret", "wrong").send().await.unwrap();
    assert_eq!(me.status().as_u16(), 401);
    client
}

/// The crates whose names stand where the log's filter is explained, and a volume of the containers.
const OTHERS: [&str; 5] = [
    "mailgate_database",
    "mailgate_domain",
    "mailgate_rest",
    "mailgate_server",
    "mailgate_smtp",
];

/// What is there is named in the documents and shown on the dashboard, and nothing else is.
fn same_names_everywhere(there: &BTreeSet<String>) {
    let table = PAGE.lines().filter(|line| line.starts_with("| `mailgate_"));
    let table: String = table.collect();
    assert_eq!(named(&table), *there, "the operators' table");
    let mut texts = vec![("dashboard", DASHBOARD), ("rules", RULES)];
    let pages = pages();
    texts.extend(
        pages
            .iter()
            .map(|page| (page.path.as_str(), page.text.as_str())),
    );
    for (place, text) in texts {
        let named = named(text);
        let mut unknown = named.difference(there);
        let unknown = unknown.find(|name| !OTHERS.contains(&name.as_str()));
        assert_eq!(unknown, None, "{place}");
    }
    let panels = named(DASHBOARD);
    let unseen: Vec<_> = there.difference(&panels).collect();
    assert!(unseen.is_empty(), "the dashboard doesn't show {unseen:?}");
}

#[tokio::test]
async fn every_metric_is_named_and_every_named_one_is_there() {
    let gateway = Gateway::start().await;
    let metrics = ports::local_address();
    let mut serve = replica(&gateway)
        .set("METRICS__LISTEN", metrics.to_string())
        .start();
    let addresses = serve.ready().await;
    let scrape = async || {
        let response = http_client().get(format!("http://{metrics}/metrics"));
        response.send().await.unwrap().text().await.unwrap()
    };
    let fresh = scrape().await;
    assert!(value(&fresh, COUNTED[0].0) < 1.0);
    let client = traffic(&gateway, &addresses).await;
    let after = scrape().await;
    for (sample, expected) in COUNTED {
        let found = value(&after, sample);
        assert!((found - expected).abs() < 1e-9, "{sample}: {found}");
    }
    assert!(value(&after, "mailgate_journal_commit_seconds_count") >= 5.0);
    let all = "mailgate_provider_seconds_bucket{plugin=\"plugin_a\",le=\"+Inf\"}";
    assert!(value(&after, all) >= 3.0);
    let there = scraped_names(&after);
    assert_eq!(samples(&fresh), samples(&after), "from the start on");
    same_names_everywhere(&there);
    // What has to be asked for comes within 15 seconds.
    let waiting = "mailgate_spool_messages{state=\"deferred\"}";
    patience::until("stored message among the metrics", async || {
        value(&scrape().await, waiting) >= 1.0
    })
    .await;
    drop(client);
    serve.terminate().await;
    gateway.stop().await;
}

#[tokio::test]
async fn what_ships_is_well_formed() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(
        panels
            .iter()
            .all(|panel| panel["targets"][0]["expr"].is_string())
    );
    let rules = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/config/prometheus/mailgate.rules.yml"
    );
    let said = run("promtool", &["check", "rules", rules]).await;
    assert!(said.contains("SUCCESS"), "{said}");
}

/// What all gateways read in the one database: each has the same value.
const SHARED: [&str; 9] = [
    "mailgate_spool_",
    "mailgate_waiting_fullest_ratio",
    "mailgate_webhook_queue_",
    "mailgate_billing_queue_",
    "mailgate_report_changes",
    "mailgate_deletions_held",
    "mailgate_mailboxes{",
    "mailgate_client_secret_",
    "mailgate_oauth_client_",
];

/// Whether the bracket that a text begins with isn't closed in it.
fn is_open(text: &str) -> bool {
    let mut depth = 0;
    text.chars().all(|letter| {
        depth += match letter {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth > 0
    })
}

/// Whether what stands before a metric takes it from all gateways by one of these.
fn is_aggregated(before: &str, by: &[&str]) -> bool {
    by.iter().any(|by| {
        // The last aggregation that isn't closed before the metric.
        before.rmatch_indices(by).any(|(place, _)| {
            let rest = before[place + by.len()..].trim_start();
            let rest = match rest.strip_prefix("by ") {
                Some(labels) => labels
                    .split_once(')')
                    .map_or("", |(_, rest)| rest.trim_start()),
                None => rest,
            };
            rest.starts_with('(') && is_open(rest)
        })
    })
}

#[test]
fn rules_are_right_for_several_gateways() {
    assert!(is_aggregated("x + sum by (le, a) (rate(", &["sum"]));
    assert!(!is_aggregated("sum(b) + rate(", &["sum"]));
    assert!(!is_aggregated("max(", &["sum"]));
    let mut tried = 0;
    for rule in RULES.split("      - alert: ").skip(1) {
        let name = rule.lines().next().unwrap();
        let (_, expression) = rule.split_once("expr: ").unwrap();
        let (expression, rest) = expression.split_once("        labels: ").unwrap();
        let is_each = rest.contains("$labels.instance");
        for (place, _) in expression.match_indices("mailgate_") {
            let (before, metric) = expression.split_at(place);
            if SHARED.iter().any(|shared| metric.starts_with(shared)) {
                let is_once = is_aggregated(before, &["max", "min"]);
                assert!(is_once, "{name}: take the maximum, not the sum");
                tried += 1;
            } else if before.ends_with("rate(") || before.ends_with("increase(") {
                let is_summed = is_aggregated(before, &["sum"]);
                assert!(is_summed || is_each, "{name}: sum it, or name the instance");
                tried += 1;
            }
        }
    }
    assert!(tried > 40, "{tried}");
}

#[tokio::test]
async fn every_alert_fires_when_it_should() {
    const ALERTS: &str = include_str!("alerts.yml");
    let alerts = RULES
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    for alert in alerts {
        let expected = format!("alertname=\"{alert}\"");
        assert!(ALERTS.contains(&expected), "{alert} is not tried");
    }
    let tests = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/integration/operating/alerts.yml"
    );
    let said = run("promtool", &["test", "rules", tests]).await;
    assert!(said.contains("SUCCESS"), "{said}");
}
