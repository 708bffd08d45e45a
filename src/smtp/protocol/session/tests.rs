#![expect(clippy::unwrap_used, reason = "tests")]

mod authentication;
mod content;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;

fn settings() -> SessionSettings {
    SessionSettings {
        hostname: "gate.example".to_owned(),
        maximum_line: 2048,
        maximum_message: 100,
        maximum_recipients: 3,
        maximum_errors: 5,
        maximum_authentication_failures: 3,
        mechanisms: vec![Mechanism::Login, Mechanism::Plain, Mechanism::Xoauth2],
        starttls: true,
        ask_for_recipients: true,
    }
}

fn session(encryption: Encryption) -> Session {
    Session::new(Arc::new(settings()), encryption)
}

/// Answers an event: secret `good` is right and `later` can't be checked now, recipients `no@…`
/// are refused. Gives the event in short, and one that answering it brought.
fn answer(session: &mut Session, event: Event, output: &mut Vec<u8>) -> (String, Option<Event>) {
    match event {
        Event::StartTls => ("[starttls]".to_owned(), None),
        Event::Close => ("[close]".to_owned(), None),
        Event::Recipient(recipient) => {
            let verdict = if recipient.local_part() == "no" {
                Err(Reply::new(550, "5.1.1", "No such mailbox"))
            } else {
                Ok(())
            };
            session.answer_recipient(verdict, output);
            (format!("[to {recipient}]"), None)
        }
        Event::Message {
            envelope, content, ..
        } => {
            session.answer_message(Reply::new(250, "2.0.9", "Taken"), output);
            let flags = [(envelope.smtputf8, " utf8"), (envelope.body_8bit, " 8bit")];
            let flags: String = flags
                .iter()
                .filter(|flag| flag.0)
                .map(|flag| flag.1)
                .collect();
            let recipients: Vec<&str> = envelope
                .recipients
                .iter()
                .map(EmailAddress::as_str)
                .collect();
            let sender = envelope
                .sender
                .map_or_else(|| "<>".to_owned(), |sender| sender.to_string());
            let (helo, content) = (
                envelope.helo,
                String::from_utf8_lossy(&content).into_owned(),
            );
            let shown = format!(
                "[{helo}: {sender} to {}{flags}: {content:?}]",
                recipients.join(",")
            );
            (shown, None)
        }
        Event::Authenticate(credentials) => {
            let (shown, secret) = match credentials {
                Credentials::Password {
                    mechanism,
                    username,
                    password,
                } => (format!("[{} {username}]", mechanism.name()), password),
                Credentials::Bearer { username, token } => (format!("[bearer {username}]"), token),
            };
            let next = match secret.expose_secret() {
                "good" => {
                    session.authenticated(output);
                    None
                }
                "later" => session.refuse_authentication(Reply::new(454, "4.7.0", "Later"), output),
                _ => session.refuse_authentication(
                    Reply::new(535, "5.7.8", "Authentication failed"),
                    output,
                ),
            };
            (shown, next)
        }
    }
}

/// Feeds pieces one after the other; what came of them: replies in full and events in short.
fn run(mut session: Session, pieces: &[&[u8]]) -> String {
    let (mut input, mut output, mut trace) = (BytesMut::new(), Vec::new(), String::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        let mut next = session.advance(&mut input, &mut output);
        let mut advanced = true;
        while let Some(event) = next {
            trace.push_str(&String::from_utf8(std::mem::take(&mut output)).unwrap());
            let last = matches!(event, Event::StartTls | Event::Close);
            let (shown, brought) = answer(&mut session, event, &mut output);
            trace.push_str(&shown);
            trace.push_str("\r\n");
            if last {
                assert!(
                    input.is_empty() || !advanced,
                    "input is kept behind {shown}"
                );
                return trace;
            }
            advanced = brought.is_none();
            next = brought.or_else(|| session.advance(&mut input, &mut output));
        }
    }
    trace + &String::from_utf8(output).unwrap()
}

