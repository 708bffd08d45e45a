#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod certificates;
mod files;
mod layers;
mod payprov;
mod plugins;
mod relay;
mod settings_page;

use super::*;
use secrecy::ExposeSecret;
use std::io::Write;

fn load_with(environment: &[(&str, &str)], file: Option<&str>) -> Result<Settings, Vec<String>> {
    let file = file.map(|text| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    });
    load(
        Table::new(),
        file.as_ref().map(tempfile::NamedTempFile::path),
        environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    )
    .map_err(|error| error.problems.iter().map(ToString::to_string).collect())
}

const KEY: &str = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

fn needed() -> Vec<(&'static str, &'static str)> {
    vec![
        ("MAILGATE__DATABASE__URL", "postgres://localhost/x"),
        ("MAILGATE__SEAL__KEYS", KEY),
        ("MAILGATE__TLS__CERTIFICATE", "/c.pem"),
        ("MAILGATE__TLS__KEY", "/k.pem"),
    ]
}

#[test]
fn what_is_required_is_named_all_at_once() {
    let problems = load_with(&[], None).unwrap_err().join("\n");
    for name in ["database.url", "seal.keys", "tls.certificate", "tls.key"] {
        assert!(problems.contains(&format!("{name}: ")), "{problems}");
    }
}

#[test]
fn each_wrong_value_is_named() {
    for (name, value, expected) in [
        ("MAILGATE__HTTP__LISTEN", "nonsense", "http.listen: "),
        ("MAILGATE__HTTP__LISTEN", "", "http.listen: is required"),
        ("MAILGATE__HTTP__BASE_URL", "ftp://x", "http.base_url: "),
        (
            "MAILGATE__LIMITS__RECIPIENTS",
            "0",
            "limits.recipients: must be between",
        ),
        (
            "MAILGATE__LIMITS__RECIPIENTS",
            "many",
            "MAILGATE__LIMITS__RECIPIENTS: must be a whole number",
        ),
        (
            "MAILGATE__SENDING__UNVERIFIABLE",
            "maybe",
            "sending.unverifiable: must be fail or retry",
        ),
        (
            "MAILGATE__SENDING__RETRY_SECONDS",
            "1,x",
            "MAILGATE__SENDING__RETRY_SECONDS: must be a list of whole numbers",
        ),
        (
            "MAILGATE__NO__SUCH",
            "1",
            "MAILGATE__NO__SUCH: is not a setting",
        ),
        (
            "MAILGATE__DATABASE",
            "1",
            "MAILGATE__DATABASE: is not a setting",
        ),
        (
            "MAILGATE__PLUGINS__PLUGIN_A__SMTP_TLS",
            "none",
            "plugins.plugin_a.smtp_tls: must be",
        ),
        (
            "LOG_RETENTION_DAYS",
            "0",
            "LOG_RETENTION_DAYS: must be between",
        ),
    ] {
        let mut environment = needed();
        environment.push((name, value));
        let problems = load_with(&environment, None).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with(expected), "{problems:?}");
    }
}

#[test]
fn balancers_proxies_and_ends_are_checked() {
    for (name, value, setting) in [
        (
            "SMTP__PROXY_PROTOCOL_FROM",
            "10.0.0.0/40",
            "smtp.proxy_protocol_from: \"10.0.0.0/40\"",
        ),
        (
            "HTTP__TRUSTED_PROXIES",
            "10.0.0.1,proxy.example",
            "http.trusted_proxies: \"proxy.example\"",
        ),
        ("SHUTDOWN__SECONDS", "0", "shutdown.seconds: "),
        (
            "SHUTDOWN__ANNOUNCE_SECONDS",
            "3601",
            "shutdown.announce_seconds: ",
        ),
        (
            "DATABASE__STATEMENT_SECONDS",
            "0",
            "database.statement_seconds: ",
        ),
        (
            "LOG__ADDRESSES",
            "masked",
            "log.addresses: must be plain or hashed",
        ),
    ] {
        let mut environment = needed();
        let name = format!("MAILGATE__{name}");
        environment.push((&name, value));
        let problems = load_with(&environment, None).unwrap_err().join("\n");
        assert!(problems.starts_with(setting), "{problems}");
    }
    let mut environment = needed();
    environment.push(("MAILGATE__SMTP__PROXY_PROTOCOL_FROM", "10.0.0.0/8, ::1"));
    let settings = load_with(&environment, None).unwrap();
    assert!(
        settings
            .smtp
            .proxy_protocol_from
            .contain([10, 1, 2, 3].into())
    );
    assert!(!settings.http_trusted_proxies.contain([10, 1, 2, 3].into()));
    assert_eq!(settings.shutdown.deadline, Duration::from_secs(30));
}

/// No permitted number overflows where it is used.
#[test]
fn any_number_is_taken_or_refused() {
    fn numbers(table: &toml::Table, before: &str, found: &mut Vec<String>) {
        for (name, value) in table {
            match value {
                toml::Value::Integer(_) if before.is_empty() => found.push(name.clone()),
                toml::Value::Integer(_) => found.push(format!("MAILGATE{before}__{name}")),
                toml::Value::Table(table) => numbers(table, &format!("{before}__{name}"), found),
                _ => {}
            }
        }
    }
    let mut names = Vec::new();
    numbers(&DEFAULTS.parse().unwrap(), "", &mut names);
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        let name = name.to_uppercase();
        for value in [i64::MIN, -1, 0, 1, i64::from(u32::MAX), i64::MAX] {
            let value = value.to_string();
            let mut environment = needed();
            environment.push((&name, &value));
            if let Err(problems) = load_with(&environment, None) {
                assert!(!problems.is_empty(), "{name} {value}");
            }
        }
    }
}
