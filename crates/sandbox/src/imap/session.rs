//! What the server answers to a client's lines.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::ImapServer;
use crate::mime;
use crate::returned::Returned;
use mailgate_smtp::protocol::authentication::{bearer_error, xoauth2_login};

const CAPABILITIES: &str = "IMAP4rev1 SASL-IR AUTH=XOAUTH2 SPECIAL-USE";

/// The greeting.
pub(super) fn greeting() -> Vec<u8> {
    format!("* OK [CAPABILITY {CAPABILITIES}] The sandbox\r\n").into_bytes()
}

/// One client's session.
pub(super) struct Session<'a> {
    server: &'a ImapServer,
    /// The mailbox that has logged in.
    mailbox: Option<String>,
    /// The messages of the opened folder.
    opened: Option<Vec<Returned>>,
    pending: Option<Pending>,
    is_over: bool,
}

/// A command that waits for the client's next line.
enum Pending {
    /// For the token.
    Token(String),
    /// For the answer to a refusal.
    Refused(String),
}

impl<'a> Session<'a> {
    pub(super) fn new(server: &'a ImapServer) -> Self {
        Self {
            server,
            mailbox: None,
            opened: None,
            pending: None,
            is_over: false,
        }
    }

    pub(super) fn has_logged_in(&self) -> bool {
        self.mailbox.is_some()
    }

    /// The client has logged out.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The answer to a line.
    pub(super) fn answer(&mut self, line: &str) -> Vec<u8> {
        let line = line.trim_end();
        match self.pending.take() {
            Some(Pending::Token(tag)) => return self.authenticate(tag, line),
            Some(Pending::Refused(tag)) => {
                return completed(
                    &tag,
                    "NO [AUTHENTICATIONFAILED] The access token is invalid",
                );
            }
            None => {}
        }
        let (tag, command) = line.split_once(' ').unwrap_or((line, ""));
        let (name, arguments) = command.split_once(' ').unwrap_or((command, ""));
        match (name.to_ascii_uppercase().as_str(), &self.mailbox) {
            ("CAPABILITY", _) => done(tag, &format!("* CAPABILITY {CAPABILITIES}\r\n")),
            ("NOOP", _) => done(tag, ""),
            ("LOGOUT", _) => {
                self.is_over = true;
                done(tag, "* BYE Good bye\r\n")
            }
            ("AUTHENTICATE", None) => self.begin(tag, arguments),
            ("LIST", Some(_)) => done(
                tag,
                "* LIST () \"/\" \"INBOX\"\r\n* LIST (\\Sent) \"/\" \"Sent\"\r\n",
            ),
            ("EXAMINE" | "SELECT", Some(mailbox)) => {
                let mailbox = mailbox.clone();
                self.open(tag, &mailbox, arguments)
            }
            ("UID", Some(_)) => match &self.opened {
                Some(messages) => uid(tag, messages, arguments),
                None => completed(tag, "BAD No folder is open"),
            },
            _ => completed(tag, "BAD The sandbox doesn't know this command here"),
        }
    }

    fn begin(&mut self, tag: &str, arguments: &str) -> Vec<u8> {
        let (mechanism, initial) = arguments.split_once(' ').unwrap_or((arguments, ""));
        if !mechanism.eq_ignore_ascii_case("XOAUTH2") {
            return completed(tag, "NO Only XOAUTH2");
        }
        if initial.is_empty() {
            self.pending = Some(Pending::Token(tag.to_owned()));
            return b"+ \r\n".to_vec();
        }
        self.authenticate(tag.to_owned(), initial)
    }

    fn authenticate(&mut self, tag: String, encoded: &str) -> Vec<u8> {
        let login = STANDARD.decode(encoded).ok();
        let login = login.and_then(|bytes| String::from_utf8(bytes).ok());
        let login = login.as_deref().and_then(xoauth2_login);
        match login {
            Some((user, token)) if self.server.authorization.authenticate(user, token) => {
                self.mailbox = Some(user.to_owned());
                completed(&tag, &format!("OK [CAPABILITY {CAPABILITIES}] Done"))
            }
            _ => {
                self.pending = Some(Pending::Refused(tag));
                format!("+ {}\r\n", bearer_error()).into_bytes()
            }
        }
    }

    fn open(&mut self, tag: &str, mailbox: &str, name: &str) -> Vec<u8> {
        let name = name.trim().trim_matches('"');
        let (messages, next) = match name.to_ascii_uppercase().as_str() {
            "INBOX" => self.server.returned.of(mailbox),
            "SENT" => (Vec::new(), 1),
            _ => return completed(tag, "NO [NONEXISTENT] No such folder"),
        };
        let (exists, validity) = (messages.len(), self.server.uid_validity);
        self.opened = Some(messages);
        let mut reply = format!(
            "* {exists} EXISTS\r\n* FLAGS ()\r\n* OK [UIDVALIDITY {validity}] -\r\n* OK [UIDNEXT {next}] -\r\n"
        )
        .into_bytes();
        reply.extend(completed(tag, "OK [READ-ONLY] Done"));
        reply
    }
}

