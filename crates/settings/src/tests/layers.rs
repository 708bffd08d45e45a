//! The layers of settings: the environment over a file over the defaults.

use super::*;

#[test]
fn the_environment_lies_over_the_file_over_the_defaults() {
    let mut environment = needed();
    environment.push(("MAILGATE__SMTP__HOST", "from.environment"));
    environment.push(("LOG_RETENTION_DAYS", "7"));
    environment.push(("MAILGATE__SENDING__RETRY_SECONDS", "1, 2"));
    environment.push(("UNRELATED", "x"));
    let settings = load_with(
        &environment,
        Some("[smtp]\nhost = 'from.file'\n[http]\nbase_url = 'https://file.example/'\n"),
    )
    .unwrap();
    assert_eq!(settings.smtp.host, "from.environment");
    assert_eq!(settings.http_base_url, "https://file.example");
    assert_eq!(settings.log_retention_days, 7);
    assert_eq!(settings.limits.message_bytes, 25 * 1024 * 1024);
    assert_eq!(
        settings.sending.retry,
        [Duration::from_secs(1), Duration::from_secs(2)]
    );
    assert!(settings.plugins.is_empty());
    let schedule = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000].map(Duration::from_secs);
    assert_eq!(settings.webhooks.retry, schedule);
    assert!(!settings.webhooks.allow_private);
}

#[test]
fn a_file_is_held_against_the_defaults() {
    let problems = load_with(
        &needed(),
        Some("surprise = 1\n[limits]\nrecipients = 'ten'\nnone_such = 1\n"),
    )
    .unwrap_err();
    let all = problems.join("\n");
    assert_eq!(problems.len(), 3, "{all}");
    for expected in [
        "surprise: is not a setting",
        "limits.recipients: must be a whole number",
        "limits.none_such: is not a setting",
    ] {
        assert!(all.contains(expected), "{all}");
    }
    let broken = load_with(&needed(), Some("[seal]\nkeys = ['k1:secret\n")).unwrap_err();
    assert!(broken[0].contains("isn't valid TOML: line 2"), "{broken:?}");
    assert!(!broken[0].contains("secret"), "{broken:?}");
    // Settings that the file may contain aren't reported as missing.
    let broken = load_with(&[], Some("[seal]\nkeys = ['k1:secret\n")).unwrap_err();
    assert_eq!(broken.len(), 1, "{broken:?}");
    let none = load_with(&[], None).unwrap_err().join("\n");
    assert!(none.contains("database.url: is required"), "{none}");
    assert!(none.contains("by --config or MAILGATE_CONFIG"), "{none}");
}
