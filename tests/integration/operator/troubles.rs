//! `mailgate queue`, `mailgate mailboxes`, `mailgate check` and `mailgate trust-clock`, as child processes beside a
//! gateway.

mod checked;
mod clock;
mod connections;
mod mailboxes;
mod queue;

use serde_json::Value;

use super::just_logs;
use crate::command_line::process::{Finished, Invocation};
use crate::support::gateway::{Gateway, SEAL_KEY};

async fn run(gateway: &Gateway, arguments: &[&str]) -> Finished {
    Invocation::new(arguments)
        .set("DATABASE__URL", &gateway.database_url)
        .set("SEAL__KEYS", SEAL_KEY)
        .finish()
        .await
}

async fn answered(gateway: &Gateway, arguments: &[&str]) -> Value {
    let finished = run(gateway, &[arguments, &["--json"]].concat()).await;
    finished.succeeds();
    just_logs(&finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

/// A message that waits for its second attempt.
async fn waiting(gateway: &Gateway) -> String {
    let (status, answer) = gateway.send_to("tempfail@example.com").await;
    assert_eq!(status, 202, "{answer}");
    answer["log_id"].as_str().unwrap().to_owned()
}

/// `mailgate check` with the gateway's own providers.
pub fn check(gateway: &Gateway, arguments: &[&str]) -> Invocation {
    let all = ["check"].iter().chain(arguments);
    let mut check = Invocation::new(all)
        .set("DATABASE__URL", &gateway.database_url)
        .set("SEAL__KEYS", SEAL_KEY)
        // As many as any machine that tests run on lets be open.
        .set("LIMITS__HTTP_CONNECTIONS", "100")
        .set("LIMITS__HTTP_CONNECTIONS_PER_ADDRESS", "100")
        .set("LIMITS__SMTP_CONNECTIONS", "100")
        .set("LIMITS__SMTP_CONNECTIONS_PER_ADDRESS", "100");
    for (plugin, settings) in gateway.sandbox.plugins(&gateway.ca_file) {
        for (name, value) in settings.as_table().unwrap() {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let name = format!("PLUGINS__{plugin}__{name}").to_uppercase();
            check = check.set(&name, value);
        }
    }
    check
}

fn of<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let mut checks = answer["checks"].as_array().unwrap().iter();
    let found = checks.find(|check| check["check"] == name);
    found.unwrap_or_else(|| panic!("{name} in {answer}"))
}
