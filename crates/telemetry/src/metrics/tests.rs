//! Checks the descriptions against the code, and the table in the documentation against the descriptions.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::top_subscribers;

const PAGE: &str = include_str!("../../../../docs/monitoring.md");

/// Where to find a label's values if its uses don't contain them literally: metric, label, file, and the text before
/// and after them.
#[rustfmt::skip]
const ELSEWHERE: &[(&str, &str, &str, &str, &str)] = &[
    ("mailgate_sent_copies_total", "outcome", "crates/domain/src/sending/outcome/sent_mail.rs", "fn as_str(", "\n    }"),
    ("mailgate_messages_total", "outcome", "crates/types/src/log_status.rs", "pub enum LogStatus {", "\n    }"),
    ("mailgate_http_requests_total", "method", "crates/rest/src/http/metrics.rs", "\nfn method_label(", "\n}"),
    ("mailgate_http_request_seconds", "method", "crates/rest/src/http/metrics.rs", "\nfn method_label(", "\n}"),
    ("mailgate_oauth_client_refused", "plugin", "crates/types/src/plugin.rs", "pub enum Plugin {", "\n    }"),
    ("mailgate_client_secret_expiry_timestamp_seconds", "plugin", "crates/types/src/plugin.rs", "pub enum Plugin {", "\n    }"),
    ("mailgate_mailboxes", "plugin", "crates/types/src/plugin.rs", "pub enum Plugin {", "\n    }"),
    ("mailgate_mailboxes_connected_total", "plugin", "crates/types/src/plugin.rs", "pub enum Plugin {", "\n    }"),
    ("mailgate_connect_failures_total", "plugin", "crates/types/src/plugin.rs", "pub enum Plugin {", "\n    }"),
    ("mailgate_connect_failures_total", "reason", "crates/rest/src/connect/failure.rs", "fn label(", "\n    }"),
    ("mailgate_messages_total", "plugin", "crates/types/src/plugin.rs", "pub enum Plugin {", "\n    }"),
    ("mailgate_provider_seconds", "plugin", "crates/types/src/plugin.rs", "pub enum Plugin {", "\n    }"),
    ("mailgate_provider_switched_off_total", "plugin", "crates/types/src/plugin.rs", "pub enum Plugin {", "\n    }"),
    ("mailgate_bounces_total", "plugin", "crates/types/src/plugin.rs", "pub enum Plugin {", "\n    }"),
    ("mailgate_bounces_total", "bounce_type", "crates/types/src/bounce_type.rs", "pub enum BounceType {", "\n    }"),
    ("mailgate_replies_total", "plugin", "crates/types/src/plugin.rs", "pub enum Plugin {", "\n    }"),
    ("mailgate_token_refresh_failures_total", "plugin", "crates/types/src/plugin.rs", "pub enum Plugin {", "\n    }"),
    ("mailgate_token_refresh_failures_total", "reason", "crates/providers/src/mail/oauth.rs", "fn reason(", "\n    }"),
    ("mailgate_authentication_failures_total", "door", "crates/rest/src/http/authority.rs", ".slow_down(", ";"),
    ("mailgate_authentication_failures_total", "door", "crates/rest/src/account/subscribers.rs", ".slow_down(", ";"),
    ("mailgate_authentication_failures_total", "door", "crates/portal/src/sign_in.rs", ".slow_down(", ";"),
    ("mailgate_authentication_failures_total", "door", "src/smtp/backend.rs", ".slow_down(", ";"),
    ("mailgate_smtp_sessions_total", "listener", "src/daemon.rs", "listener: if ", ",\n"),
    ("mailgate_smtp_sessions_open", "listener", "src/daemon.rs", "listener: if ", ",\n"),
    ("mailgate_webhook_attempts_total", "outcome", "crates/domain/src/webhooks/dispatch.rs", "let outcome = ", ";\n"),
    ("mailgate_webhook_seconds", "outcome", "crates/domain/src/webhooks/dispatch.rs", "let outcome = ", ";\n"),
    ("mailgate_payprov_failures_total", "reason", "crates/providers/src/payprov/client.rs", "fn reason(", "\n    }"),
    ("mailgate_billing_jobs_total", "kind", "crates/storage/src/billing_jobs.rs", "fn as_str(", "\n    }"),
    ("mailgate_billing_jobs_total", "outcome", "crates/domain/src/billing/jobs.rs", "let outcome = ", ";\n"),
    ("mailgate_billing_queue_entries", "queue", "src/workers/gauges.rs", " billing(", ";\n"),
    ("mailgate_billing_queue_overdue_seconds", "queue", "src/workers/gauges.rs", " billing(", ";\n"),
    ("mailgate_certificate_expiry_timestamp_seconds", "setting", "src/certificates/expiry.rs", "let named = [", "\n    ]"),
    ("mailgate_acme_orders_total", "outcome", "crates/domain/src/certificates/order.rs", "let outcome = ", ";\n"),
    ("mailgate_acme_failed_attempts", "setting", "crates/domain/src/certificates.rs", "= serve(", ")?"),
    ("mailgate_notices_total", "outcome", "crates/storage/src/billing_notices/due.rs", "fn as_str(", "\n    }"),
];

/// Values found there that are never counted: metric, label, value.
const NEVER: &[(&str, &str, &str)] = &[
    // It is an outcome of its own, not one of a provider in trouble.
    (
        "mailgate_token_refresh_failures_total",
        "reason",
        "invalid_grant",
    ),
];

