//! Parses the parts of a server's responses that are needed here. Everything else is [`Response::Other`] and not parsed
//! further; nothing is parsed recursively.

#[cfg(test)]
mod tests;

use super::super::framing::{Frame, NotAResponse};
use super::reader::{Reader, Value, capitals, clean, number, words};
use super::{Condition, Fetched, Listed, Response, Status};

/// Parses a response.
pub(in crate::mail::imap) fn parse(frame: &Frame) -> Result<Response, NotAResponse> {
    let mut reader = Reader::new(frame);
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

impl Reader<'_> {
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
}
