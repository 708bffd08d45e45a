//! The settings of mail providers.

use super::*;

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
