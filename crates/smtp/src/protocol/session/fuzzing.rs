//! The fuzz target of a session: any client, with its bytes split anywhere.

#![expect(
    clippy::missing_panics_doc,
    reason = "targets panic if an invariant is violated"
)]

use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use secrecy::ExposeSecret;

use super::{Credentials, Encryption, Event, Mechanism, Session, SessionSettings};
use crate::protocol::data::BareNewline;
use crate::protocol::reply::Reply;
use mailgate_types::fuzzing::{Input, pieces};

const SETTINGS: SessionSettings = SessionSettings {
    hostname: String::new(),
    maximum_line: 256,
    maximum_message: 400,
    maximum_recipients: 3,
    maximum_errors: 6,
    maximum_authentication_failures: 3,
    mechanisms: Vec::new(),
    starttls: true,
    ask_for_recipients: false,
    bare_newline: BareNewline::Refuse,
};

/// Longest line that begins an XOAUTH2 exchange, in octets.
const LONGEST_LINE: usize = 12_288;

/// Any dialogue, however it is split, with content taken in pieces or as a whole.
pub fn smtp_session(data: &[u8]) {
    let mut input = Input::new(data);
    let options = input.byte();
    let taken_from = usize::from(input.byte());
    let cuts = input.cuts();
    let mut client = Vec::new();
    if options & 1 == 1 {
        let credentials = STANDARD.encode("\0app\0good");
        let begin = format!("EHLO c\r\nAUTH PLAIN {credentials}\r\n");
        client.extend_from_slice(begin.as_bytes());
    }
    if options & 2 == 2 {
        client.extend_from_slice(b"MAIL FROM:<a@x.org>\r\nRCPT TO:<b@x.org>\r\n");
    }
    client.extend_from_slice(input.rest());
    let settings = Arc::new(SessionSettings {
        hostname: "gate.example".to_owned(),
        mechanisms: vec![Mechanism::Login, Mechanism::Plain, Mechanism::Xoauth2],
        ask_for_recipients: options & 4 == 4,
        bare_newline: if options & 16 == 16 {
            BareNewline::Normalize
        } else {
            BareNewline::Refuse
        },
        ..SETTINGS
    });
    let encryption = if options & 8 == 8 {
        Encryption::Clear
    } else {
        Encryption::Tls
    };
    let run = |cuts: &[u8], taken_from| {
        let session = Session::new(Arc::clone(&settings), encryption);
        let mut driver = Driver {
            session,
            encryption,
            taken_from,
            input: BytesMut::new(),
            output: Vec::new(),
            pieces: (0, Vec::new()),
            trace: String::new(),
        };
        driver.run(&pieces(&client, cuts));
        driver.trace
    };
    let whole = run(&[], usize::MAX);
    assert_eq!(run(cuts, taken_from.max(1)), whole);
    assert_eq!(run(&[1], usize::MAX), whole);
}

struct Driver {
    session: Session,
    encryption: Encryption,
    /// The minimum size of a piece, in octets.
    taken_from: usize,
    input: BytesMut,
    output: Vec<u8>,
    pieces: (u64, Vec<u8>),
    trace: String,
}

impl Driver {
    fn run(&mut self, pieces: &[&[u8]]) {
        for piece in pieces {
            self.input.extend_from_slice(piece);
            while let Some(event) = self.session.advance(&mut self.input, &mut self.output) {
                self.note_replies();
                let ends = self.act(event);
                self.note_replies();
                if ends {
                    return;
                }
            }
            if let Some(piece) = self.session.take_content(self.taken_from) {
                if self.pieces.0 != piece.transaction {
                    self.pieces = (piece.transaction, Vec::new());
                }
                self.pieces.1.extend(piece.octets);
            }
            if !self.session.is_receiving_content() {
                assert!(self.input.len() < LONGEST_LINE);
            }
        }
        self.note_replies();
    }

    /// Handles an event; returns whether it ends the connection.
    fn act(&mut self, event: Event) -> bool {
        if !matches!(event, Event::Message { .. }) {
            let _ = writeln!(self.trace, "{event:?}");
        }
        match event {
            Event::StartTls | Event::Close => {
                assert!(self.input.is_empty(), "input is kept behind the end");
                assert!(!matches!(event, Event::StartTls) || self.encryption == Encryption::Clear);
                return true;
            }
            Event::Authenticate(credentials) => {
                assert_eq!(self.encryption, Encryption::Tls);
                assert!(!self.session.is_authenticated());
                let (Credentials::Password {
                    password: secret, ..
                }
                | Credentials::Bearer { token: secret, .. }) = credentials;
                match secret.expose_secret() {
                    "good" => self.session.authenticated(&mut self.output),
                    secret => {
                        let code = if secret == "later" { 454 } else { 535 };
                        let reply = Reply::new(code, "", "No");
                        let event = self.session.refuse_authentication(reply, &mut self.output);
                        // A session that has ended consumes nothing.
                        return event.is_some();
                    }
                }
            }
            Event::Recipient(recipient) => {
                let answer = match recipient.local_part() {
                    "no" => Err(Reply::new(550, "5.1.1", "No such mailbox")),
                    _ => Ok(()),
                };
                self.session.answer_recipient(answer, &mut self.output);
            }
            Event::Message {
                envelope,
                content,
                transaction,
            } => {
                assert!(self.session.is_authenticated());
                assert!((1..=SETTINGS.maximum_recipients).contains(&envelope.recipients.len()));
                let (number, mut octets) = std::mem::take(&mut self.pieces);
                if number != transaction {
                    octets.clear();
                }
                octets.extend(content);
                assert!(octets.len() <= SETTINGS.maximum_message);
                let text = String::from_utf8_lossy(&octets);
                let without = text.replace("\r\n", "");
                assert!(!without.contains(['\r', '\n', '\0']), "{text:?}");
                let _ = writeln!(self.trace, "{envelope:?} {text:?}");
                let reply = Reply::new(250, "2.0.0", "Taken");
                self.session.answer_message(reply, &mut self.output);
            }
        }
        false
    }

    /// Every reply is valid, with lines of the length that RFC 5321 §4.5.3.1.5 allows.
    fn note_replies(&mut self) {
        let replies = String::from_utf8(std::mem::take(&mut self.output));
        let Ok(replies) = replies else {
            unreachable!("a reply is not ASCII");
        };
        for line in replies.split_inclusive("\r\n") {
            assert!(line.len() <= 512 && line.ends_with("\r\n"), "{line:?}");
            let code = line.get(..3).map(str::parse::<u16>);
            assert!(matches!(code, Some(Ok(200..600))), "{line:?}");
            assert!(matches!(line.as_bytes()[3], b' ' | b'-'), "{line:?}");
            assert!(
                line[..line.len() - 2]
                    .bytes()
                    .all(|byte| matches!(byte, b' '..=b'~'))
            );
        }
        self.trace.push_str(&replies);
    }
}
