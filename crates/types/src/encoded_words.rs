//! Decodes encoded words (RFC 2047). Adjacent words of one charset are joined before decoding, since some programs
//! split them in the middle of a character. All received headers are decoded here.

mod text;

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use self::text::{sextet, words_text};

/// Maximum length of a charset with its language, in octets.
const CHARSET: usize = 64;

/// The text of a header's value, which may be folded. A fold, with the blanks around it, is one space; there is none
/// between encoded words (§6.2), and none at either end.
#[must_use]
pub fn decoded(value: &[u8]) -> String {
    let value = unfolded(value);
    let mut text = String::new();
    for piece in Pieces::of(&value) {
        match piece {
            Piece::Plain(plain) => text.push_str(&String::from_utf8_lossy(plain)),
            Piece::Words(words) => text.push_str(&words_text(&words)),
        }
    }
    text.trim_matches([' ', '\t']).to_owned()
}

/// The header, or a value of it, with adjacent encoded words joined into one, for a parser that decodes each
/// separately.
#[must_use]
pub fn joined(header: &[u8]) -> Cow<'_, [u8]> {
    let mut joined: Option<Vec<u8>> = None;
    let mut done = 0;
    for piece in Pieces::of(header) {
        let Piece::Words(words) = piece else { continue };
        let (Some(first), Some(last)) = (words.first(), words.last()) else {
            continue;
        };
        if words.len() > 1 {
            let joined = joined.get_or_insert_default();
            joined.extend_from_slice(&header[done..first.begin]);
            let word = format!("=?utf-8?B?{}?=", STANDARD.encode(words_text(&words)));
            joined.extend_from_slice(word.as_bytes());
            done = last.end;
        }
    }
    match joined {
        Some(mut joined) => {
            joined.extend_from_slice(&header[done..]);
            Cow::Owned(joined)
        }
        None => Cow::Borrowed(header),
    }
}

/// Each line end, with the blanks around it, becomes a space.
fn unfolded(value: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr2(b'\r', b'\n', value).is_none() {
        return Cow::Borrowed(value);
    }
    let mut text = Vec::with_capacity(value.len());
    for line in value.split(|byte| matches!(byte, b'\r' | b'\n')) {
        let line = line.trim_ascii();
        if !line.is_empty() && !text.is_empty() {
            text.push(b' ');
        }
        text.extend_from_slice(line);
    }
    Cow::Owned(text)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Q,
    B,
}

/// An encoded word and its position.
#[derive(Debug, Clone, Copy)]
struct Word<'a> {
    charset: &'a [u8],
    encoding: Encoding,
    data: &'a [u8],
    begin: usize,
    end: usize,
}

/// A part of a value.
enum Piece<'a> {
    Plain(&'a [u8]),
    /// Encoded words separated only by white space.
    Words(Vec<Word<'a>>),
}

/// Reads a value piece by piece, in one pass.
struct Pieces<'a> {
    value: &'a [u8],
    at: usize,
    /// The word that ended the plain text before it.
    next: Option<Word<'a>>,
}

impl<'a> Pieces<'a> {
    fn of(value: &'a [u8]) -> Self {
        let (at, next) = (0, None);
        Self { value, at, next }
    }

    /// The first encoded word at or after `at`.
    fn word_from(&self, mut at: usize) -> Option<Word<'a>> {
        loop {
            at += memchr::memmem::find(self.value.get(at..)?, b"=?")?;
            if let Some(word) = word(self.value, at) {
                return Some(word);
            }
            at += 2;
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.at >= self.value.len() {
            return None;
        }
        let begin = self.at;
        let Some(first) = self.next.take().or_else(|| self.word_from(begin)) else {
            self.at = self.value.len();
            return Some(Piece::Plain(&self.value[begin..]));
        };
        if first.begin > begin {
            (self.at, self.next) = (first.begin, Some(first));
            return Some(Piece::Plain(&self.value[begin..first.begin]));
        }
        self.at = first.end;
        let mut words = vec![first];
        loop {
            let rest = &self.value[self.at..];
            let gap = rest.len() - rest.trim_ascii_start().len();
            let Some(word) = word(self.value, self.at + gap) else {
                return Some(Piece::Words(words));
            };
            self.at = word.end;
            words.push(word);
        }
    }
}

/// The encoded word that begins at `begin`. Blanks and `?` within it are accepted, as some programs write them.
fn word(value: &[u8], begin: usize) -> Option<Word<'_>> {
    let rest = value.get(begin..)?.strip_prefix(b"=?")?;
    let length = (rest.iter().take(CHARSET + 1)).position(|byte| *byte == b'?')?;
    let (charset, rest) = rest.split_at(length);
    // A language may follow (RFC 2231 §5).
    let charset = charset.split(|byte| *byte == b'*').next()?;
    if charset.is_empty() || !charset.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    let (encoding, data) = match rest {
        [b'?', b'Q' | b'q', b'?', data @ ..] => (Encoding::Q, data),
        [b'?', b'B' | b'b', b'?', data @ ..] => (Encoding::B, data),
        _ => return None,
    };
    let length = end_of_data(data, encoding)?;
    let end = value.len() - data.len() + length + 2;
    Some(Word {
        charset,
        encoding,
        data: &data[..length],
        begin,
        end,
    })
}

/// The position of the closing `?=`. The data can't contain the start of another word, so nothing is scanned twice.
fn end_of_data(data: &[u8], encoding: Encoding) -> Option<usize> {
    for (place, byte) in data.iter().enumerate() {
        match (byte, encoding) {
            (b'?', _) if data.get(place + 1) == Some(&b'=') => return Some(place),
            (b'=', _) if begins_another(&data[place..]) => return None,
            (byte, Encoding::B) if sextet(*byte).is_none() && !is_filler(*byte) => return None,
            _ => {}
        }
    }
    None
}

/// Whether this is `=?`, and not `=` before the end.
fn begins_another(data: &[u8]) -> bool {
    data.starts_with(b"=?") && !data.starts_with(b"=?=")
}

/// Whether base64 may contain this byte in addition to its alphabet.
fn is_filler(byte: u8) -> bool {
    byte == b'=' || byte.is_ascii_whitespace()
}

#[cfg(test)]
mod tests;
