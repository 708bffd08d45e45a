//! Certificates from files, or from an ACME server.

use super::*;

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
