//! How a part's content is encoded (RFC 2045 §6), read as leniently as mail programs read it.

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{Encoding, MessagePart};

use crate::mail::verdict::Failure;

/// The encoding that a Content-Transfer-Encoding field declares.
///
/// # Errors
///
/// A permanent failure if MIME has none of that name.
pub(super) fn declared(field: &[u8]) -> Result<Encoding, Failure> {
    let value = field.splitn(2, |octet| *octet == b':').nth(1);
    let value = String::from_utf8_lossy(value.unwrap_or_default());
    // Quotes, a comment or a parameter make it invalid (RFC 2045 §6.1), but other programs accept it.
    let word = value.split([';', '(']).next().unwrap_or_default();
    let word = word.replace('"', "").trim().to_ascii_lowercase();
    match word.as_str() {
        "base64" => Ok(Encoding::Base64),
        "quoted-printable" => Ok(Encoding::QuotedPrintable),
        "" | "7bit" | "8bit" | "binary" => Ok(Encoding::None),
        word => {
            let word: String = word
                .chars()
                .filter(char::is_ascii_graphic)
                .take(40)
                .collect();
            Err(Failure::own(format!(
                "5.6.3 The message is too large to go to Microsoft Graph whole, and in pieces what it has in the \
                 encoding {word} would not arrive as such: encode it in base64, or make the message smaller than 3 MB"
            )))
        }
    }
}

/// The field that declares an encoding; empty if the content is as it is.
pub(super) const fn field(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::None => "",
        Encoding::Base64 => "Content-Transfer-Encoding: base64\r\n",
        Encoding::QuotedPrintable => "Content-Transfer-Encoding: quoted-printable\r\n",
    }
}

/// Encoded content without the faults that other programs tolerate; `None` if it has none.
///
/// # Errors
///
/// A permanent failure if it can't be decoded.
pub(super) fn plain(encoding: Encoding, content: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
    match encoding {
        Encoding::None => Ok(None),
        Encoding::Base64 => plain_base64(content),
        Encoding::QuotedPrintable => Ok(plain_quoted_printable(content)),
    }
}

/// The decoded content, if it is free of faults.
pub(super) fn decoded(encoding: Encoding, content: &[u8]) -> Option<Vec<u8>> {
    match encoding {
        Encoding::None => Some(content.to_vec()),
        Encoding::Base64 => base64_decode(content),
        Encoding::QuotedPrintable => quoted_printable_decode(content),
    }
}

/// A part's decoded octets in a message; a text's are in its character set.
pub(super) fn octets(mime: &[u8], part: &MessagePart<'_>) -> Option<Vec<u8>> {
    let (start, end) = (part.offset_body as usize, part.offset_end as usize);
    decoded(part.encoding, mime.get(start..end).unwrap_or_default())
}

/// The error for content that isn't in its declared encoding.
pub(super) fn not_decoded() -> Failure {
    Failure::own(
        "5.6.0 The message can't be parsed: what it has in base64 or quoted-printable isn't",
    )
}

/// Base64 without foreign characters, which are to be ignored (RFC 2045 §6.8), and with all of its padding; `None` if it
/// is so already.
fn plain_base64(content: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
    let is_letter = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'+' | b'/');
    let (mut letters, mut padding, mut is_plain) = (0_usize, 0_usize, true);
    for octet in content {
        match octet {
            b'\r' | b'\n' => {}
            b'=' => padding += 1,
            // Something unknown follows.
            _ if is_letter(octet) && padding > 0 => return Err(not_decoded()),
            _ if is_letter(octet) => letters += 1,
            _ => is_plain = false,
        }
    }
    let wanted = match letters % 4 {
        1 => return Err(not_decoded()),
        over => (4 - over) % 4,
    };
    if is_plain && padding == wanted {
        return Ok(None);
    }
    let mut plain: Vec<u8> = content.iter().copied().filter(is_letter).collect();
    plain.resize(letters + wanted, b'=');
    Ok(Some(plain))
}

/// Quoted-printable with only valid uses of `=` (RFC 2045 §6.7); `None` if it is so already. A lone `=` is a letter. A
/// soft break at the end is removed: the parser would drop the text before it.
fn plain_quoted_printable(content: &[u8]) -> Option<Vec<u8>> {
    let (mut plain, mut done) = (Vec::new(), 0);
    for equals in memchr::memchr_iter(b'=', content) {
        let rest = &content[equals + 1..];
        let blanks = rest
            .iter()
            .take_while(|octet| matches!(octet, b' ' | b'\t'))
            .count();
        let (end, with): (usize, &[u8]) = match &rest[blanks..] {
            [] => (content.len(), b""),
            [b'\r', b'\n', ..] | [b'\n', ..] if blanks > 0 => (equals + 1 + blanks, b"="),
            [b'\r', b'\n', ..] | [b'\n', ..] => continue,
            _ if matches!(rest, [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()) => {
                continue;
            }
            _ => (equals + 1, b"=3D"),
        };
        let before = &content[done..equals];
        // A blank that now ends the line must be encoded, or it would be dropped.
        let (before, with): (_, &[u8]) = match before.split_last() {
            Some((b' ', others)) if with.is_empty() => (others, b"=20"),
            Some((b'\t', others)) if with.is_empty() => (others, b"=09"),
            _ => (before, with),
        };
        plain.extend_from_slice(before);
        plain.extend_from_slice(with);
        done = end;
    }
    (done > 0).then(|| {
        plain.extend_from_slice(&content[done..]);
        plain
    })
}
