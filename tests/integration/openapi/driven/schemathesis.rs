//! A run of schemathesis, and the calls that it made.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::rules::HOOKS;
use crate::openapi::text;
use crate::support::gateway::Gateway;

/// Longest that one run of schemathesis may take; on an idle machine it takes half a minute.
const RUN_TIME: Duration = Duration::from_mins(15);

/// A request that schemathesis made, by the operation's path, and the answer's status.
pub(super) type Call = (String, String, u16);

/// Runs schemathesis over the gateway's own document, with this configuration.
pub(super) async fn drive(
    gateway: &Gateway,
    configuration: &str,
    arguments: &[&str],
) -> BTreeSet<Call> {
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers/python/bin/schemathesis");
    assert!(
        program.is_file(),
        "{} is missing: run tests/peers/install",
        program.display()
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("schemathesis.toml");
    let configuration = format!("hooks = \"hooks.py\"\n{configuration}");
    std::fs::write(&file, configuration).unwrap();
    std::fs::write(folder.path().join("hooks.py"), HOOKS).unwrap();
    let child = tokio::process::Command::new(program)
        .arg("--config-file")
        .arg(&file)
        .args(["--no-color", "run"])
        .arg(format!("{}/openapi.json", gateway.daemon.base_url))
        .args(["--checks=all", "--continue-on-failure"])
        .args(["--report=har", "--report-har-path=calls.har"])
        // The same requests each time, so that a failure can be repeated.
        .args(["--seed=1", "--generation-database=none"])
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("schemathesis starts");
    let output = tokio::time::timeout(RUN_TIME, child.wait_with_output())
        .await
        .expect("schemathesis ends in time")
        .unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let report = std::fs::read(folder.path().join("calls.har")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let entries = report["log"]["entries"].as_array().unwrap();
    entries
        .iter()
        .map(|entry| {
            let url = text(&entry["request"]["url"]);
            let path = url.strip_prefix(&gateway.daemon.base_url).unwrap_or(url);
            let status = u16::try_from(entry["response"]["status"].as_u64().unwrap()).unwrap();
            let method = text(&entry["request"]["method"]).to_owned();
            (method, template(path), status)
        })
        .collect()
}

/// The path as the document has it.
fn template(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut parts: Vec<&str> = path.split('/').collect();
    if parts.len() > 2 && matches!(parts[1], "apps" | "connect") {
        parts[2] = "{pushable_key}";
    }
    if parts.len() > 2 && parts[1] == "logs" {
        parts[2] = "{log_id}";
    }
    if parts.len() > 4 && parts[3] == "credentials" {
        parts[4] = "{credential_id}";
    }
    if parts.len() > 4 && parts[3] == "users" {
        parts[4] = "{user_key}";
    }
    if parts.len() > 4 && parts[3] == "deliveries" {
        parts[4] = "{delivery_id}";
    }
    if parts.len() > 4 && parts[3] == "webhooks" {
        parts[4] = "{webhook_id}";
    }
    if parts.len() > 4 && parts[3] == "send-keys" {
        parts[4] = "{id}";
    }
    if parts.len() > 3 && parts[2] == "api-secrets" {
        parts[3] = "{id}";
    }
    if parts.len() > 6 && parts[5] == "deliveries" {
        parts[6] = "{delivery_id}";
    }
    parts.join("/")
}

pub(super) fn succeeded(calls: &BTreeSet<Call>) -> BTreeSet<(String, String)> {
    calls
        .iter()
        .filter(|(_, _, status)| (200..300).contains(status))
        .map(|(method, path, _)| (method.clone(), path.clone()))
        .collect()
}
