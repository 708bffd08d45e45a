//! AUTH: exchanges, failures, long lines.

use super::*;

#[test]
fn authentication() {
    let good = STANDARD.encode("\0app\0good");
    let token = xoauth2("good");
    let done = &["250", "[PLAIN app]", "235 2.7.0"][..];
    let login = &["250", "334", "334", "[LOGIN app]", "235 2.7.0"][..];
    let long = "A".repeat(3000);
    let cases: &[(String, &[&str])] = &[
        (format!("AUTH PLAIN {good}\r\n"), done),
        (format!("auth plain {good}\r\n"), done),
        (
            format!("AUTH PLAIN\r\n{good}\r\n"),
            &["250", "334", "[PLAIN app]", "235 2.7.0"],
        ),
        ("AUTH LOGIN\r\nYXBw\r\nZ29vZA==\r\n".to_owned(), login),
        (
            "AUTH LOGIN YXBw\r\nZ29vZA==\r\n".to_owned(),
            &["250", "334", "[LOGIN app]", "235 2.7.0"],
        ),
        (
            "AUTH LOGIN =\r\nZ29vZA==\r\n".to_owned(),
            &["250", "334", "[LOGIN ]", "235 2.7.0"],
        ),
        (
            format!("AUTH XOAUTH2 {token}\r\n"),
            &["250", "[bearer a@x]", "235 2.7.0"],
        ),
        (
            format!("AUTH XOAUTH2\r\n{token}\r\n"),
            &["250", "334", "[bearer a@x]", "235 2.7.0"],
        ),
        (
            "AUTH PLAIN\r\n*\r\nNOOP\r\n".to_owned(),
            &["250", "334", "501 5.7.0", "250 2.0.0"],
        ),
        (
            "AUTH LOGIN\r\nYXBw\r\n*\r\nNOOP\r\n".to_owned(),
            &["250", "334", "334", "501 5.7.0", "250 2.0.0"],
        ),
        (
            "AUTH PLAIN !\r\nNOOP\r\n".to_owned(),
            &["250", "501 5.5.2", "250 2.0.0"],
        ),
        ("AUTH PLAIN =\r\n".to_owned(), &["250", "501 5.5.2"]),
        (
            "AUTH PLAIN\r\n\r\n".to_owned(),
            &["250", "334", "501 5.5.2"],
        ),
        (
            "AUTH LOGIN\r\nYX\nBw\r\nNOOP\r\n".to_owned(),
            &["250", "334", "501 5.5.2", "250 2.0.0"],
        ),
        (
            format!("AUTH LOGIN\r\n{long}\r\nNOOP\r\n"),
            &["250", "334", "500 5.5.6", "250 2.0.0"],
        ),
        ("AUTH CRAM-MD5\r\n".to_owned(), &["250", "504 5.5.4"]),
        ("AUTH\r\n".to_owned(), &["250", "501 5.5.2"]),
        (
            format!("AUTH PLAIN {good}\r\nAUTH PLAIN {good}\r\n"),
            &["250", "[PLAIN app]", "235 2.7.0", "503 5.5.1"],
        ),
        (
            format!("AUTH PLAIN {good}\r\nMAIL FROM:<>\r\nAUTH PLAIN\r\n"),
            &["250", "[PLAIN app]", "235 2.7.0", "250 2.1.0", "503 5.5.1"],
        ),
        // PLAIN for another identity.
        (
            format!("AUTH PLAIN {}\r\n", STANDARD.encode("x\0app\0good")),
            &["250", "535 5.7.8"],
        ),
    ];
    for (client, expected) in cases {
        check(Encryption::Tls, &format!("EHLO c\r\n{client}"), expected);
    }
    check(
        Encryption::Tls,
        &format!("AUTH PLAIN {good}\r\n"),
        &["503 5.5.1"],
    );
    check(
        Encryption::Tls,
        &format!("HELO c\r\nAUTH PLAIN {good}\r\n"),
        &["250", "503 5.5.1"],
    );
    check(
        Encryption::Tls,
        "EHLO c\r\nMAIL FROM:<a@x>\r\n",
        &["250", "530 5.7.0"],
    );
    check(Encryption::Tls, "MAIL FROM:<a@x>\r\n", &["530 5.7.0"]);
}

