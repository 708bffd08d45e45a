//! Lenient decoding of transfer encodings and character sets.

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;

use crate::lines::Lines;

/// Decodes a body's transfer encoding; invalid parts stay as they are.
pub(crate) fn decoded(body: &[u8], encoding: &str) -> Vec<u8> {
    let decoded = match encoding.trim().to_ascii_lowercase().as_str() {
        "base64" => {
            let letters = body
                .iter()
                .copied()
                .filter(|byte| !byte.is_ascii_whitespace());
            base64_decode(&letters.collect::<Vec<u8>>())
        }
        "quoted-printable" => {
            let lines: Vec<&[u8]> = Lines::from(body, 0).map(|line| line.text).collect();
            quoted_printable_decode(&lines.join(&b'\n'))
        }
        _ => None,
    };
    decoded.unwrap_or_else(|| body.to_vec())
}

/// Decodes text in a character set; UTF-8 if it is unknown.
pub(crate) fn in_charset(text: &[u8], charset: Option<&str>) -> String {
    let is_utf8 = std::str::from_utf8(text).is_ok();
    let decoder = charset
        .filter(|name| !name.is_empty() && !is_utf8 || is_wide(name))
        .and_then(|name| charset_decoder(name.as_bytes()));
    match decoder {
        Some(decode) => decode(text),
        None => String::from_utf8_lossy(text).into_owned(),
    }
}

/// Character sets whose bytes may accidentally be valid UTF-8.
fn is_wide(charset: &str) -> bool {
    let charset = charset.to_ascii_lowercase();
    ["utf-16", "utf-7", "iso-2022"]
        .iter()
        .any(|name| charset.starts_with(name))
}

/// Tags that end a line.
const BREAKS: [&str; 14] = [
    "br", "p", "/p", "div", "/div", "tr", "/tr", "li", "/li", "/h1", "/h2", "pre", "/pre", "/table",
];

/// Elements whose content isn't shown.
const HIDDEN: [&str; 3] = ["style", "script", "head"];

/// The text of an HTML page, without tags.
pub(crate) fn without_tags(page: &str) -> String {
    let mut text = String::with_capacity(page.len() / 2);
    let mut hidden: Option<&str> = None;
    let mut rest = page;
    while let Some(open) = rest.find('<') {
        if hidden.is_none() {
            text.push_str(&rest[..open]);
        }
        rest = &rest[open + 1..];
        // A `<` without a `>` soon after is text.
        let Some(close) = rest.find('>') else {
            text.push('<');
            break;
        };
        let tag = rest[..close].trim_start();
        let name = tag
            .split([' ', '\t', '\r', '\n'])
            .next()
            .unwrap_or_default();
        let name = name
            .strip_suffix('/')
            .filter(|name| !name.is_empty())
            .unwrap_or(name);
        let is = |other: &&str| name.eq_ignore_ascii_case(other);
        match hidden {
            Some(element) => {
                if name
                    .strip_prefix('/')
                    .is_some_and(|name| name.eq_ignore_ascii_case(element))
                {
                    hidden = None;
                }
            }
            None if BREAKS.iter().any(is) => text.push('\n'),
            None => hidden = HIDDEN.iter().copied().find(|other| is(other)),
        }
        rest = &rest[close + 1..];
    }
    if hidden.is_none() {
        text.push_str(rest);
    }
    for (entity, letter) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#64;", "@"),
        ("&nbsp;", " "),
        ("&#160;", " "),
        ("&amp;", "&"),
    ] {
        if text.contains(entity) {
            text = text.replace(entity, letter);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings() {
        assert_eq!(decoded(b"YQ==\r\n", "Base64 "), b"a");
        assert_eq!(decoded(b"a=3Db=\rc", "quoted-printable"), b"a=bc");
        assert_eq!(decoded(b"a=ZZ", "quoted-printable"), b"a=ZZ");
        assert_eq!(decoded(b"x", "x-unknown"), b"x");
    }

    #[test]
    fn character_sets() {
        assert_eq!(in_charset(b"gr\xfc\xdfe", Some("ISO-8859-1")), "grüße");
        assert_eq!(in_charset("grüße".as_bytes(), Some("us-ascii")), "grüße");
        assert_eq!(in_charset(b"\xff", Some("x-none")), "\u{fffd}");
        assert_eq!(in_charset(b"\x1b$B$\"\x1b(B", Some("iso-2022-jp")), "あ");
    }

    #[test]
    fn pages() {
        let page = "<html><head><title>x</title></head><style>a{}</style><p>One &lt;a&#64;b&gt;<br/>two<b>!</b></html>";
        assert_eq!(without_tags(page).trim(), "One <a@b>\ntwo!");
        assert_eq!(without_tags("a < b"), "a < b");
    }
}
