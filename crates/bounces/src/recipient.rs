//! The address of a recipient, in the forms that servers use.

use mailgate_types::email_address::EmailAddress;

/// The address in a typed field (RFC 3464 §2.3.1, RFC 6533 §4): `rfc822; ada@example.com`.
pub(crate) fn typed(value: &str) -> Option<String> {
    let (kind, rest) = value.split_once(';').unwrap_or(("", value));
    if kind.trim().eq_ignore_ascii_case("utf-8") {
        return address(&unescaped(rest));
    }
    address(rest)
}

/// The only address in a text, which may be bracketed, quoted, or followed by a comment.
pub(crate) fn address(text: &str) -> Option<String> {
    let text = text.trim();
    let text = match (text.rfind('<'), text.rfind('>')) {
        (Some(open), Some(close)) if open < close => &text[open + 1..close],
        _ => text,
    };
    // A quoted local part may have spaces; a comment follows a space.
    let text = if text.starts_with('"') {
        text
    } else {
        text.split_whitespace().next()?
    };
    let text =
        text.trim_matches(|letter: char| letter.is_whitespace() || "<>'`[](),;:".contains(letter));
    // An SMTP path, or a link.
    let text = strip_prefix_ignoring_case(text, "smtp:");
    let text = strip_prefix_ignoring_case(text, "mailto:");
    EmailAddress::parse(text)
        .ok()
        .map(|address| address.as_str().to_owned())
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> &'a str {
    match text.get(..prefix.len()) {
        Some(start) if start.eq_ignore_ascii_case(prefix) => &text[prefix.len()..],
        _ => text,
    }
}

/// Decodes `\x{20AC}` (utf-8-addr-xtext, RFC 6533 §3).
fn unescaped(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\x{") {
        decoded.push_str(&rest[..at]);
        let escape = &rest[at + 3..];
        let letter = escape
            .bytes()
            .position(|byte| byte == b'}')
            .filter(|end| (1..=6).contains(end))
            .and_then(|end| {
                let number = u32::from_str_radix(escape.get(..end)?, 16).ok()?;
                Some((char::from_u32(number)?, end))
            });
        rest = if let Some((letter, end)) = letter {
            decoded.push(letter);
            &escape[end + 1..]
        } else {
            decoded.push_str("\\x{");
            escape
        };
    }
    decoded.push_str(rest);
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_addresses() {
        for (value, expected) in [
            ("rfc822;ada@example.com", Some("ada@example.com")),
            ("RFC822; <ada@example.com>", Some("ada@example.com")),
            ("rfc822; ada@example.com (Ada)", Some("ada@example.com")),
            (
                "rfc822; Ada Example <ada@example.com>",
                Some("ada@example.com"),
            ),
            ("ada@example.com", Some("ada@example.com")),
            ("rfc822; \"a b\"@example.com", Some("\"a b\"@example.com")),
            ("utf-8; gr\\x{FC}n@example.com", Some("grün@example.com")),
            ("utf-8; grün@example.com", Some("grün@example.com")),
            ("rfc822; 'ada+40@example.com'", Some("ada+40@example.com")),
            ("SMTP:ada@example.com", Some("ada@example.com")),
            ("system; root", None),
            ("LOCAL; <>", None),
            ("utf-8; \\x{110000}", None),
            ("", None),
        ] {
            assert_eq!(typed(value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn escapes() {
        assert_eq!(
            unescaped("a\\x{41}\\x{}\\x{20AC}\\x{zz}\\x{D800}\\x{1"),
            "aA\\x{}€\\x{zz}\\x{D800}\\x{1"
        );
    }
}
