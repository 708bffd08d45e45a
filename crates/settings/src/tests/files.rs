//! Settings read from files.

use super::*;

/// A file with a secret, and its path.
fn secret(bytes: &[u8]) -> (tempfile::NamedTempFile, String) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    (file, path)
}

#[test]
fn every_setting_may_come_from_a_file() {
    let (_url, url) = secret(b"postgres://u:p@host/x\n");
    let keys = format!("{KEY}\nk0:{}=\r\n", "B".repeat(42) + "A");
    let (_keys, keys) = secret(keys.as_bytes());
    let (_client, client) = secret(b" kept as it is \n\r\n");
    let (_token, token) = secret("t".repeat(32).as_bytes());
    let (_number, number) = secret(b"12\n");
    let environment = [
        ("MAILGATE__DATABASE__URL_FILE", url.as_str()),
        ("MAILGATE__SEAL__KEYS_FILE", &keys),
        ("MAILGATE__TLS__CERTIFICATE", "/c.pem"),
        ("MAILGATE__TLS__KEY", "/k.pem"),
        ("MAILGATE__PLUGINS__PLUGIN_A__CLIENT_ID", "c"),
        ("MAILGATE__PLUGINS__PLUGIN_A__CLIENT_SECRET_FILE", &client),
        ("MAILGATE__HTTP__OPERATOR_TOKEN_FILE", &token),
        ("MAILGATE__LIMITS__RECIPIENTS_FILE", &number),
        ("LOG_RETENTION_DAYS_FILE", &number),
    ];
    let settings = load_with(&environment, Some("[database]\nurl = 'postgres://file/y'")).unwrap();
    assert_eq!(
        settings.database.url.expose_secret(),
        "postgres://u:p@host/x"
    );
    let plugin = &settings.plugins[0];
    assert_eq!(plugin.client_secret.expose_secret(), " kept as it is \n");
    assert!(settings.operator_token.is_some());
    assert_eq!(settings.limits.recipients, 12);
    assert_eq!(settings.log_retention_days, 12);
}

#[test]
fn a_setting_whose_own_name_ends_like_that_is_no_file_of_a_value() {
    let mut environment = needed();
    environment.push(("MAILGATE__PLUGINS__PLUGIN_A__CLIENT_ID", "c"));
    environment.push(("MAILGATE__PLUGINS__PLUGIN_A__CA_FILE", "/ca.pem"));
    let settings = load_with(&environment, None).unwrap();
    assert_eq!(
        settings.plugins[0].ca_file.as_deref(),
        Some(Path::new("/ca.pem"))
    );
    let (_path, path) = secret(b"/other.pem\n");
    environment.pop();
    environment.push(("MAILGATE__PLUGINS__PLUGIN_A__CA_FILE_FILE", &path));
    let settings = load_with(&environment, None).unwrap();
    assert_eq!(
        settings.plugins[0].ca_file.as_deref(),
        Some(Path::new("/other.pem"))
    );
}

#[test]
fn a_setting_and_its_file_are_one_too_many() {
    let (_file, path) = secret(b"12");
    for [first, second] in [
        ["LIMITS__RECIPIENTS", "LIMITS__RECIPIENTS_FILE"],
        ["LIMITS__RECIPIENTS_FILE", "LIMITS__RECIPIENTS"],
        ["limits__recipients", "LIMITS__RECIPIENTS_FILE"],
    ] {
        let names = [first, second].map(|name| format!("MAILGATE__{name}"));
        let values = [first, second].map(|name| {
            if name.ends_with("_FILE") {
                path.as_str()
            } else {
                "12"
            }
        });
        let mut environment = needed();
        environment.extend(names.iter().map(String::as_str).zip(values));
        let problems = load_with(&environment, None).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        let expected = format!("{}: {} is set too", names[1], names[0]);
        assert!(problems[0].starts_with(&expected), "{problems:?}");
    }
}

#[test]
fn a_file_that_can_not_be_taken_is_named_and_not_quoted() {
    let (_words, words) = secret(b"hunter2\n");
    let (_bytes, bytes) = secret(b"hunter2\xff");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    for (path, expected) in [
        ("/nowhere/secret", "/nowhere/secret can't be read: No such"),
        (folder, "can't be read: Is a directory"),
        (bytes.as_str(), "can't be read: stream did not contain"),
        (words.as_str(), "must be a whole number"),
        ("", "must be the path of a file"),
    ] {
        let mut environment = needed();
        environment.push(("MAILGATE__LIMITS__RECIPIENTS_FILE", path));
        let problems = load_with(&environment, None).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].starts_with("MAILGATE__LIMITS__RECIPIENTS_FILE: "),
            "{problems:?}"
        );
        assert!(problems[0].contains(expected), "{problems:?}");
        assert!(problems[0].contains(path), "{problems:?}");
        assert!(!problems[0].contains("hunter2"), "{problems:?}");
    }
    let mut environment = needed();
    environment.push(("MAILGATE__NO__SUCH_FILE", &words));
    let problems = load_with(&environment, None).unwrap_err();
    assert_eq!(
        problems,
        ["MAILGATE__NO__SUCH_FILE: is not a setting (environment)"]
    );
}
