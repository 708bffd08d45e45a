#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod files;
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
fn certificates_come_from_files_or_from_an_acme_server() {
    let acme = |changes: &[(&'static str, &'static str)]| {
        let mut environment = vec![
            ("MAILGATE__DATABASE__URL", "postgres://localhost/x"),
            ("MAILGATE__SEAL__KEYS", KEY),
            ("MAILGATE__SMTP__HOST", "MX.gateway.example"),
            ("MAILGATE__ACME__CHALLENGE", "http-01"),
            ("MAILGATE__ACME__TERMS_AGREED", "true"),
        ];
        environment.extend(changes);
        load_with(&environment, None)
    };
    let CertificateSource::Acme(settings) = acme(&[]).unwrap().certificates else {
        panic!("they come from a server");
    };
    assert_eq!(settings.names(), ["mx.gateway.example"]);
    assert!(settings.directory_url.starts_with("https://acme-v02."));
    let https = ("MAILGATE__HTTP__TLS_LISTEN", "127.0.0.1:8443");
    let named = acme(&[
        https,
        ("MAILGATE__HTTP__BASE_URL", "https://www.gateway.example/x"),
    ]);
    let CertificateSource::Acme(settings) = named.unwrap().certificates else {
        panic!("they come from a server");
    };
    assert_eq!(
        settings.names(),
        ["mx.gateway.example", "www.gateway.example"]
    );
    let same = acme(&[
        https,
        ("MAILGATE__HTTP__BASE_URL", "https://mx.gateway.example"),
    ]);
    let CertificateSource::Acme(settings) = same.unwrap().certificates else {
        panic!("they come from a server");
    };
    assert_eq!(settings.names(), ["mx.gateway.example"]);
    for (changes, expected) in [
        (
            &[("MAILGATE__ACME__TERMS_AGREED", "false")][..],
            "acme.terms_agreed: ",
        ),
        (
            &[("MAILGATE__TLS__KEY", "/k.pem")][..],
            "acme.challenge: must be empty",
        ),
        (
            &[("MAILGATE__ACME__CHALLENGE", "dns-01")][..],
            "acme.challenge: must be",
        ),
        (
            &[("MAILGATE__ACME__CHALLENGE", "tls-alpn-01")][..],
            "acme.challenge: tls-alpn-01",
        ),
        (
            &[("MAILGATE__ACME__DIRECTORY_URL", "http://x")][..],
            "acme.directory_url: ",
        ),
        (&[("MAILGATE__ACME__EMAIL", "nobody")][..], "acme.email: "),
        (
            &[("MAILGATE__ACME__HTTP_LISTEN", "")][..],
            "acme.http_listen: ",
        ),
        (&[("MAILGATE__SMTP__HOST", "localhost")][..], "smtp.host: "),
        (
            &[("MAILGATE__ACME__EAB_KEY_ID", "customer-1")][..],
            "acme.eab_mac_key: is required",
        ),
        (
            &[("MAILGATE__ACME__EAB_MAC_KEY", "AAAA")][..],
            "acme.eab_key_id: is required",
        ),
        (
            &[
                ("MAILGATE__ACME__EAB_KEY_ID", "customer-1"),
                ("MAILGATE__ACME__EAB_MAC_KEY", "hunter 2"),
            ][..],
            "acme.eab_mac_key: must be the MAC key",
        ),
        (&[https][..], "http.base_url: "),
        (
            &[
                https,
                ("MAILGATE__HTTP__BASE_URL", "http://www.gateway.example"),
            ][..],
            "http.base_url: ",
        ),
    ] {
        let problems = acme(changes).unwrap_err().join("\n");
        assert!(problems.contains(expected), "{expected}{problems}");
    }
}

