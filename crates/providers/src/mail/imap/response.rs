//! Parses the parts of a server's responses (RFC 9051 §7) that are needed here. Everything else is [`Response::Other`]
//! and not parsed further; nothing is parsed recursively.

use super::framing::{Frame, NotAResponse};

/// The characters of a server's text that are kept.
const TEXT_LENGTH: usize = 500;

/// One response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Response {
    /// The server expects more of the command; during authentication, a challenge.
    Continue(String),
    /// The end of the command with this tag.
    Tagged(String, Status),
    /// A status without a command: the greeting, a warning, or BYE.
    Untagged(Status),
    /// The capabilities of the server, in upper case.
    Capability(Vec<String>),
    /// A mailbox.
    List(Listed),
    /// The messages found.
    Search(Vec<u32>),
    /// The number of messages in the mailbox.
    Exists(u32),
    /// The data of one message.
    Fetch(Fetched),
    /// Anything else.
    Other,
}

/// The first word of a status response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Ok,
    No,
    Bad,
    Preauth,
    Bye,
}

/// A status response (RFC 9051 §7.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) condition: Condition,
    /// The response code with its arguments, in upper case; empty if there is none.
    pub(super) code: Vec<String>,
    /// The human-readable text.
    pub(super) text: String,
}

impl Status {
    /// The name of the response code.
    pub(super) fn code_name(&self) -> &str {
        self.code.first().map_or("", String::as_str)
    }

    /// The number that the response code `name` carries.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        match self.code.as_slice() {
            [code, number] if code == name => number.parse().ok(),
            _ => None,
        }
    }
}

/// A mailbox in the response to LIST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    /// Its attributes, in lower case.
    pub(super) attributes: Vec<String>,
    pub(super) name: Vec<u8>,
}

/// A message's data from FETCH.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Fetched {
    pub(super) uid: Option<u32>,
    /// The requested section.
    pub(super) section: Option<Vec<u8>>,
}

/// Parses a response.
pub(super) fn read(frame: &Frame) -> Result<Response, NotAResponse> {
    let mut reader = Reader {
        rest: &frame.text,
        literals: frame.literals.iter(),
    };
    let first = reader.word();
    match first {
        b"+" => {
            let text = String::from_utf8_lossy(reader.rest).into_owned();
            return Ok(Response::Continue(text));
        }
        b"" => return Err(NotAResponse),
        b"*" => {}
        tag => {
            let tag = capitals(tag);
            let status = reader.word();
            let status = reader.status(status).ok_or(NotAResponse)?;
            return Ok(Response::Tagged(tag, status));
        }
    }
    let word = reader.word();
    if let Some(status) = reader.status(word) {
        return Ok(Response::Untagged(status));
    }
    let response = match capitals(word).as_str() {
        "CAPABILITY" => Some(Response::Capability(words(reader.rest))),
        "LIST" => reader.list().map(Response::List),
        "SEARCH" => Some(Response::Search(
            // The numbers may be followed by more (RFC 7162 §3.1.5).
            reader
                .rest
                .split(|byte| *byte == b' ')
                .filter_map(number)
                .collect(),
        )),
        _ => match (number(word), capitals(reader.word()).as_str()) {
            (Some(count), "EXISTS") => Some(Response::Exists(count)),
            (Some(_), "FETCH") => reader.fetch().map(Response::Fetch),
            _ => Some(Response::Other),
        },
    };
    response.ok_or(NotAResponse)
}

/// A value of an attribute.
enum Value<'a> {
    String(Vec<u8>),
    Atom(&'a [u8]),
    Nothing,
}

struct Reader<'a> {
    rest: &'a [u8],
    literals: std::slice::Iter<'a, Vec<u8>>,
}

impl<'a> Reader<'a> {
    /// Up to the next space, which is consumed too.
    fn word(&mut self) -> &'a [u8] {
        let end = memchr::memchr(b' ', self.rest).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        word
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    fn spaces(&mut self) {
        while self.take(b' ').is_some() {}
    }

    fn status(&self, word: &[u8]) -> Option<Status> {
        let condition = match capitals(word).as_str() {
            "OK" => Condition::Ok,
            "NO" => Condition::No,
            "BAD" => Condition::Bad,
            "PREAUTH" => Condition::Preauth,
            "BYE" => Condition::Bye,
            _ => return None,
        };
        let code = self.rest.strip_prefix(b"[").and_then(|code| {
            let end = memchr::memchr(b']', code)?;
            Some((words(&code[..end]), &code[end + 1..]))
        });
        let (code, text) = code.unwrap_or((Vec::new(), self.rest));
        Some(Status {
            condition,
            code,
            text: clean(text),
        })
    }

