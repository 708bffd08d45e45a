//! The commands that the documents show, typed into a shell.

mod beside_dev;
mod operator;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::examples;
use super::languages::Environment;
use super::{Use, the_block, used};
use crate::payprov_sandbox::walk::api_secret;
use crate::peers::process;
use crate::support::gateway::{Gateway, MAILBOX};

const LIMIT: Duration = Duration::from_mins(5);

/// Types a script into a shell that stops at the first failure, in a folder; answers what it printed.
pub async fn type_in(folder: &Path, script: &str, environment: &Environment) -> String {
    // Where curl looks for its settings: an answer of 400 or more is a failure here.
    fs::write(
        folder.join(".curlrc"),
        "fail-with-body\nsilent\nshow-error\n",
    )
    .unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_mailgate")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new("bash");
    command
        .args(["-eu", "-o", "pipefail", "-c", script])
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{}:{path}", program.display()))
        .env("LANG", "C.UTF-8")
        .env("CURL_HOME", folder)
        .env("no_proxy", "*")
        .envs(environment);
    let output = process::run(command, b"", LIMIT).await;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{printed}{said}");
    printed
}

/// Puts what is the reader's own into a block.
fn filled(text: &str, with: &[(&str, &str)]) -> String {
    let mut text = text.to_owned();
    for (placeholder, value) in with {
        text = text.replace(placeholder, value);
    }
    assert!(!text.contains('…'), "nothing is filled in here:\n{text}");
    assert!(!text.contains("gateway.example"), "{text}");
    text
}

/// The names of an answer's fields.
fn names(answer: &Value) -> BTreeSet<&String> {
    answer.as_object().unwrap().keys().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_subscriber_types_works() {
    let gateway = Gateway::start().await;
    let folder = TempDir::new().unwrap();
    let secret = api_secret(&gateway).await;
    let port = gateway.starttls_address().port();
    let server = format!("--server 127.0.0.1 --port {port}");
    let blocks = used(Use::Gateway);
    let shown: Value = serde_json::from_str(&the_block(Use::Answer, "{")).unwrap();
    for block in &blocks {
        let script = filled(
            &block.text,
            &[
                ("--server smtp.gateway.example --port 587", &server),
                (
                    "--auth-user myapp",
                    &format!("--auth-user {}", gateway.app.slug),
                ),
                ("ada@example.com", MAILBOX),
                ("https://gateway.example", &gateway.daemon.base_url),
                ("sek_…", gateway.app.send_key.expose()),
                ("pk_…", gateway.app.pushable_key.expose()),
                ("sk_…", &secret),
                ("cred_…", &gateway.mailbox.credential.to_string()),
            ],
        );
        let printed = type_in(folder.path(), &script, &Environment::new()).await;
        let command = block.text.lines().next().unwrap();
        if command.starts_with("swaks ") {
            assert!(printed.contains("250 2.0.0 log_"), "{printed}");
            continue;
        }
        let answer: Value = serde_json::from_str(&printed).expect(&script);
        if block.text.contains("send_at") {
            assert_eq!(answer["status"], "scheduled", "{answer}");
        } else if command.contains("/send-keys") {
            assert!(answer["send_key"].as_str().unwrap().starts_with("sek_"));
            assert_eq!(answer["allowed_addresses"], json!(["192.0.2.0/24"]));
        } else if command.contains("/send") {
            assert_eq!(answer["status"], "sent", "{answer}");
            assert_eq!(names(&answer), names(&shown), "{answer}");
        } else if command.contains("/connect-sessions") {
            let link = format!("/connect/{}?session=", gateway.app.pushable_key.expose());
            assert!(answer["url"].as_str().unwrap().contains(&link), "{answer}");
            assert!(answer["expires_at"].is_string(), "{answer}");
        } else if command.contains("/portal/sessions") {
            let url = answer["url"].as_str().unwrap();
            assert!(url.contains("/portal/sign-in/mgl_"), "{answer}");
        } else if command.contains("/api-secrets") {
            assert!(answer["api_secret"].as_str().unwrap().starts_with("sk_"));
            assert_eq!(answer["scopes"], json!(["apps:read", "logs:read"]));
        } else if command.contains("/webhooks") {
            assert_eq!(answer["events"], json!(["email.sent", "email.failed_perm"]));
            assert!(answer["secret"].as_str().unwrap().starts_with("whsec_"));
        } else {
            for key in ["app_id", "pushable_key", "send_key", "webhook_secret"] {
                assert!(answer[key].is_string(), "{answer}");
            }
        }
    }
    assert_eq!(blocks.len(), 10);
    let arrived = gateway.arrived().await;
    assert_eq!(arrived.len(), 3);
    for message in arrived {
        let message = String::from_utf8(message).unwrap();
        assert!(message.contains("Subject: Hello") && message.contains("It works."));
    }
    gateway.stop().await;
}

/// All variables that the examples read, but for those that they can do without.
#[tokio::test]
async fn the_examples_find_the_variables_that_are_exported() {
    let mut read = BTreeSet::new();
    for text in examples::texts() {
        let names = text.split(|letter: char| !letter.is_ascii_uppercase() && letter != '_');
        let names = names.filter(|name| name.starts_with("MAILGATE_"));
        read.extend(names.map(str::to_owned));
    }
    read.remove("MAILGATE_SMTP_PORT");
    let folder = TempDir::new().unwrap();
    let script = format!("{}\nenv", the_block(Use::Environment, "export "));
    let printed = type_in(folder.path(), &script, &Environment::new()).await;
    let exported = printed
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, value)| name.starts_with("MAILGATE_") && !value.is_empty())
        .map(|(name, _)| name.to_owned());
    assert_eq!(exported.collect::<BTreeSet<_>>(), read);
}
