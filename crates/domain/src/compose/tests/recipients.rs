//! Who gets a message, and how their addresses are written.

use super::*;

#[test]
fn everybody_gets_it_once_and_nobody_sees_bcc() {
    let addresses = |texts: &[&str]| texts.iter().map(|text| address(text)).collect();
    let prepared = prepare(Fields {
        cc: addresses(&["carol@example.org", "BOB@example.org", "Carol@Example.org"]),
        bcc: addresses(&["dan@example.org", "carol@example.org", "DAN@example.org"]),
        ..fields(Some("t"), None)
    });
    let everybody = ["bob@example.org", "carol@example.org", "dan@example.org"];
    assert_eq!(prepared.recipients, everybody);
    assert_eq!(prepared.cc, everybody[1..2]);
    assert_eq!(prepared.bcc, everybody[2..]);
    let text = String::from_utf8(bytes(&prepared)).unwrap();
    assert!(text.contains("\r\nCc: carol@example.org\r\n"), "{text}");
    let lower = text.to_ascii_lowercase();
    assert!(!lower.contains("bcc") && !lower.contains("dan@"), "{text}");
}

#[test]
fn a_domain_beyond_ascii_is_written_in_ascii() {
    let beyond = |name: &str| address(&format!("{name}@b\u{fc}cher.example"));
    let prepared = prepare(Fields {
        to: beyond("bob"),
        cc: vec![beyond("carol"), address("bob@xn--bcher-kva.example")],
        bcc: vec![beyond("dan")],
        reply_to: Some(beyond("ada")),
        ..fields(Some("t"), None)
    });
    assert!(!prepared.smtputf8);
    let text = String::from_utf8(bytes(&prepared)).unwrap();
    for header in [
        "\r\nTo: bob@xn--bcher-kva.example\r\n",
        "\r\nCc: carol@xn--bcher-kva.example\r\n",
        "\r\nReply-To: ada@xn--bcher-kva.example\r\n",
    ] {
        assert!(text.contains(header), "{header}{text}");
    }
    // An address named in both forms gets the message once.
    let names = ["bob", "carol", "dan"].map(|name| format!("{name}@xn--bcher-kva.example"));
    assert_eq!(prepared.recipients, names);
    assert_eq!(prepared.bcc, ["dan@b\u{fc}cher.example"]);
}

#[test]
fn one_address_beyond_ascii_needs_smtputf8() {
    let beyond = || address("jörg@example.org");
    let plain = || fields(Some("t"), None);
    for (fields, expected) in [
        (plain(), false),
        (
            Fields {
                to: beyond(),
                ..plain()
            },
            true,
        ),
        (
            Fields {
                cc: vec![beyond()],
                ..plain()
            },
            true,
        ),
        (
            Fields {
                bcc: vec![beyond()],
                ..plain()
            },
            true,
        ),
        (
            Fields {
                reply_to: Some(beyond()),
                ..plain()
            },
            true,
        ),
        (
            Fields {
                from_name: Some("Jörg".to_owned()),
                subject: "Grüße".to_owned(),
                ..plain()
            },
            false,
        ),
    ] {
        let prepared = prepare(fields);
        assert_eq!(prepared.smtputf8, expected);
        bytes(&prepared);
    }
}
