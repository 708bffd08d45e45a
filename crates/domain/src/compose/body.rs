//! The text or HTML of a message: unencoded if it is ASCII in short lines, else in the shortest encoding.

use super::base64_lines::Base64Lines;
use super::pieces::Pieces;

/// Longest line that is sent unencoded, without its line end (RFC 5322 §2.1.1).
const LONGEST_LINE: usize = 998;

/// Characters of a quoted-printable line (RFC 2045 §6.7).
const QUOTED_LINE: usize = 76;

/// The encoding of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    SevenBit,
    QuotedPrintable,
    Base64,
}

/// The results of scanning a text.
#[derive(Debug)]
struct Measure {
    encoding: Encoding,
    /// Octets with CRLF at every line end, before encoding.
    length: usize,
    /// Octets that quoted-printable writes as three.
    escaped: usize,
}

/// Writes the headers and the content of a text part.
pub(super) fn write(subtype: &str, text: &str, pieces: &mut Pieces) {
    let measure = measure(text);
    let encoding = match measure.encoding {
        Encoding::SevenBit => "7bit",
        Encoding::QuotedPrintable => "quoted-printable",
        Encoding::Base64 => "base64",
    };
    pieces.push(&format!(
        "Content-Type: text/{subtype}; charset=utf-8\r\n\
         Content-Transfer-Encoding: {encoding}\r\n\r\n"
    ));
    pieces.push_piece(match measure.encoding {
        Encoding::SevenBit => in_clear(text, &measure),
        Encoding::QuotedPrintable => quoted_printable(text, &measure),
        Encoding::Base64 => base64(text, &measure),
    });
}

fn measure(text: &str) -> Measure {
    let (mut length, mut escaped, mut longest) = (0, 0, 0);
    for (index, line) in lines(text).enumerate() {
        length += line.len() + if index == 0 { 0 } else { 2 };
        longest = longest.max(line.len());
        escaped += line.bytes().filter(|byte| !is_literal(*byte)).count();
    }
    let encoding = if longest <= LONGEST_LINE && text.is_ascii() {
        Encoding::SevenBit
    } else if escaped * 6 <= length {
        // Two extra octets for each, against one extra for every three.
        Encoding::QuotedPrintable
    } else {
        Encoding::Base64
    };
    Measure {
        encoding,
        length,
        escaped,
    }
}

/// The lines of a text, with any line ends: a bare CR counts as one too, since some servers accept it as one, which
/// forgers exploit.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let here = rest?;
        let Some(end) = memchr::memchr2(b'\r', b'\n', here.as_bytes()) else {
            rest = None;
            return Some(here);
        };
        let after = &here[end..];
        let length = if after.starts_with("\r\n") { 2 } else { 1 };
        rest = Some(&after[length..]);
        Some(&here[..end])
    })
}

fn in_clear(text: &str, measure: &Measure) -> Vec<u8> {
    let mut content = Vec::with_capacity(measure.length);
    for (index, line) in lines(text).enumerate() {
        if index > 0 {
            content.extend_from_slice(b"\r\n");
        }
        content.extend_from_slice(line.as_bytes());
    }
    content
}

fn base64(text: &str, measure: &Measure) -> Vec<u8> {
    let mut encoded = Base64Lines::for_length(measure.length);
    for (index, line) in lines(text).enumerate() {
        if index > 0 {
            encoded.push(b"\r\n");
        }
        encoded.push(line.as_bytes());
    }
    encoded.finish()
}

fn quoted_printable(text: &str, measure: &Measure) -> Vec<u8> {
    let unbroken = measure.length + 2 * measure.escaped;
    let mut content = Vec::with_capacity(unbroken + unbroken / 20);
    for (index, line) in lines(text).enumerate() {
        if index > 0 {
            content.extend_from_slice(b"\r\n");
        }
        quote_line(line.as_bytes(), &mut content);
    }
    content
}

fn quote_line(line: &[u8], content: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut column = 0;
    for (position, &byte) in line.iter().enumerate() {
        let is_last = position + 1 == line.len();
        // White space at the end of a line would be lost in transit.
        let literal = is_literal(byte) && !(is_last && matches!(byte, b' ' | b'\t'));
        let width = if literal { 1 } else { 3 };
        // The last column is for the `=` of a soft line break.
        if column + width > QUOTED_LINE - usize::from(!is_last) {
            content.extend_from_slice(b"=\r\n");
            column = 0;
        }
        if literal {
            content.push(byte);
        } else {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            content.extend_from_slice(&[b'=', DIGITS[high], DIGITS[low]]);
        }
        column += width;
    }
}

fn is_literal(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t') && byte != b'='
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_end_becomes_crlf() {
        for (text, expected) in [
            ("a\nb\rc\r\nd", "a\r\nb\r\nc\r\nd"),
            ("x\r.\r\ny", "x\r\n.\r\ny"),
            ("\r\r\n\n", "\r\n\r\n\r\n"),
            ("", ""),
        ] {
            let written = in_clear(text, &measure(text));
            assert_eq!(String::from_utf8_lossy(&written), expected, "{text:?}");
        }
    }

    #[test]
    fn the_shortest_encoding_is_chosen() {
        let long = "x".repeat(999);
        for (text, expected) in [
            ("plain\ntext", Encoding::SevenBit),
            (&long[..998], Encoding::SevenBit),
            (&long, Encoding::QuotedPrintable),
            (
                "Grüße aus der Stadt, wo heute alles gut ist",
                Encoding::QuotedPrintable,
            ),
            ("日本語", Encoding::Base64),
        ] {
            assert_eq!(measure(text).encoding, expected, "{text}");
        }
    }

    #[test]
    fn quoted_lines_are_short_and_keep_their_last_space() {
        for (line, expected) in [
            ("a=b ü ", "a=3Db =C3=BC=20".to_owned()),
            (&"x".repeat(76), "x".repeat(76)),
            (
                &"x".repeat(77),
                format!("{}=\r\n{}", "x".repeat(75), "x".repeat(2)),
            ),
            (
                &format!("{}ü", "x".repeat(73)),
                format!("{}=\r\n=C3=BC", "x".repeat(73)),
            ),
        ] {
            let mut content = Vec::new();
            quote_line(line.as_bytes(), &mut content);
            assert_eq!(String::from_utf8_lossy(&content), expected);
        }
    }
}
