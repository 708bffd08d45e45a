//! The operator's submission server.

use super::*;

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