/// Last lines of replies by code and enhanced code, and events.
fn short(trace: &str) -> Vec<String> {
    trace
        .split_terminator("\r\n")
        .filter(|line| line.starts_with('[') || line.get(3..4) == Some(" "))
        .map(|line| {
            let mut words = line.split(' ');
            match (words.next(), words.next()) {
                _ if line.starts_with('[') => line.to_owned(),
                (Some(code), Some(enhanced))
                    if enhanced
                        .split('.')
                        .filter(|part| part.parse::<u16>().is_ok())
                        .count()
                        == 3 =>
                {
                    format!("{code} {enhanced}")
                }
                _ => line[..3].to_owned(),
            }
        })
        .collect()
}

/// Checks a dialogue fed at once and byte by byte.
fn check(encryption: Encryption, client: &str, expected: &[&str]) {
    let whole = run(session(encryption), &[client.as_bytes()]);
    assert_eq!(short(&whole), expected, "{client:?}\n{whole}");
    let bytes: Vec<&[u8]> = client.as_bytes().chunks(1).collect();
    assert_eq!(
        run(session(encryption), &bytes),
        whole,
        "{client:?} byte by byte"
    );
}

/// The same after EHLO and AUTH.
fn check_authenticated(client: &str, expected: &[&str]) {
    let expected = [&["250", "[PLAIN app]", "235 2.7.0"], expected].concat();
    check(
        Encryption::Tls,
        &format!("EHLO c\r\n{}{client}", auth_plain("good")),
        &expected,
    );
}

/// The same after EHLO, AUTH, MAIL and RCPT.
fn check_transaction(client: &str, expected: &[&str]) {
    let expected = [&["250 2.1.0", "[to b@x]", "250 2.1.5"], expected].concat();
    check_authenticated(
        &format!("MAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\n{client}"),
        &expected,
    );
}

fn auth_plain(password: &str) -> String {
    format!(
        "AUTH PLAIN {}\r\n",
        STANDARD.encode(format!("\0app\0{password}"))
    )
}

fn xoauth2(token: &str) -> String {
    STANDARD.encode(format!("user=a@x\u{1}auth=Bearer {token}\u{1}\u{1}"))
}

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
    // What comes behind it is the handshake's.
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
            "[c: a@x to b@x: \"\"]",
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
            "[c: a@x to b@x,c@x,d@x: \"\"]",
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

#[test]
fn errors_close() {
    check(
        Encryption::Tls,
        "X\r\nDATA x\r\nMAIL FROM:<a@x>\r\nNOOP\r\nAUTH LOGIN\r\nX\nX\r\nNOOP\r\n",
        &[
            "500 5.5.1",
            "503 5.5.1",
            "530 5.7.0",
            "250 2.0.0",
            "503 5.5.1",
            "500 5.5.2",
            "421 4.7.0",
            "[close]",
        ],
    );
    let mut closed = session(Encryption::Tls);
    let (mut input, mut output) = (BytesMut::from("QUIT\r\nNOOP\r\n"), Vec::new());
    assert!(matches!(
        closed.advance(&mut input, &mut output),
        Some(Event::Close)
    ));
    input.extend_from_slice(b"NOOP\r\n");
    assert!(matches!(
        closed.advance(&mut input, &mut output),
        Some(Event::Close)
    ));
    assert_eq!(output, b"221 2.0.0 Goodbye\r\n");
}

#[test]
fn until_an_event_is_answered_nothing_is_consumed() {
    let mut session = session(Encryption::Tls);
    let mut output = Vec::new();
    let mut input = BytesMut::from(format!("EHLO c\r\n{}NOOP\r\n", auth_plain("good")).as_str());
    assert!(matches!(
        session.advance(&mut input, &mut output),
        Some(Event::Authenticate(_))
    ));
    output.clear();
    assert!(session.advance(&mut input, &mut output).is_none());
    // Answers to what wasn't asked change nothing.
    session.answer_recipient(Ok(()), &mut output);
    session.answer_message(Reply::new(250, "", ""), &mut output);
    assert_eq!((&input[..], output.len()), (&b"NOOP\r\n"[..], 0));
    assert!(!session.is_authenticated());
    session.authenticated(&mut output);
    assert!(session.is_authenticated());
    assert!(session.advance(&mut input, &mut output).is_none());
    assert!(output.ends_with(b"250 2.0.0 OK\r\n"));
    assert!(
        session
            .refuse_authentication(Reply::new(535, "", ""), &mut output)
            .is_none()
    );
    assert!(session.is_authenticated());
}