#[test]
fn mac_keys_as_authorities_write_them() {
    for written in [
        "-_-_AQIDBA",
        "-_-_AQIDBA==",
        "+/+/AQIDBA",
        "+/+/AQIDBA==",
        " -_-_AQIDBA ",
    ] {
        let settings = load_with(
            &[
                ("MAILGATE__DATABASE__URL", "postgres://localhost/x"),
                ("MAILGATE__SEAL__KEYS", KEY),
                ("MAILGATE__SMTP__HOST", "mx.gateway.example"),
                ("MAILGATE__ACME__CHALLENGE", "http-01"),
                ("MAILGATE__ACME__TERMS_AGREED", "true"),
                ("MAILGATE__ACME__EAB_KEY_ID", "customer-1"),
                ("MAILGATE__ACME__EAB_MAC_KEY", written),
            ],
            None,
        );
        let CertificateSource::Acme(acme) = settings.unwrap().certificates else {
            panic!("they come from a server");
        };
        let account = acme.external_account.unwrap();
        let expected = [0xfb, 0xff, 0xbf, 1, 2, 3, 4];
        assert_eq!(account.mac_key.expose_secret(), expected, "{written:?}");
    }
}

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

#[test]
fn a_generic_plugin_needs_its_addresses_and_the_kinds_have_theirs() {
    let mut environment = needed();
    environment.push(("MAILGATE__PLUGINS__PLUGIN_A__CLIENT_ID", "c"));
    environment.push(("MAILGATE__PLUGINS__PLUGIN_B__CLIENT_ID", "c"));
    let settings = load_with(&environment, None).unwrap();
    assert_eq!(settings.plugins[0].smtp.host, "smtp.gmail.com");
    assert_eq!(settings.plugins[0].smtp.port, 587);
    assert_eq!(settings.plugins[1].smtp.host, "smtp.office365.com");
    environment.push(("MAILGATE__PLUGINS__PLUGIN_A__KIND", "generic"));
    let problems = load_with(&environment, None).unwrap_err().join("\n");
    for key in ["authorize_url", "token_url", "userinfo_url", "smtp_host"] {
        assert!(
            problems.contains(&format!("plugins.plugin_a.{key}: is required")),
            "{problems}"
        );
    }
}

#[test]
fn where_an_account_is_named_is_said_without_contradiction() {
    const GENERIC: &str = "kind = 'generic'\nclient_id = 'c'\nsmtp_host = 'x'\n\
        authorize_url = 'https://x.example/a'\ntoken_url = 'https://x.example/t'\n";
    let with = |kind: &str, more: &str| {
        let file = format!("[plugins.plugin_a]\n{kind}{more}");
        load_with(&needed(), Some(&file)).map_or_else(
            |problems| problems.join("\n"),
            |settings| format!("{:?}", settings.plugins[0].account),
        )
    };
    let keys = "jwks_url = 'https://x.example/jwks'\n";
    let both = format!("{keys}issuer = 'https://x.example/'\n");
    for (kind, more, expected) in [
        (GENERIC, both.clone(), "issuer: \"https://x.example/\""),
        (
            GENERIC,
            "userinfo_url = 'https://x.example/u'\nemail_field = 'a.b'".to_owned(),
            "email_field: \"a.b\"",
        ),
        (
            GENERIC,
            "userinfo_url = 'https://x.example/u'\nuserinfo_auth = 'query'".to_owned(),
            "userinfo_auth: Query",
        ),
        (
            GENERIC,
            "userinfo_url = 'https://x.example/u'".to_owned(),
            "userinfo_auth: Bearer",
        ),
        (GENERIC, String::new(), "plugin_a.userinfo_url: is required"),
        (
            GENERIC,
            keys.to_owned(),
            "plugin_a.issuer: is required with jwks_url",
        ),
        (
            GENERIC,
            "issuer = 'x'".to_owned(),
            "plugin_a.issuer: has no meaning without jwks_url",
        ),
        (
            GENERIC,
            format!("{both}userinfo_url = 'https://x.example/u'"),
            "plugin_a.userinfo_url: must be empty with jwks_url",
        ),
        (
            GENERIC,
            format!("{both}scopes = ['mail.send']"),
            "plugin_a.scopes: must have openid with jwks_url",
        ),
        (
            GENERIC,
            "userinfo_auth = 'body'".to_owned(),
            "plugin_a.userinfo_auth: must be bearer or query",
        ),
        (
            GENERIC,
            "jwks_url = 'x'\nissuer = 'x'".to_owned(),
            "plugin_a.jwks_url: must be an http",
        ),
        (
            GENERIC,
            "jwks_url = 'http://x.example/jwks'\nissuer = 'x'".to_owned(),
            "plugin_a.jwks_url: must be an https",
        ),
        (
            "kind = 'google'\nclient_id = 'c'\n",
            both,
            "plugin_a.jwks_url: is for a plugin of kind generic alone",
        ),
        (
            "kind = 'microsoft'\nclient_id = 'c'\n",
            "email_field = 'a'".to_owned(),
            "plugin_a.email_field: is for a plugin of kind generic alone",
        ),
    ] {
        let found = with(kind, &more);
        assert!(found.contains(expected), "{more}: {found}");
    }
}

