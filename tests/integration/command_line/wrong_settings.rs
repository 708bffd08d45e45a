//! Settings that can't be used: exit code 2, and a line for each of them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use tempfile::TempDir;

use super::process::{Invocation, certificates};

#[tokio::test]
async fn serve_with_nothing_set_names_all_that_is_missing() {
    let finished = Invocation::new(["serve"]).finish().await;
    finished.fails(
        2,
        &[
            "database.url: ",
            "seal.keys: ",
            "tls.certificate: ",
            "tls.key: ",
        ],
    );
    assert_eq!(finished.stdout, "");
}

#[tokio::test]
async fn migrate_needs_nothing_but_the_database() {
    let finished = Invocation::new(["migrate"]).finish().await;
    finished.fails(2, &["database.url: is required"]);
}

#[tokio::test]
async fn an_address_of_the_database_that_is_none_is_not_shown() {
    let (_folder, files) = certificates();
    for url in [
        "postgres://u:hunter2@127.0.0.1:port/x",
        "u:hunter2@127.0.0.1/x",
        "mysql://u:hunter2@127.0.0.1/x",
        "//u:hunter2@127.0.0.1/x",
        "hunter2",
    ] {
        for invocation in [
            Invocation::serve(url, &files),
            Invocation::new(["migrate"]).set("DATABASE__URL", url),
        ] {
            let finished = invocation.finish().await;
            finished.fails(2, &["database.url: must be of the form postgres://"]);
        }
    }
}

#[tokio::test]
async fn every_wrong_variable_is_named() {
    let (_folder, files) = certificates();
    for (name, value, word) in [
        (
            "MAILGATE__SMTPP__HOST",
            "x",
            "MAILGATE__SMTPP__HOST: is not a setting",
        ),
        ("MAILGATE__SMTP", "x", "MAILGATE__SMTP: "),
        ("MAILGATE__SMTP__HOST__X", "x", "MAILGATE__SMTP__HOST__X: "),
        (
            "MAILGATE__LIMITS__RECIPIENTS",
            "many",
            "MAILGATE__LIMITS__RECIPIENTS: must be a whole number",
        ),
        (
            "MAILGATE__LIMITS__RECIPIENTS",
            "0",
            "limits.recipients: must be between",
        ),
        (
            "MAILGATE__SENDING__RETRY_SECONDS",
            "60,soon",
            "MAILGATE__SENDING__RETRY_SECONDS: must be a list of whole numbers",
        ),
        ("MAILGATE__HTTP__LISTEN", "8080", "http.listen: "),
        ("MAILGATE__HTTP__LISTEN", "", "http.listen: is required"),
        (
            "MAILGATE__SMTP__STARTTLS_LISTEN",
            "587",
            "smtp.starttls_listen: ",
        ),
        (
            "MAILGATE__SMTP__TLS_LISTEN",
            "127.0.0.1:99999",
            "smtp.tls_listen: ",
        ),
        (
            "MAILGATE__HTTP__BASE_URL",
            "mail.example",
            "http.base_url: ",
        ),
        (
            "MAILGATE__LOG__FORMAT",
            "xml",
            "log.format: must be pretty or json",
        ),
        ("MAILGATE__LOG__FILTER", "a=b=c", "log.filter: "),
        (
            "MAILGATE__SENDING__UNVERIFIABLE",
            "x",
            "sending.unverifiable: ",
        ),
        (
            "MAILGATE__PLUGINS__PLUGIN_A__KIND",
            "x",
            "plugins.plugin_a.kind: ",
        ),
        (
            "LOG_RETENTION_DAYS",
            "abc",
            "LOG_RETENTION_DAYS: must be a whole number",
        ),
        (
            "LOG_RETENTION_DAYS",
            "0",
            "LOG_RETENTION_DAYS: must be between",
        ),
    ] {
        let serve = Invocation::serve("postgres://u:hunter2@127.0.0.1:1/x", &files);
        let finished = serve.variable(name, value).finish().await;
        finished.fails(2, &[word]);
    }
}

#[tokio::test]
async fn a_sealing_key_that_is_none_is_refused_and_not_shown() {
    let (_folder, files) = certificates();
    let good = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    for keys in [
        String::new(),
        "hunter2".to_owned(),
        "k1:hunter2".to_owned(),
        // 31 bytes.
        "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==".to_owned(),
        format!("k1:{good},k1:{good}"),
        format!("k1:{good},k2:hunter2"),
        format!("a b:{good}"),
    ] {
        let serve = Invocation::serve("postgres://127.0.0.1:1/x", &files).set("SEAL__KEYS", &keys);
        let finished = serve.finish().await;
        finished.fails(2, &["seal.keys: "]);
        assert!(!finished.stderr.contains(good), "{}", finished.stderr);
    }
}

#[tokio::test]
async fn every_wrong_entry_of_a_file_is_named() {
    let (_folder, files) = certificates();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("mailgate.toml");
    let toml = "LOG_RETENTION_DAYS = \"abc\"\nnothing = 1\nhttp = 5\n\
                [database]\nurl = 12\n[limits]\nrecipients = \"hunter2\"\nsmtp_errors = 0\n\
                [plugins.plugin_c]\nclient_id = \"x\"\n[plugins.plugin_a]\nclient_secrets = \"hunter2\"\n";
    std::fs::write(&path, toml).unwrap();
    // By the option, and by the variable.
    for by_option in [true, false] {
        let serve = Invocation::serve("postgres://127.0.0.1:1/x", &files);
        let serve = if by_option {
            serve.argument("--config").argument(&path)
        } else {
            serve.variable("MAILGATE_CONFIG", &path)
        };
        let finished = serve.finish().await;
        finished.fails(
            2,
            &[
                "LOG_RETENTION_DAYS: must be a whole number",
                "nothing: is not a setting",
                "http: must be a section",
                "database.url: must be a string",
                "limits.recipients: must be a whole number",
                "limits.smtp_errors: must be between",
                "plugins.plugin_c: is not a setting",
                "plugins.plugin_a.client_secrets: is not a setting",
            ],
        );
        let path = path.to_str().unwrap();
        assert_eq!(finished.stderr.matches(path).count(), 7, "where they stand");
    }
}