#[test]
fn events_hide_secrets_and_content() {
    let envelope = Envelope {
        sender: None,
        recipients: Vec::new(),
        smtputf8: false,
        body_8bit: false,
        helo: String::new(),
    };
    let message = Event::Message {
        envelope,
        content: b"secret".to_vec(),
        transaction: 1,
    };
    let credentials = Event::Authenticate(Credentials::Password {
        mechanism: Mechanism::Plain,
        username: "app".to_owned(),
        password: "secret".into(),
    });
    for event in [message, credentials] {
        assert!(!format!("{event:?}").contains("secret"), "{event:?}");
    }
}

/// Pieces of dialogues, sensible and not.
fn fragment() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "EHLO c\r\n",
        "HELO c\r\n",
        "STARTTLS\r\n",
        "AUTH LOGIN\r\n",
        "AUTH PLAIN\r\n",
        "AUTH XOAUTH2\r\n",
        "YXBw\r\n",
        "Z29vZA==\r\n",
        "*\r\n",
        "\r\n",
        "MAIL FROM:<a@x>\r\n",
        "MAIL FROM:<é@x> SMTPUTF8\r\n",
        "RCPT TO:<b@x>\r\n",
        "RCPT TO:<no@x>\r\n",
        "DATA\r\n",
        "hi\r\n.\r\n",
        ".\r\n",
        "\r\n.\r\r\n",
        "a\n.\n",
        "BDAT 4\r\na\r\nb",
        "BDAT 3 LAST\r\nx\r\n",
        "BDAT 200\r\n",
        "RSET\r\n",
        "NOOP\r\n",
        "QUIT\r\n",
        "X\r\n",
        "NO\rOP\r\n",
    ]);
    prop_oneof![
        8 => fixed.prop_map(str::to_owned),
        2 => prop::sample::select(vec!["good", "bad", "later"]).prop_map(auth_plain),
        1 => prop::sample::select(vec!["good", "bad"]).prop_map(|token| format!("AUTH XOAUTH2 {}\r\n", xoauth2(token))),
        1 => (0_usize..3000).prop_map(|length| format!("NOOP {}\r\n", "x".repeat(length))),
        1 => "[ -~\r\n\0]{0,20}",
    ]
}

fn split<'bytes>(bytes: &'bytes [u8], cuts: &[usize]) -> Vec<&'bytes [u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    for cut in cuts {
        let (piece, behind) = rest.split_at((*cut).min(rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(rest);
    pieces
}

proptest! {
    #[test]
    fn any_split_gives_the_same_dialogue(
        fragments in prop::collection::vec(fragment(), 0..30),
        cuts in prop::collection::vec(0_usize..60, 0..60),
        prepared in any::<bool>(),
    ) {
        let prelude = if prepared {
            format!("EHLO c\r\n{}MAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\n", auth_plain("good"))
        } else {
            String::new()
        };
        let client = prelude + &fragments.concat();
        for encryption in [Encryption::Clear, Encryption::Tls] {
            let whole = run(session(encryption), &[client.as_bytes()]);
            let pieces = split(client.as_bytes(), &cuts);
            prop_assert_eq!(&run(session(encryption), &pieces), &whole);
            let bytes: Vec<&[u8]> = client.as_bytes().chunks(1).collect();
            prop_assert_eq!(&run(session(encryption), &bytes), &whole);
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        run(session(Encryption::Clear), &[&bytes]);
        run(session(Encryption::Tls), &[b"EHLO c\r\n", &bytes]);
    }
}