#[test]
fn a_transport_of_the_other_kind_is_named() {
    for (plugin, transport) in [("a", "graph"), ("b", "gmail_api")] {
        let client_id = format!(
            "MAILGATE__PLUGINS__PLUGIN_{}__CLIENT_ID",
            plugin.to_uppercase()
        );
        let key = format!(
            "MAILGATE__PLUGINS__PLUGIN_{}__TRANSPORT",
            plugin.to_uppercase()
        );
        let mut environment = needed();
        environment.push((&client_id, "c"));
        environment.push((&key, transport));
        let problems = load_with(&environment, None).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        let expected = format!("plugins.plugin_{plugin}.transport: isn't one of the plugin's kind");
        assert!(problems[0].contains(&expected), "{problems:?}");
    }
}

#[test]
fn all_wrong_choices_of_a_plugin_are_named_at_once() {
    let mut environment = needed();
    let keys = [
        "KIND",
        "TRANSPORT",
        "CLIENT_AUTH",
        "KEEPS_SENT_MAIL",
        "APPEND_SENT_MAIL",
    ];
    let names = keys.map(|key| format!("MAILGATE__PLUGINS__PLUGIN_A__{key}"));
    for name in &names {
        environment.push((name, "wrong"));
    }
    let problems = load_with(&environment, None).unwrap_err().join("\n");
    for key in keys.map(str::to_lowercase) {
        assert!(
            problems.contains(&format!("plugins.plugin_a.{key}: must be")),
            "{problems}"
        );
    }
}

#[test]
fn copies_are_filed_where_the_provider_keeps_none() {
    const TWO: &str = "there would be two copies";
    for (settings, problem) in [
        (&[("PLUGIN_B", "APPEND_SENT_MAIL", "yes")][..], None),
        (&[("PLUGIN_A", "APPEND_SENT_MAIL", "no")], None),
        (&[("PLUGIN_A", "APPEND_SENT_MAIL", "yes")], Some(TWO)),
        (
            &[
                ("PLUGIN_A", "APPEND_SENT_MAIL", "yes"),
                ("PLUGIN_A", "KEEPS_SENT_MAIL", "no"),
            ],
            None,
        ),
        (
            &[
                ("PLUGIN_B", "APPEND_SENT_MAIL", "yes"),
                ("PLUGIN_B", "KEEPS_SENT_MAIL", "yes"),
            ],
            Some(TWO),
        ),
        (
            &[
                ("PLUGIN_B", "APPEND_SENT_MAIL", "yes"),
                ("PLUGIN_B", "TRANSPORT", "graph"),
            ],
            Some("needs imap_host"),
        ),
    ] {
        let mut environment = needed();
        let given: Vec<(String, &str)> = (settings.iter())
            .map(|(plugin, key, value)| (format!("MAILGATE__PLUGINS__{plugin}__{key}"), *value))
            .collect();
        environment.push(("MAILGATE__PLUGINS__PLUGIN_A__CLIENT_ID", "c"));
        environment.push(("MAILGATE__PLUGINS__PLUGIN_B__CLIENT_ID", "c"));
        environment.extend(given.iter().map(|(name, value)| (name.as_str(), *value)));
        match (load_with(&environment, None), problem) {
            (Ok(loaded), None) => {
                let files = loaded.plugins.iter().any(|plugin| plugin.append_sent_mail);
                assert_eq!(files, settings[0].2 == "yes");
            }
            (Err(problems), Some(problem)) => {
                assert_eq!(problems.len(), 1, "{problems:?}");
                assert!(problems[0].contains(problem), "{problems:?}");
            }
            (loaded, problem) => panic!("{settings:?}: {} {problem:?}", loaded.is_ok()),
        }
    }
}