    /// The rest of a LIST response: the attributes in parentheses, the delimiter, the name.
    fn list(&mut self) -> Option<Listed> {
        self.take(b'(')?;
        let end = memchr::memchr(b')', self.rest)?;
        let attributes = words(&self.rest[..end])
            .into_iter()
            .map(|attribute| attribute.to_ascii_lowercase())
            .collect();
        self.rest = &self.rest[end + 1..];
        self.spaces();
        self.value()?;
        self.spaces();
        let name = match self.value()? {
            Value::String(name) => name,
            Value::Atom(name) if !name.is_empty() => name.to_vec(),
            Value::Atom(_) | Value::Nothing => return None,
        };
        Some(Listed { attributes, name })
    }

    /// The rest of a FETCH response: names and values in parentheses.
    fn fetch(&mut self) -> Option<Fetched> {
        let mut fetched = Fetched::default();
        self.take(b'(')?;
        loop {
            self.spaces();
            if self.take(b')').is_some() {
                return Some(fetched);
            }
            let name = capitals(self.attribute_name()?);
            self.spaces();
            let value = self.value()?;
            match (name.as_str(), value) {
                ("UID", Value::Atom(uid)) => fetched.uid = number(uid),
                (name, Value::String(section)) if name.starts_with("BODY[") => {
                    fetched.section = Some(section);
                }
                _ => {}
            }
        }
    }

    /// Up to a space outside brackets, since `BODY[HEADER.FIELDS (TO)]` contains one.
    fn attribute_name(&mut self) -> Option<&'a [u8]> {
        let end = match memchr::memchr2(b' ', b'[', self.rest)? {
            bracket if self.rest[bracket] == b'[' => {
                let close = bracket + memchr::memchr(b']', &self.rest[bracket..])?;
                close + memchr::memchr(b' ', &self.rest[close..])?
            }
            space => space,
        };
        let name = &self.rest[..end];
        self.rest = &self.rest[end..];
        (!name.is_empty()).then_some(name)
    }

    /// A string, an atom, NIL, or a list, which is skipped.
    fn value(&mut self) -> Option<Value<'a>> {
        match self.rest.first()? {
            b'"' => self.quoted().map(Value::String),
            b'{' => self.literal().map(|literal| Value::String(literal.clone())),
            b'(' => {
                let mut depth = 0_usize;
                loop {
                    match self.rest.first()? {
                        b'"' => drop(self.quoted()?),
                        b'{' => drop(self.literal()?),
                        byte => {
                            match byte {
                                b'(' => depth += 1,
                                b')' => depth = depth.checked_sub(1)?,
                                _ => {}
                            }
                            self.rest = &self.rest[1..];
                        }
                    }
                    if depth == 0 {
                        return Some(Value::Nothing);
                    }
                }
            }
            _ => {
                let end = memchr::memchr2(b' ', b')', self.rest).unwrap_or(self.rest.len());
                let atom = &self.rest[..end];
                self.rest = &self.rest[end..];
                if atom.eq_ignore_ascii_case(b"NIL") {
                    return Some(Value::Nothing);
                }
                Some(Value::Atom(atom))
            }
        }
    }

    fn quoted(&mut self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let mut bytes = self.rest.iter().enumerate().skip(1);
        while let Some((position, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    self.rest = &self.rest[position + 1..];
                    return Some(text);
                }
                b'\\' => text.push(*bytes.next()?.1),
                byte => text.push(*byte),
            }
        }
        None
    }

    fn literal(&mut self) -> Option<&'a Vec<u8>> {
        let end = memchr::memchr(b'}', self.rest)?;
        self.rest = &self.rest[end + 1..];
        self.literals.next()
    }
}

fn number(word: &[u8]) -> Option<u32> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn capitals(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_ascii_uppercase()
}

fn words(text: &[u8]) -> Vec<String> {
    text.split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty())
        .map(capitals)
        .collect()
}

/// Removes everything that is unsafe for a log line.
fn clean(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.trim()
        .chars()
        .filter(|letter| !letter.is_control())
        .take(TEXT_LENGTH)
        .collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use proptest::prelude::*;

    fn response(text: &str, literals: &[&str]) -> Result<Response, NotAResponse> {
        read(&Frame {
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
        let Ok(Response::Untagged(status)) = response("* OK [UIDVALIDITY 7] \u{7} x\ry", &[])
        else {
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
}
