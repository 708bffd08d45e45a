//! The text of adjacent encoded words of one charset: their octets are joined before they are decoded.

use mail_parser::decoders::charsets::map::charset_decoder;

use super::{Encoding, Word};

/// The text of adjacent words. Words of different charsets are decoded separately.
pub(super) fn words_text(words: &[Word<'_>]) -> String {
    let same = |one: &Word<'_>, other: &Word<'_>| letters(one.charset).eq(letters(other.charset));
    words.chunk_by(same).map(charset_text).collect()
}

/// A charset's name, normalized for comparison: `UTF8` is `utf-8`.
fn letters(charset: &[u8]) -> impl Iterator<Item = u8> {
    let letters = charset.iter().filter(|byte| !matches!(byte, b'-' | b'_'));
    letters.map(u8::to_ascii_lowercase)
}

/// The text of words of one charset.
fn charset_text(words: &[Word<'_>]) -> String {
    let charset = words.first().map_or(&b""[..], |word| word.charset);
    let text = |cuts| in_charset(charset, &octets(words, cuts));
    if let Some(cuts) = cuts(words) {
        return text(cuts);
    }
    // Each word may lack its padding, or the words share a group of four letters.
    let (padding, within) = (text(Cuts::Padding), text(Cuts::Within));
    if is_clean(&padding) || !is_clean(&within) {
        padding
    } else {
        within
    }
}

fn is_clean(text: &str) -> bool {
    !text.contains(|letter: char| letter == char::REPLACEMENT_CHARACTER || letter.is_control())
}

/// How a base64 word ends if its length isn't a multiple of four.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cuts {
    /// Its padding is missing.
    Padding,
    /// The next word continues the group.
    Within,
}

/// How the words are cut; `None` if it is ambiguous.
fn cuts(words: &[Word<'_>]) -> Option<Cuts> {
    let mut is_unclear = false;
    for pair in words.windows(2) {
        let [word, next] = pair else { continue };
        if word.encoding != Encoding::B || next.encoding != Encoding::B {
            continue;
        }
        let data = word.data.trim_ascii_end();
        let sextets: Vec<u8> = data.iter().filter_map(|byte| sextet(*byte)).collect();
        let last = sextets.last().copied().unwrap_or_default();
        if data.ends_with(b"=") {
            continue;
        }
        let left = match sextets.len() % 4 {
            0 => continue,
            1 => true,
            2 => last & 0b1111 != 0,
            _ => last & 0b11 != 0,
        };
        if left {
            return Some(Cuts::Within);
        }
        is_unclear = true;
    }
    (!is_unclear).then_some(Cuts::Padding)
}

/// The octets of words of one charset.
fn octets(words: &[Word<'_>], cuts: Cuts) -> Vec<u8> {
    let mut octets = Vec::new();
    let same = |one: &Word<'_>, other: &Word<'_>| one.encoding == other.encoding;
    for words in words.chunk_by(same) {
        if words
            .first()
            .is_some_and(|word| word.encoding == Encoding::Q)
        {
            let data: Vec<&[u8]> = words.iter().map(|word| word.data).collect();
            octets.extend(q_octets(&data.concat()));
            continue;
        }
        let mut group = Group::default();
        for word in words {
            for byte in word.data {
                match sextet(*byte) {
                    Some(sextet) => octets.extend(group.next(sextet)),
                    None if *byte == b'=' => group = Group::default(),
                    None => {}
                }
            }
            if cuts == Cuts::Padding {
                group = Group::default();
            }
        }
    }
    octets
}

/// Decodes Q (§4.2); a `=` without two digits after it stands for itself.
fn q_octets(data: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(data.len());
    let mut rest = data;
    while let [first, behind @ ..] = rest {
        rest = behind;
        let digit = |place: usize| char::from(*behind.get(place)?).to_digit(16);
        match (first, digit(0), digit(1)) {
            (b'=', Some(high), Some(low)) => {
                octets.extend(u8::try_from(high * 16 + low));
                rest = &behind[2..];
            }
            (b'_', ..) => octets.push(b' '),
            (b'\r' | b'\n', ..) => {}
            (byte, ..) => octets.push(*byte),
        }
    }
    octets
}

/// Base64 bits that don't complete an octet yet.
#[derive(Debug, Default)]
struct Group {
    bits: u16,
    count: u8,
}

impl Group {
    /// The octet that this letter completes.
    fn next(&mut self, sextet: u8) -> Option<u8> {
        self.bits = self.bits << 6 | u16::from(sextet);
        self.count += 6;
        if self.count < 8 {
            return None;
        }
        self.count -= 8;
        let octet = u8::try_from(self.bits >> self.count & 0xff).ok();
        self.bits &= (1 << self.count) - 1;
        octet
    }
}

/// The six bits of a letter of base64.
pub(super) fn sextet(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// Decodes octets in a charset; UTF-8 if the charset is unknown.
fn in_charset(charset: &[u8], octets: &[u8]) -> String {
    match charset_decoder(charset) {
        Some(decode) if charset.to_ascii_lowercase().starts_with(b"iso-2022") => {
            decode(&without_returns(octets))
        }
        Some(decode) => decode(octets),
        None => String::from_utf8_lossy(octets).into_owned(),
    }
}

/// ISO 2022 octets without escape sequences that are followed directly by another one: decoders reject an escape
/// sequence without a character after it.
fn without_returns(octets: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(octets.len());
    let mut rest = octets;
    while let [first, behind @ ..] = rest {
        if let [0x1b, b'(', b'B' | b'J', 0x1b, ..] = rest {
            rest = &rest[3..];
            continue;
        }
        kept.push(*first);
        rest = behind;
    }
    kept
}