#[test]
fn a_relay_is_whole_or_not_there() {
    let with = |relay: &str| {
        let settings = load_with(&needed(), Some(&format!("[relay]\n{relay}")));
        settings
            .map(|settings| settings.relay)
            .map_err(|problems| problems.join("\n"))
    };
    assert!(with("").unwrap().is_none());
    let relay = with("host = 'relay.example'\nfrom = 'Mailgate <billing@gateway.example>'\n");
    let relay = relay.unwrap().unwrap();
    assert_eq!(
        (relay.tls, relay.server.port),
        (SubmissionTls::StartTls, 587)
    );
    assert!(relay.credential.is_none());
    assert_eq!(relay.from.address.as_str(), "billing@gateway.example");
    for (tls, port) in [("implicit", 465), ("none", 25)] {
        let relay = with(&format!(
            "host = 'localhost'\nfrom = 'a@b.example'\ntls = '{tls}'\n"
        ));
        assert_eq!(relay.unwrap().unwrap().server.port, port, "{tls}");
    }
    for (relay, expected) in [
        ("host = 'relay.example'\n", "relay.from: is required"),
        ("host = 'relay.example'\nfrom = 'nobody'\n", "relay.from: "),
        (
            "host = 'relay.example'\nfrom = 'a@b.example'\nusername = 'a'\n",
            "relay.password: is required",
        ),
        (
            "host = 'relay.example'\nfrom = 'a@b.example'\npassword = 'a'\n",
            "relay.username: is required",
        ),
        (
            "host = 'relay.example'\nfrom = 'a@b.example'\ntls = 'none'\n",
            "relay.tls: must be starttls or implicit",
        ),
        ("tls = 'perhaps'\n", "relay.tls: must be"),
    ] {
        let problems = with(relay).unwrap_err();
        assert!(problems.contains(expected), "{relay}: {problems}");
    }
}

#[test]
fn billing_needs_a_price_and_keys_that_fit_a_header() {
    let mut environment = needed();
    let settings = load_with(&environment, None).unwrap();
    assert!(settings.payprov.is_none());
    environment.push(("MAILGATE__PAYPROV__SECRET_KEY", "sk_test_1"));
    let problems = load_with(&environment, None).unwrap_err();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("payprov.price: is required"));
    assert!(problems[1].starts_with("payprov.webhook_secret: is required"));
    environment.push(("MAILGATE__PAYPROV__PRICE", "price_1"));
    let mut signed = environment.clone();
    signed.push(("MAILGATE__PAYPROV__WEBHOOK_SECRET", "whsec_x"));
    assert!(load_with(&signed, None).is_ok());
    environment.push(("MAILGATE__PAYPROV__ACCEPT_UNSIGNED", "true"));
    let payprov = load_with(&environment, None).unwrap().payprov.unwrap();
    assert_eq!(payprov.base_url, "https://api.stripe.com");
    assert_eq!(payprov.trial_days, 14);
    assert!(payprov.webhook_secret.is_none());
    assert_eq!(payprov.api_version, "2026-08-26.dahlia");
    for (name, value, expected) in [
        ("BASE_URL", "stripe", "payprov.base_url: must be"),
        ("BASE_URL", "", "payprov.base_url: is required"),
        ("SECRET_KEY", "sk a", "payprov.secret_key: must be"),
        ("API_VERSION", "2025 basil", "payprov.api_version: must be"),
        ("API_VERSION", "", "payprov.api_version: must be"),
        ("API_VERSION", "2026-02-30", "payprov.api_version: must be"),
        ("API_VERSION", "2026-8-26", "payprov.api_version: must be"),
        ("API_VERSION", "2026-08-26.", "payprov.api_version: must be"),
        ("TRIAL_DAYS", "731", "payprov.trial_days: must be between"),
        ("REQUEST_SECONDS", "0", "payprov.request_seconds: must be"),
    ] {
        let name = format!("MAILGATE__PAYPROV__{name}");
        let mut environment = environment.clone();
        environment.push((&name, value));
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
