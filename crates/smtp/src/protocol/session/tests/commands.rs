//! Commands and their replies, in order and out of it.

use super::*;

#[test]
fn greeting_and_ehlo() {
    let mut output = Vec::new();
    session(Encryption::Clear).greeting().write_to(&mut output);
    assert_eq!(output, b"220 gate.example ESMTP ready\r\n");
    let common = "250-gate.example\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n\
                  250-ENHANCEDSTATUSCODES\r\n250-SIZE 100\r\n";
    assert_eq!(
        run(session(Encryption::Clear), &[b"EHLO c\r\n"]),
        format!("{common}250-CHUNKING\r\n250 STARTTLS\r\n")
    );
    assert_eq!(
        run(session(Encryption::Tls), &[b"EHLO c\r\n"]),
        format!("{common}250-CHUNKING\r\n250 AUTH LOGIN PLAIN XOAUTH2\r\n")
    );
    let without = SessionSettings {
        starttls: false,
        mechanisms: Vec::new(),
        ..settings()
    };
    for encryption in [Encryption::Clear, Encryption::Tls] {
        let session = Session::new(Arc::new(without.clone()), encryption);
        assert_eq!(
            run(session, &[b"EHLO c\r\n"]),
            format!("{common}250 CHUNKING\r\n")
        );
    }
    let session = Session::new(Arc::new(without), Encryption::Clear);
    assert_eq!(short(&run(session, &[b"STARTTLS\r\n"])), ["502 5.5.1"]);
    let authenticated = run(
        self::session(Encryption::Tls),
        &[format!("EHLO c\r\n{}EHLO c\r\n", auth_plain("good")).as_bytes()],
    );
    assert!(authenticated.ends_with(&format!(
        "235 2.7.0 Authentication successful\r\n{common}250 CHUNKING\r\n"
    )));
    assert_eq!(
        run(self::session(Encryption::Tls), &[b"HELO c\r\n"]),
        "250 gate.example\r\n"
    );
}

#[test]
fn in_clear_nothing_but_starttls() {
    check(
        Encryption::Clear,
        "AUTH PLAIN AGFwcABnb29k\r\n",
        &["530 5.7.0"],
    );
    check(
        Encryption::Clear,
        "EHLO c\r\nAUTH X\r\nMAIL nonsense\r\nRCPT TO:<>\r\nDATA\r\n",
        &["250", "530 5.7.0", "530 5.7.0", "530 5.7.0", "530 5.7.0"],
    );
    check(
        Encryption::Clear,
        "VRFY a\r\nBDAT 6 LAST\r\nQUIT\r\nNOOP\r\n",
        &["530 5.7.0", "530 5.7.0", "250 2.0.0"],
    );
    check(
        Encryption::Clear,
        "NOOP\r\nRSET\r\nHELP\r\nEXPN x\r\nQUIT\r\nNOOP\r\n",
        &[
            "250 2.0.0",
            "250 2.0.0",
            "214 2.0.0",
            "502 5.5.1",
            "221 2.0.0",
            "[close]",
        ],
    );
    check(Encryption::Clear, "STARTTLS x\r\n", &["501 5.5.2"]);
    check(
        Encryption::Clear,
        "HELO c\r\nSTARTTLS\r\n",
        &["250", "220 2.0.0", "[starttls]"],
    );
}

#[test]
fn starttls_forgets_what_came_before_and_with_it() {
    let mut session = session(Encryption::Clear);
    let mut input = BytesMut::from("EHLO c\r\nSTARTTLS\r\nEHLO d\r\nRSET\r\n");
    let mut output = Vec::new();
    assert!(matches!(
        session.advance(&mut input, &mut output),
        Some(Event::StartTls)
    ));
    assert!(input.is_empty());
    assert!(output.ends_with(b"220 2.0.0 Ready to start TLS\r\n"));
    // Anything after it belongs to the handshake.
    input.extend_from_slice(b"NOOP\r\n");
    output.clear();
    assert!(session.advance(&mut input, &mut output).is_none());
    assert_eq!((&input[..], output.len()), (&b"NOOP\r\n"[..], 0));
    let trace = run(
        session.start_tls(),
        &[b"AUTH PLAIN AGFwcABnb29k\r\nSTARTTLS\r\nEHLO c\r\nSTARTTLS\r\n"],
    );
    assert_eq!(
        short(&trace),
        ["503 5.5.1", "503 5.5.1", "250", "503 5.5.1"]
    );
}

