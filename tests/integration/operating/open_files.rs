//! The limit of open files: raised at the start, and a start says where it is too low.

use serde_json::Value;

use super::observed::value;
use crate::command_line::process::{Invocation, certificates, http_client};
use crate::support::gateway::SEAL_KEY;
use crate::support::{database, ports};

const NEEDED: u64 = 2 * (100 + 200) + 1024 + 8 + 128;

/// With limits of its own, so that the machine's doesn't matter.
fn small(invocation: Invocation) -> Invocation {
    invocation
        .set("LIMITS__HTTP_CONNECTIONS", "100")
        .set("LIMITS__HTTP_CONNECTIONS_PER_ADDRESS", "100")
        .set("LIMITS__SMTP_CONNECTIONS", "200")
        .set("LIMITS__SMTP_CONNECTIONS_PER_ADDRESS", "200")
        .set("DATABASE__MAX_CONNECTIONS", "8")
}

fn limited(soft: u64, hard: u64, invocation: Invocation) -> Invocation {
    invocation.under(["prlimit".to_owned(), format!("--nofile={soft}:{hard}")])
}

#[tokio::test]
async fn the_limit_is_raised_as_far_as_permitted_and_a_shortage_is_told() {
    let url = database::create().await;
    let (_folder, files) = certificates();
    for (hard, is_short) in [(NEEDED - 1, true), (NEEDED, false)] {
        let metrics = ports::local_address();
        let serve =
            small(Invocation::serve(&url, &files)).set("METRICS__LISTEN", metrics.to_string());
        let mut serve = limited(256, hard, serve).start();
        serve.ready().await;
        let scraped = http_client().get(format!("http://{metrics}/metrics"));
        let scraped = scraped.send().await.unwrap().text().await.unwrap();
        let line = scraped
            .lines()
            .find(|line| line.starts_with("process_max_fds "));
        #[expect(clippy::cast_precision_loss, reason = "so few are exact")]
        let difference = value(line.unwrap(), "process_max_fds") - hard as f64;
        assert!(difference.abs() < 1e-9, "{line:?}");
        serve.terminate().await;
        let said = serve.stderr();
        let told = said.lines().filter(|line| {
            line.contains("WARN")
                && [
                    format!("may open {hard} files"),
                    format!("may need {NEEDED}"),
                    "limits.http_connections".to_owned(),
                    "limits.smtp_connections".to_owned(),
                    "database.max_connections".to_owned(),
                    "LimitNOFILE".to_owned(),
                    "ulimits".to_owned(),
                ]
                .iter()
                .all(|word| line.contains(word))
        });
        assert_eq!(told.count(), usize::from(is_short), "{said}");
    }
}

#[tokio::test]
async fn check_says_so_too_and_what_it_knows_of_client_secrets() {
    let url = database::create().await;
    let (_folder, files) = certificates();
    let now = chrono::Utc::now();
    let in_days = |days| {
        (now + chrono::TimeDelta::days(days))
            .date_naive()
            .to_string()
    };
    for (hard, days, secret, files_ok, secret_ok) in [
        (NEEDED - 1, 30, "hunter2", false, true),
        (NEEDED, 5, "hunter2", true, false),
        (NEEDED, -2, "hunter2", true, false),
        // None, as from an empty file.
        (NEEDED, 30, "", true, false),
    ] {
        let check = small(Invocation::new(["check", "--json"]))
            .set("DATABASE__URL", &url)
            .set("SEAL__KEYS", SEAL_KEY)
            .set("TLS__CERTIFICATE", &files.certificate)
            .set("TLS__KEY", &files.key)
            .set("PLUGINS__PLUGIN_B__CLIENT_ID", "x")
            .set("PLUGINS__PLUGIN_B__CLIENT_SECRET", secret)
            .set("PLUGINS__PLUGIN_B__TOKEN_URL", "http://127.0.0.1:1/token")
            .set("PLUGINS__PLUGIN_B__SMTP_HOST", "127.0.0.1")
            .set("PLUGINS__PLUGIN_B__SMTP_PORT", "1")
            .set("PLUGINS__PLUGIN_B__IMAP_HOST", "127.0.0.1")
            .set("PLUGINS__PLUGIN_B__CLIENT_SECRET_EXPIRES", in_days(days));
        let checked = limited(hard, hard, check).finish().await;
        let answer: Value = serde_json::from_str(&checked.stdout).unwrap();
        let is_ok = |name: &str| {
            let mut checks = answer["checks"].as_array().unwrap().iter();
            let found = checks.find(|check| check["check"] == name);
            found.unwrap_or_else(|| panic!("{name} in {answer}"))["ok"] == true
        };
        assert_eq!(is_ok("open_files"), files_ok, "{answer}");
        assert_eq!(is_ok("plugin_b_secret"), secret_ok, "{answer}");
    }
}
