#![expect(clippy::unwrap_used, reason = "tests")]

mod any_input;
mod authentication;
mod commands;
mod content;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::protocol::data::BareNewline;

fn settings() -> SessionSettings {
    SessionSettings {
        hostname: "gate.example".to_owned(),
        maximum_line: 2048,
        maximum_message: 100,
        bare_newline: BareNewline::Refuse,
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

/// Answers an event: the secret `good` is right and `later` can't be checked now, recipients `no@…` are refused.
/// Returns the event in short, and the next one if the answer caused it.
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
            let sender = envelope.sender;
            let (helo, content) = (
                envelope.helo,
                String::from_utf8_lossy(&content).into_owned(),
            );
            let shown = format!(
                "[{helo}: <{sender}> to {}{flags}: {content:?}]",
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

/// Feeds pieces one after the other; returns the replies in full and the events in short.
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

/// Checks a dialogue fed as a whole and byte by byte.
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

/// A list of recipients may have wrong ones, and a persistent connection sends for days.
#[test]
fn neither_wrong_recipients_nor_what_was_wrong_before_a_message_close() {
    let mut session = session(Encryption::Tls);
    let mut say = |lines: &str| {
        let (mut input, mut output) = (BytesMut::from(lines), Vec::new());
        let mut events = Vec::new();
        while let Some(event) = session.advance(&mut input, &mut output) {
            if matches!(event, Event::Authenticate(_)) {
                session.authenticated(&mut output);
                continue;
            }
            events.push(answer(&mut session, event, &mut output).0);
            if events.last().is_some_and(|event| event == "[close]") {
                break;
            }
        }
        (String::from_utf8(output).unwrap(), events)
    };
    say(&format!("EHLO c\r\n{}", auth_plain("good")));
    for _ in 0..3 {
        let wrong = "RCPT TO:<bob@exa mple>\r\nRCPT TO:<root>\r\nRCPT TO:<mü@x.de>\r\n".repeat(5);
        let (said, events) = say(&format!(
            "X\r\nX\r\nX\r\nX\r\nMAIL FROM:<a@x>\r\n{wrong}RCPT TO:<b@x>\r\nDATA\r\nS: x\r\n\r\n.\r\n"
        ));
        assert_eq!(said.matches("501 5.1.3").count(), 10, "{said}");
        assert_eq!(said.matches("553 5.6.7").count(), 5, "{said}");
        assert!(said.ends_with("250 2.0.9 Taken\r\n"), "{said} {events:?}");
    }
    let (said, _) = say(&"X\r\n".repeat(5));
    assert!(said.contains("421 4.7.0"), "{said}");
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
    // Unsolicited answers change nothing.
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
        sender: String::new(),
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