#[test]
fn login_prompts_are_the_usual_ones() {
    let trace = run(
        session(Encryption::Tls),
        &[b"EHLO c\r\nAUTH LOGIN\r\nYXBw\r\n"],
    );
    assert!(
        trace.ends_with("334 VXNlcm5hbWU6\r\n334 UGFzc3dvcmQ6\r\n"),
        "{trace}"
    );
    let trace = run(session(Encryption::Tls), &[b"EHLO c\r\nAUTH PLAIN\r\n"]);
    assert!(trace.ends_with("\r\n334 \r\n"), "{trace}");
}

#[test]
fn authentication_failures_close_but_temporary_ones_do_not() {
    let (bad, later) = (auth_plain("bad"), auth_plain("later"));
    check(
        Encryption::Tls,
        &format!("EHLO c\r\n{bad}{later}{later}{later}{bad}{bad}NOOP\r\n"),
        &[
            "250",
            "[PLAIN app]",
            "535 5.7.8",
            "[PLAIN app]",
            "454 4.7.0",
            "[PLAIN app]",
            "454 4.7.0",
            "[PLAIN app]",
            "454 4.7.0",
            "[PLAIN app]",
            "535 5.7.8",
            "[PLAIN app]",
            "535 5.7.8",
            "[close]",
        ],
    );
    let other = format!("AUTH PLAIN {}\r\n", STANDARD.encode("x\0app\0good"));
    check(
        Encryption::Tls,
        &format!("EHLO c\r\n{bad}{other}{other}NOOP\r\n"),
        &[
            "250",
            "[PLAIN app]",
            "535 5.7.8",
            "535 5.7.8",
            "535 5.7.8",
            "[close]",
        ],
    );
}

#[test]
fn a_refused_token_gets_json_first() {
    let bad = format!("AUTH XOAUTH2 {}\r\n", xoauth2("bad"));
    let failure = ["[bearer a@x]", "334", "535 5.7.8"];
    check(
        Encryption::Tls,
        &format!("EHLO c\r\n{bad}\r\nNOOP\r\n"),
        &[&["250"], &failure[..], &["250 2.0.0"]].concat(),
    );
    check(
        Encryption::Tls,
        &format!(
            "EHLO c\r\n{bad}\r\n{bad}*\r\n{bad}any\nthing{}\r\nNOOP\r\n",
            "x".repeat(20_000)
        ),
        &[
            &["250"],
            &failure[..],
            &failure[..],
            &failure[..],
            &["[close]"],
        ]
        .concat(),
    );
    let later = format!("AUTH XOAUTH2 {}\r\n", xoauth2("later"));
    check(
        Encryption::Tls,
        &format!("EHLO c\r\n{later}NOOP\r\n"),
        &["250", "[bearer a@x]", "454 4.7.0", "250 2.0.0"],
    );
}

#[test]
fn only_lines_with_tokens_may_be_long() {
    let token = "t".repeat(6000);
    let answer = xoauth2(&token);
    assert!((8000..12_000).contains(&answer.len()));
    let refused = ["[bearer a@x]", "334", "535 5.7.8"];
    check(
        Encryption::Tls,
        &format!("EHLO c\r\nauth xoauth2 {answer}\r\n\r\n"),
        &[&["250"], &refused[..]].concat(),
    );
    check(
        Encryption::Tls,
        &format!("EHLO c\r\nAUTH XOAUTH2\r\n{answer}\r\n\r\n"),
        &[&["250", "334"], &refused[..]].concat(),
    );
    let too_long = "A".repeat(12_288);
    check(
        Encryption::Tls,
        &format!("EHLO c\r\nAUTH XOAUTH2 {too_long}\r\n"),
        &["250", "500 5.5.2"],
    );
    check(
        Encryption::Tls,
        &format!("EHLO c\r\nAUTH PLAIN {answer}\r\n"),
        &["250", "500 5.5.2"],
    );
    check(
        Encryption::Clear,
        &format!("EHLO c\r\nAUTH XOAUTH2 {answer}\r\n"),
        &["250", "500 5.5.2"],
    );
    check_authenticated(&format!("AUTH XOAUTH2 {answer}\r\n"), &["500 5.5.2"]);
}