/// A use of a metric, with each label's literal values.
struct Use {
    file: String,
    kind: &'static str,
    name: String,
    labels: Vec<(String, BTreeSet<String>)>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The comma-separated arguments of a call, starting after its opening bracket.
fn arguments(text: &str) -> Vec<String> {
    let (mut depth, mut is_quoted) = (0, false);
    let mut arguments = vec![String::new()];
    for letter in text.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '(' | '{' | '[' if !is_quoted => depth += 1,
            ')' | '}' | ']' if !is_quoted => depth -= 1,
            _ => {}
        }
        match (depth, letter) {
            (0, _) => break,
            (1, '(') => {}
            (1, ',') if !is_quoted => arguments.push(String::new()),
            _ => arguments.last_mut().unwrap().push(letter),
        }
    }
    arguments.retain(|argument| !argument.trim().is_empty());
    arguments
}

/// The quoted strings.
fn quoted(text: &str) -> impl Iterator<Item = String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned)
}

fn uses() -> Vec<Use> {
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    rust_files(&root().join("crates"), &mut files);
    let mut uses = Vec::new();
    for path in files {
        let file = path.strip_prefix(root()).unwrap().display().to_string();
        if file.starts_with("crates/telemetry/src/metrics") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for kind in ["counter", "gauge", "histogram"] {
            for (place, call) in text.match_indices(&format!("{kind}!(")) {
                let arguments = arguments(&text[place + call.len() - 1..]);
                let name = quoted(&arguments[0]).next();
                let labels = arguments[1..].iter().map(|label| {
                    let (label, value) = label.split_once("=>").unwrap();
                    (quoted(label).next().unwrap(), quoted(value).collect())
                });
                uses.push(Use {
                    labels: labels.collect(),
                    name: name.unwrap_or_else(|| panic!("{file}: a {kind} without a name")),
                    file: file.clone(),
                    kind,
                });
            }
        }
    }
    uses
}

/// The values of a label that are found elsewhere.
fn elsewhere(metric: &str, label: &str) -> BTreeSet<String> {
    let mut values = BTreeSet::new();
    let places = ELSEWHERE
        .iter()
        .filter(|place| (place.0, place.1) == (metric, label));
    for (_, _, file, before, behind) in places {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(before), "{file} has no {before:?}");
        for found in text.split(before).skip(1) {
            values.extend(quoted(found.split(behind).next().unwrap()));
        }
    }
    values.retain(|value| !NEVER.contains(&(metric, label, value)));
    values
}

const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram(..) => "histogram",
    }
}

#[test]
fn labels_are_combined() {
    assert_eq!(combinations(&[]), [vec![]]);
    let all = combinations(&[("a", &["1", "2"]), ("b", &["x", "y"])]);
    assert_eq!(all.len(), 4);
    assert!(all.contains(&vec![("a", "2"), ("b", "x")]));
}

#[test]
fn what_is_counted_is_described() {
    let uses = uses();
    assert!(uses.len() > 30, "{}", uses.len());
    for used in &uses {
        let Use { file, name, .. } = used;
        let described = METRICS.iter().find(|metric| metric.0 == name);
        let Some((_, kind, _, labels)) = described else {
            panic!("{file} has {name}, which is not described");
        };
        assert_eq!(used.kind, word(*kind), "{file}: {name}");
        let described: BTreeSet<&str> = labels.iter().map(|(label, _)| *label).collect();
        let given: BTreeSet<&str> = used
            .labels
            .iter()
            .map(|(label, _)| label.as_str())
            .collect();
        assert_eq!(given, described, "{file}: the labels of {name}");
        for (label, values) in &used.labels {
            let comes_with_requests = labels.iter().any(|(it, all)| it == label && all.is_empty());
            let is_told =
                comes_with_requests || !values.is_empty() || !elsewhere(name, label).is_empty();
            assert!(
                is_told,
                "{file}: say where the values of {name}'s {label} stand"
            );
        }
    }
}

#[test]
fn what_is_described_is_counted_with_each_of_its_values() {
    let uses = uses();
    for (name, _, help, labels) in METRICS {
        if *name == "mailgate_build_info" {
            continue;
        }
        let of_it: Vec<&Use> = uses.iter().filter(|used| used.name == *name).collect();
        assert!(!of_it.is_empty(), "nobody counts {name}");
        assert!(!help.is_empty());
        for (label, described) in *labels {
            let spelled_out = of_it
                .iter()
                .flat_map(|used| &used.labels)
                .filter(|(given, _)| given == label)
                .flat_map(|(_, values)| values.iter().cloned());
            let mut values = elsewhere(name, label);
            values.extend(spelled_out);
            let described: BTreeSet<String> =
                described.iter().map(|value| (*value).to_owned()).collect();
            assert_eq!(values, described, "{name}'s {label}");
        }
    }
}

#[test]
fn the_operators_page_has_the_same_table() {
    let there: Vec<&str> = PAGE
        .lines()
        .filter(|line| line.starts_with("| `mailgate_"))
        .collect();
    let top = top_subscribers::METRICS.map(|(name, help, labels)| {
        let labels = labels.iter().map(|label| format!("`{label}`"));
        let labels = labels.collect::<Vec<_>>().join(", ");
        format!("| `{name}` | gauge | {labels} | {help} |")
    });
    let described: Vec<String> = METRICS
        .iter()
        .map(|(name, kind, help, labels)| {
            let labels: Vec<String> = labels
                .iter()
                .map(|(label, _)| format!("`{label}`"))
                .collect();
            format!(
                "| `{name}` | {} | {} | {help} |",
                word(*kind),
                labels.join(", ")
            )
        })
        .chain(top)
        .collect();
    assert_eq!(there, described);
}
