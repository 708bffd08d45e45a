//! Reads the words, strings and lists of a response, one by one.

use super::super::framing::Frame;

/// The characters of a server's text that are kept.
const TEXT_LENGTH: usize = 500;

/// A value of an attribute.
pub(super) enum Value<'a> {
    String(Vec<u8>),
    Atom(&'a [u8]),
    Nothing,
}

pub(super) struct Reader<'a> {
    pub(super) rest: &'a [u8],
    literals: std::slice::Iter<'a, Vec<u8>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(frame: &'a Frame) -> Self {
        Self {
            rest: &frame.text,
            literals: frame.literals.iter(),
        }
    }

    /// Up to the next space, which is consumed too.
    pub(super) fn word(&mut self) -> &'a [u8] {
        let end = memchr::memchr(b' ', self.rest).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        word
    }

    pub(super) fn take(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    pub(super) fn spaces(&mut self) {
        while self.take(b' ').is_some() {}
    }

    /// Up to a space outside brackets, since `BODY[HEADER.FIELDS (TO)]` contains one.
    pub(super) fn attribute_name(&mut self) -> Option<&'a [u8]> {
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
    pub(super) fn value(&mut self) -> Option<Value<'a>> {
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

pub(super) fn number(word: &[u8]) -> Option<u32> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

pub(super) fn capitals(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_ascii_uppercase()
}

pub(super) fn words(text: &[u8]) -> Vec<String> {
    text.split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty())
        .map(capitals)
        .collect()
}

/// Removes everything that is unsafe for a log line.
pub(super) fn clean(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.trim()
        .chars()
        .filter(|letter| !letter.is_control())
        .take(TEXT_LENGTH)
        .collect()
}
