//! `mailgate check`: whether a gateway with these settings can work. It changes nothing, and signs in only to the
//! database.

mod client_address;
mod local;
mod remote;

use std::path::Path;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use toml::Table as Settings;

use super::OperatorError;
use super::table::Table;

/// How long one check may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The result of one check.
#[derive(Debug)]
struct Checked {
    /// A stable name.
    name: String,
    /// The server or the file.
    target: String,
    /// The finding, or the problem.
    outcome: Result<String, String>,
    took: Duration,
    /// The server's clock, and this machine's at the same moment.
    clock: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

impl Checked {
    fn new(name: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            target: target.into(),
            outcome: Ok(String::new()),
            took: Duration::ZERO,
            clock: None,
        }
    }

    fn with(mut self, outcome: Result<String, String>) -> Self {
        self.outcome = outcome;
        self
    }
}

/// Runs all checks concurrently, and prints the results.
///
/// # Errors
///
/// [`OperatorError::Config`] for invalid settings, [`OperatorError::Failed`] for any other problem.
pub async fn run(as_json: bool, file: Option<&Path>) -> Result<(), OperatorError> {
    let settings = mailgate_settings::load(Settings::new(), file, std::env::vars_os())?;
    let mut checks: Vec<BoxFuture<'_, Vec<Checked>>> = vec![
        Box::pin(local::database(&settings)),
        Box::pin(local::certificates(&settings, Utc::now())),
    ];
    checks.extend(remote::all(&settings));
    if !settings.http_base_url.is_empty() {
        checks.push(Box::pin(client_address::client_address(&settings)));
    }
    let mut all = vec![
        Checked::new("settings", "").with(Ok("complete".to_owned())),
        local::open_files(&settings),
        local::memory(&settings),
    ];
    all.extend(local::client_secrets(&settings, Utc::now()));
    let found = join_all(checks.into_iter().map(timed)).await;
    let mut all: Vec<Checked> = all.into_iter().chain(found.into_iter().flatten()).collect();
    all.extend(remote::clock(&all));
    print(as_json, &all);
    match all.iter().filter(|check| check.outcome.is_err()).count() {
        0 => Ok(()),
        failed => Err(OperatorError::Failed(failed, all.len())),
    }
}

async fn timed(check: BoxFuture<'_, Vec<Checked>>) -> Vec<Checked> {
    let began = Instant::now();
    let mut checked = check.await;
    for one in &mut checked {
        one.took = began.elapsed();
    }
    checked
}

fn print(as_json: bool, all: &[Checked]) {
    if as_json {
        let is_ok = all.iter().all(|check| check.outcome.is_ok());
        let checks: Vec<Value> = all.iter().map(shown).collect();
        println!("{}", json!({ "ok": is_ok, "checks": checks }));
        return;
    }
    let mut table = Table::new(["CHECK", "RESULT", "WHAT", "DETAIL"]);
    for check in all {
        let (result, detail) = match &check.outcome {
            Ok(detail) => ("ok", detail),
            Err(detail) => ("PROBLEM", detail),
        };
        table.row([
            check.name.clone(),
            result.to_owned(),
            check.target.clone(),
            detail.clone(),
        ]);
    }
    print!("{}", table.text());
}

fn shown(check: &Checked) -> Value {
    let (Ok(detail) | Err(detail)) = &check.outcome;
    json!({
        "check": check.name,
        "target": check.target,
        "ok": check.outcome.is_ok(),
        "detail": detail,
        "duration_ms": u64::try_from(check.took.as_millis()).unwrap_or(u64::MAX),
    })
}