fn uid(tag: &str, messages: &[Returned], arguments: &str) -> Vec<u8> {
    let (name, arguments) = arguments.split_once(' ').unwrap_or((arguments, ""));
    match name.to_ascii_uppercase().as_str() {
        "SEARCH" => {
            let mut found = vec!["* SEARCH".to_owned()];
            found.extend(search(messages, arguments).iter().map(u32::to_string));
            done(tag, &format!("{}\r\n", found.join(" ")))
        }
        "FETCH" => fetch(tag, messages, arguments),
        _ => completed(tag, "BAD The sandbox searches and fetches only"),
    }
}

/// What a gateway searches for: UIDs, or what is new. Nothing else is found.
fn search(messages: &[Returned], criteria: &str) -> Vec<u32> {
    let uids = || messages.iter().map(|message| message.uid);
    match criteria.split(' ').collect::<Vec<_>>().as_slice() {
        ["UID", set] => uids()
            .filter(|uid| is_in(set, *uid, uids().max()))
            .collect(),
        // All of it is.
        ["SINCE", _] => uids().collect(),
        _ => Vec::new(),
    }
}

fn fetch(tag: &str, messages: &[Returned], arguments: &str) -> Vec<u8> {
    let (set, items) = arguments.split_once(' ').unwrap_or((arguments, ""));
    let newest = messages.iter().map(|message| message.uid).max();
    let mut reply = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        let uid = message.uid;
        if !is_in(set, uid, newest) {
            continue;
        }
        let (label, content) = section(items, &message.bytes);
        let head = format!(
            "* {} FETCH (UID {uid} {label} {{{}}}\r\n",
            place + 1,
            content.len()
        );
        reply.extend_from_slice(head.as_bytes());
        reply.extend_from_slice(&content);
        reply.extend_from_slice(b")\r\n");
    }
    reply.extend(done(tag, ""));
    reply
}

/// The requested section of a message: some header fields, or its beginning.
fn section(items: &str, bytes: &[u8]) -> (String, Vec<u8>) {
    let items = items.to_ascii_lowercase();
    if let Some((_, names)) = items.split_once("header.fields (") {
        let names: Vec<&str> = names
            .split(')')
            .next()
            .unwrap_or_default()
            .split(' ')
            .collect();
        let mut content = mime::fields(bytes, |name| names.contains(&name));
        content.extend_from_slice(b"\r\n");
        let label = format!("BODY[HEADER.FIELDS ({})]", names.join(" "));
        return (label, content);
    }
    let length = items
        .split_once("[]<0.")
        .and_then(|(_, length)| length.split('>').next()?.parse().ok())
        .unwrap_or(bytes.len());
    let content = bytes[..bytes.len().min(length)].to_vec();
    ("BODY[]<0>".to_owned(), content)
}

/// Whether a UID is in a set such as `1,4:6,9:*`.
fn is_in(set: &str, uid: u32, newest: Option<u32>) -> bool {
    set.split(',').any(|range| {
        let (first, last) = range.split_once(':').unwrap_or((range, range));
        let number = |text: &str| match text {
            "*" => newest,
            text => text.parse().ok(),
        };
        match (number(first), number(last)) {
            (Some(first), Some(last)) => (first.min(last)..=first.max(last)).contains(&uid),
            _ => false,
        }
    })
}

fn done(tag: &str, untagged: &str) -> Vec<u8> {
    let mut reply = untagged.as_bytes().to_vec();
    reply.extend(completed(tag, "OK Done"));
    reply
}

fn completed(tag: &str, status: &str) -> Vec<u8> {
    format!("{tag} {status}\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_uids() {
        for (set, expected) in [
            ("2", vec![2]),
            ("1,3", vec![1, 3]),
            ("2:*", vec![2, 3]),
            // The newest, however small it is.
            ("9:*", vec![3]),
            ("*", vec![3]),
            ("x", vec![]),
            ("", vec![]),
        ] {
            let found: Vec<u32> = (1..=3).filter(|uid| is_in(set, *uid, Some(3))).collect();
            assert_eq!(found, expected, "{set}");
        }
    }

    #[test]
    fn sections() {
        let mail =
            b"From: a@x.test\r\nSubject: one\r\n two\r\nTo: b@x.test\r\n\r\nSubject: body\r\n";
        let (label, content) = section("(UID BODY.PEEK[HEADER.FIELDS (Subject Cc)])", mail);
        assert_eq!(label, "BODY[HEADER.FIELDS (subject cc)]");
        assert_eq!(content, b"Subject: one\r\n two\r\n\r\n");
        let (label, content) = section("(UID BODY.PEEK[]<0.4>)", mail);
        assert_eq!(
            (label.as_str(), content.as_slice()),
            ("BODY[]<0>", &b"From"[..])
        );
    }
}