#[tokio::test]
async fn broken_toml_is_told_by_its_line_without_what_stands_there() {
    let (_folder, files) = certificates();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("mailgate.toml");
    for (toml, line) in [
        ("[plugins.plugin_a]\nclient_secret = \"hunter2\n", "line 2"),
        ("[plugins.plugin_a]\n\nclient_secret = hunter2\n", "line 3"),
        ("[plugins.plugin_a]\nclient_secret \"hunter2\"\n", "line 2"),
        (
            "[database]\nurl = \"a\"\nurl = \"postgres://u:hunter2@h/d\"\n",
            "line 3",
        ),
        ("[hunter2\n", "line 1"),
    ] {
        std::fs::write(&path, toml).unwrap();
        let serve = Invocation::serve("postgres://127.0.0.1:1/x", &files);
        let finished = serve.argument("--config").argument(&path).finish().await;
        finished.fails(2, &[line]);
        assert!(finished.stderr.contains("mailgate.toml"), "{toml}");
    }
}

#[tokio::test]
async fn a_file_that_can_not_be_read_is_named() {
    let (_folder, files) = certificates();
    let folder = TempDir::new().unwrap();
    let latin = folder.path().join("latin.toml");
    std::fs::write(&latin, b"[smtp]\nhost = \"hunter2\xff\"\n").unwrap();
    for path in [
        folder.path().join("missing.toml"),
        folder.path().to_owned(),
        latin,
    ] {
        for command in ["serve", "dev", "migrate"] {
            // Were it to start, it would start in a folder that goes.
            let invocation = match command {
                "serve" => Invocation::serve("postgres://127.0.0.1:1/x", &files),
                "dev" => Invocation::dev(&folder.path().join("dev")),
                _ => Invocation::new([command]).set("DATABASE__URL", "postgres://127.0.0.1:1/x"),
            };
            let finished = invocation
                .argument("--config")
                .argument(&path)
                .finish()
                .await;
            finished.fails(2, &[path.to_str().unwrap()]);
            assert!(!folder.path().join("dev").exists(), "nothing was begun");
        }
    }
}

#[tokio::test]
async fn a_generic_plugin_needs_its_addresses() {
    let (_folder, files) = certificates();
    let finished = Invocation::serve("postgres://127.0.0.1:1/x", &files)
        .set("PLUGINS__PLUGIN_A__KIND", "generic")
        .set("PLUGINS__PLUGIN_A__CLIENT_ID", "id")
        .set("PLUGINS__PLUGIN_A__CLIENT_SECRET", "hunter2")
        .finish()
        .await;
    finished.fails(
        2,
        &[
            "plugins.plugin_a.authorize_url: ",
            "plugins.plugin_a.token_url: ",
            "plugins.plugin_a.userinfo_url: ",
            "plugins.plugin_a.smtp_host: ",
        ],
    );
}

#[tokio::test]
async fn events_that_anybody_may_send_are_asked_for() {
    let (_folder, files) = certificates();
    let serve = || {
        Invocation::serve("postgres://127.0.0.1:1/x", &files)
            .set("PAYPROV__SECRET_KEY", "sk_test_hunter2")
            .set("PAYPROV__PRICE", "price_1")
    };
    let finished = serve().finish().await;
    finished.fails(2, &["payprov.webhook_secret: "]);
    // The line says what to set instead.
    let stderr = &finished.stderr;
    assert!(
        stderr.contains("payprov.accept_unsigned = true"),
        "{stderr}"
    );
    for (name, value) in [
        ("PAYPROV__ACCEPT_UNSIGNED", "true"),
        ("PAYPROV__WEBHOOK_SECRET", "whsec_hunter2"),
    ] {
        let finished = serve().set(name, value).finish().await;
        assert!(!finished.stderr.contains("payprov"), "{}", finished.stderr);
    }
}

#[tokio::test]
async fn what_is_no_unicode_matters_only_in_a_setting() {
    let (_folder, files) = certificates();
    let latin = OsStr::from_bytes(b"hunter2\xff");
    let serve = || Invocation::serve("postgres://127.0.0.1:1/x", &files);
    let finished = serve()
        .variable("OTHER", latin)
        .set("LIMITS__RECIPIENTS", "many")
        .finish()
        .await;
    finished.fails(2, &["MAILGATE__LIMITS__RECIPIENTS: "]);
    let finished = serve().set("SMTP__HOST", latin).finish().await;
    finished.fails(2, &["MAILGATE__SMTP__HOST: "]);
    let finished = serve().variable("LOG_RETENTION_DAYS", latin).finish().await;
    finished.fails(2, &["LOG_RETENTION_DAYS: "]);
}

#[tokio::test]
async fn dev_tells_wrong_settings_before_it_begins() {
    let folder = TempDir::new().unwrap();
    let directory = folder.path().join("dev");
    let finished = Invocation::dev(&directory)
        .set("SANDBOX__ACCESS_TOKEN_SECONDS", "0")
        .set("SANDBOX__LISTEN", "")
        .set("SMTP__HOSTT", "x")
        .finish()
        .await;
    finished.fails(
        2,
        &[
            "sandbox.access_token_seconds: ",
            "sandbox.listen: ",
            "MAILGATE__SMTP__HOSTT: ",
        ],
    );
    assert!(!directory.exists(), "nothing was begun");
}
