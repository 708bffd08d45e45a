//! Responses as servers write them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;

fn response(text: &str, literals: &[&str]) -> Result<Response, NotAResponse> {
    parse(&Frame {
        text: text.as_bytes().to_vec(),
        literals: literals
            .iter()
            .map(|literal| literal.as_bytes().to_vec())
            .collect(),
    })
}

fn listed(text: &str, literals: &[&str]) -> (String, String) {
    match response(text, literals) {
        Ok(Response::List(listed)) => (
            listed.attributes.join(" "),
            String::from_utf8(listed.name).unwrap(),
        ),
        other => panic!("{text}: {other:?}"),
    }
}

fn fetched(text: &str, literals: &[&str]) -> (Option<u32>, Option<String>) {
    match response(text, literals) {
        Ok(Response::Fetch(fetched)) => (
            fetched.uid,
            fetched
                .section
                .map(|section| String::from_utf8(section).unwrap()),
        ),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn statuses() {
    let Ok(Response::Tagged(tag, status)) = response(
        "a1 no [AuthenticationFailed] Invalid credentials (Failure)",
        &[],
    ) else {
        panic!("no status");
    };
    assert_eq!((tag.as_str(), status.condition), ("A1", Condition::No));
    assert_eq!(status.code_name(), "AUTHENTICATIONFAILED");
    assert_eq!(status.text, "Invalid credentials (Failure)");
    let Ok(Response::Untagged(status)) = response("* OK [UIDVALIDITY 7] \u{7} x\ry", &[]) else {
        panic!("no status");
    };
    assert_eq!(status.number("UIDVALIDITY"), Some(7));
    assert_eq!(status.number("UIDNEXT"), None);
    assert_eq!(status.text, " xy");
    for text in ["* BYE", "* PREAUTH", "* BAD [x"] {
        let Ok(Response::Untagged(status)) = response(text, &[]) else {
            panic!("{text}");
        };
        assert!(status.code.is_empty());
    }
    assert_eq!(
        response("+ eyJ=", &[]),
        Ok(Response::Continue("eyJ=".to_owned()))
    );
    for empty in ["+", "+ "] {
        assert_eq!(response(empty, &[]), Ok(Response::Continue(String::new())));
    }
    for text in ["", "A1", "A1 FINE", "HTTP/1.1 400 Bad Request", " x"] {
        assert_eq!(response(text, &[]), Err(NotAResponse), "{text}");
    }
}

#[test]
fn mailboxes() {
    for (text, literals, attributes, name) in [
        (
            r#"* LIST (\HasNoChildren \Sent) "/" "[Gmail]/Sent Mail""#,
            &[][..],
            r"\hasnochildren \sent",
            "[Gmail]/Sent Mail",
        ),
        (r"* LIST () NIL INBOX", &[], "", "INBOX"),
        (r#"* list () "\\" "a \"b\" \\c""#, &[], "", r#"a "b" \c"#),
        (r#"* LIST (\Sent) "." {4}"#, &["Sent"], r"\sent", "Sent"),
        (
            r#"* LIST () "/" Sent ("OLDNAME" ("Outbox"))"#,
            &[],
            "",
            "Sent",
        ),
    ] {
        let expected = (attributes.to_owned(), name.to_owned());
        assert_eq!(listed(text, literals), expected, "{text}");
    }
    for text in [
        "* LIST",
        "* LIST ()",
        "* LIST () \"/\" \"x",
        "* LIST () {3}",
    ] {
        assert_eq!(response(text, &[]), Err(NotAResponse), "{text}");
    }
}

#[test]
fn messages() {
    for (text, literals, uid, section) in [
        ("* 1 FETCH (UID 5)", &[][..], Some(5), None),
        (
            "* 1 FETCH (BODY[HEADER.FIELDS (\"To\" FROM)] {3} UID 5)",
            &["a: "],
            Some(5),
            Some("a: "),
        ),
        (
            "* 1 FETCH (FLAGS (\\Seen x) UID 5 body[HEADER.FIELDS (TO)]<0> \"b\")",
            &[],
            Some(5),
            Some("b"),
        ),
        (
            "* 1 FETCH (X ((\")\" {1}) NIL) BODY[] NIL UID 6 )",
            &["("],
            Some(6),
            None,
        ),
        ("* 1 FETCH ()", &[], None, None),
    ] {
        let expected = (uid, section.map(str::to_owned));
        assert_eq!(fetched(text, literals), expected, "{text}");
    }
    let nested = format!("* 1 FETCH (BODYSTRUCTURE {}", "(".repeat(1_000_000));
    for text in [
        nested.as_str(),
        "* 1 FETCH",
        "* 1 FETCH (UID",
        "* 1 FETCH (UID 5",
    ] {
        assert_eq!(response(text, &[]), Err(NotAResponse));
    }
}

#[test]
fn what_else_a_server_says() {
    for (text, expected) in [
        ("* SEARCH", Response::Search(vec![])),
        (
            "* SEARCH 3 1 99999999999 (MODSEQ 5)",
            Response::Search(vec![3, 1]),
        ),
        ("* 17 EXISTS", Response::Exists(17)),
        ("* 3 EXPUNGE", Response::Other),
        ("* NAMESPACE ((\"\" \"/\")) NIL NIL", Response::Other),
        ("* FLAGS (\\Seen)", Response::Other),
        ("* x", Response::Other),
        (
            "* CAPABILITY imap4rev2 SASL-IR",
            Response::Capability(vec!["IMAP4REV2".to_owned(), "SASL-IR".to_owned()]),
        ),
    ] {
        assert_eq!(response(text, &[]), Ok(expected), "{text}");
    }
}

proptest! {
    #[test]
    fn anything_is_survived(text in "(\\* |A1 )?(1 FETCH |LIST |OK )?[ ()\\[\\]{}\"\\\\A-C0-3<>]{0,40}") {
        let _ = response(&text, &["x"]);
    }
}