#[test]
fn commands_out_of_order() {
    check_authenticated(
        "RCPT TO:<b@x>\r\nDATA\r\nBDAT 2\r\nx\r",
        &["503 5.5.1", "503 5.5.1", "503 5.5.1"],
    );
    check_authenticated(
        "MAIL FROM:<a@x>\r\nMAIL FROM:<a@x>\r\nDATA\r\nBDAT 2\r\nab",
        &["250 2.1.0", "503 5.5.1", "503 5.5.1", "503 5.5.1"],
    );
    check_authenticated(
        "MAIL FROM:<a@x>\r\nRSET\r\nRCPT TO:<b@x>\r\n",
        &["250 2.1.0", "250 2.0.0", "503 5.5.1"],
    );
    check_authenticated(
        "MAIL FROM:<a@x>\r\nEHLO d\r\nRCPT TO:<b@x>\r\n",
        &["250 2.1.0", "250", "503 5.5.1"],
    );
    check_authenticated(
        "VRFY a\r\nNOOP x y\r\nXYZZY\r\n\r\n",
        &["252 2.5.0", "250 2.0.0", "500 5.5.1", "500 5.5.2"],
    );
    check_authenticated(
        "NO\nOP\r\nNO\rOP\r\nNOOP\r\r\n",
        &["500 5.5.2", "500 5.5.2", "500 5.5.2"],
    );
    check_transaction("DATA x\r\nNOOP\r\n", &["501 5.5.2", "250 2.0.0"]);
}

#[test]
fn recipients() {
    check_authenticated(
        "MAIL FROM:<a@x>\r\nRCPT TO:<no@x>\r\nRCPT TO:<>\r\nDATA\r\nBDAT 3 LAST\r\na\r\nRCPT TO:<b@x>\r\nDATA\r\n.\r\n",
        &[
            "250 2.1.0",
            "[to no@x]",
            "550 5.1.1",
            "501 5.1.3",
            "554 5.5.1",
            "554 5.5.1",
            "[to b@x]",
            "250 2.1.5",
            "354",
            "[c: <a@x> to b@x: \"\"]",
            "250 2.0.9",
        ],
    );
    check_authenticated(
        "MAIL FROM:<a@x>\r\nRCPT TO:<é@x>\r\nRCPT TO:<a@é>\r\nDATA\r\n",
        &["250 2.1.0", "553 5.6.7", "553 5.6.7", "554 5.5.1"],
    );
    check_transaction(
        "RCPT TO:<c@x>\r\nRCPT TO:<d@x>\r\nRCPT TO:<e@x>\r\nRCPT TO:<f@x>\r\nDATA\r\n.\r\n",
        &[
            "[to c@x]",
            "250 2.1.5",
            "[to d@x]",
            "250 2.1.5",
            "452 4.5.3",
            "452 4.5.3",
            "354",
            "[c: <a@x> to b@x,c@x,d@x: \"\"]",
            "250 2.0.9",
        ],
    );
    let unasked = SessionSettings {
        ask_for_recipients: false,
        ..settings()
    };
    let client = format!(
        "EHLO c\r\n{}MAIL FROM:<a@x>\r\nRCPT TO:<no@x>\r\n",
        auth_plain("good")
    );
    let trace = run(
        Session::new(Arc::new(unasked), Encryption::Tls),
        &[client.as_bytes()],
    );
    assert_eq!(
        short(&trace),
        ["250", "[PLAIN app]", "235 2.7.0", "250 2.1.0", "250 2.1.5"]
    );
}

#[test]
fn refused_senders() {
    check_authenticated(
        "MAIL FROM:<a@x> SIZE=101\r\nMAIL FROM:<a@x> SIZE=18446744073709551615\r\nMAIL FROM:<é@x>\r\n\
         MAIL FROM:<a@x> SIZE=99999999999999999999999\r\nMAIL FROM:<a@x> X=1\r\nMAIL FROM:<a@x> SIZE=100\r\n",
        &[
            "552 5.3.4",
            "552 5.3.4",
            "553 5.6.7",
            "501 5.5.4",
            "555 5.5.4",
            "250 2.1.0",
        ],
    );
}
