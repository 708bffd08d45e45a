//! An email address with a display name, as a sender is usually written: `Ada <ada@example.com>` (RFC 5322 §3.4,
//! name-addr). Comments and groups are not supported.

use super::display_name::{AT_SIGNS, holds_another};
use super::email_address::{EmailAddress, InvalidEmailAddress};

/// Longest name, in characters.
const NAME_LENGTH: usize = 255;

/// Characters that a name may contain only in quotes (RFC 5322 §3.2.3, specials), except for the dot, which is commonly
/// left unquoted.
const SPECIALS: &str = "()<>[]:;@\\,\"";

/// Why a text is not a named address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNamedAddress {
    /// The address itself.
    #[error(transparent)]
    Address(#[from] InvalidEmailAddress),
    /// The name has characters that need quoting, or a control character, or an unclosed quote.
    #[error("the name before the address isn't valid; put it in quotes if it holds specials")]
    Name,
    /// The name has an `@`, and can't be quoted in the message.
    #[error(
        "a name with an @ in it may hold printable ASCII alone, with single spaces, since readers could \
         take it for the address"
    )]
    NameLikeAddress,
    /// The name contains an address different from the one after it.
    #[error("the name holds an address other than the one behind it")]
    NameOfAnother,
    /// The name is too long.
    #[error("the name before the address is longer than 255 characters")]
    NameTooLong,
}

/// An address with its display name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedAddress {
    /// The name, without quotes.
    pub name: Option<String>,
    /// The address.
    pub address: EmailAddress,
}

impl NamedAddress {
    /// Parses `ada@example.com`, `Ada <ada@example.com>` or `"Lovelace, Ada" <ada@example.com>`.
    pub fn parse(text: &str) -> Result<Self, InvalidNamedAddress> {
        // No domain ends with this.
        let Some(inside) = text.strip_suffix('>') else {
            let address = EmailAddress::parse(text)?;
            return Ok(Self {
                name: None,
                address,
            });
        };
        let (name, address) = if let Some(quoted) = inside.strip_prefix('"') {
            unquote(quoted)?
        } else {
            let (name, address) = inside.split_once('<').ok_or(InvalidEmailAddress::Form)?;
            if name.contains(|letter| SPECIALS.contains(letter)) {
                return Err(InvalidNamedAddress::Name);
            }
            (name.to_owned(), address)
        };
        if name.contains(char::is_control) {
            return Err(InvalidNamedAddress::Name);
        }
        let name = name.trim();
        if name.chars().count() > NAME_LENGTH {
            return Err(InvalidNamedAddress::NameTooLong);
        }
        let address = EmailAddress::parse(address)?;
        // Other names would be encoded (RFC 2047), and some mail clients decode before they look for the address.
        let is_quoted = name.bytes().all(|byte| matches!(byte, b' '..=b'~'))
            && !name.contains("=?")
            && !name.contains("  ");
        if holds_another(name, &address) {
            return Err(InvalidNamedAddress::NameOfAnother);
        }
        if name.contains(AT_SIGNS) && !is_quoted {
            return Err(InvalidNamedAddress::NameLikeAddress);
        }
        Ok(Self {
            name: (!name.is_empty()).then(|| name.to_owned()),
            address,
        })
    }
}

/// The text in the quotes, whose opening one has been removed, and the text after `<`.
fn unquote(quoted: &str) -> Result<(String, &str), InvalidNamedAddress> {
    let mut name = String::new();
    let mut letters = quoted.chars();
    loop {
        match letters.next().ok_or(InvalidNamedAddress::Name)? {
            '"' => break,
            '\\' => name.push(letters.next().ok_or(InvalidNamedAddress::Name)?),
            letter => name.push(letter),
        }
    }
    let address = letters.as_str().trim_start_matches(' ').strip_prefix('<');
    Ok((name, address.ok_or(InvalidNamedAddress::Name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(Option<String>, String), InvalidNamedAddress> {
        NamedAddress::parse(text).map(|named| (named.name, named.address.to_string()))
    }

    #[test]
    fn names_and_addresses() {
        for (text, name, address) in [
            ("ada@example.com", None, "ada@example.com"),
            ("<ada@example.com>", None, "ada@example.com"),
            ("Ada <ada@example.com>", Some("Ada"), "ada@example.com"),
            ("Ada<ada@example.com>", Some("Ada"), "ada@example.com"),
            (
                "Ada K. Lovelace  <ada@example.com>",
                Some("Ada K. Lovelace"),
                "ada@example.com",
            ),
            (
                "Jörg ü <ada@example.com>",
                Some("Jörg ü"),
                "ada@example.com",
            ),
            (
                r#""Lovelace, Ada" <ada@example.com>"#,
                Some("Lovelace, Ada"),
                "ada@example.com",
            ),
            (
                r#""A \"B\" \\ <c>" <ada@example.com>"#,
                Some(r#"A "B" \ <c>"#),
                "ada@example.com",
            ),
            (
                r#""ada@example.com" <Ada@example.com>"#,
                Some("ada@example.com"),
                "Ada@example.com",
            ),
            (
                r#""Ada @ Work" <ada@example.com>"#,
                Some("Ada @ Work"),
                "ada@example.com",
            ),
            (r#""" <ada@example.com>"#, None, "ada@example.com"),
            (r#""a b"@example.com"#, None, r#""a b"@example.com"#),
            (
                r#"Ada <"a<b"@example.com>"#,
                Some("Ada"),
                r#""a<b"@example.com"#,
            ),
        ] {
            let expected = Ok((name.map(str::to_owned), address.to_owned()));
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_neither() {
        for text in [
            "",
            "Ada",
            "Ada ada@example.com",
            "Ada <ada@example.com",
            "Ada ada@example.com>",
            "Ada <ada>",
            "Ada <>",
            "Ada <ada@example.com>, Bob <bob@example.com>",
            "ada@example.com, <bob@example.com>",
            "Lovelace, Ada <ada@example.com>",
            "Ada (Countess) <ada@example.com>",
            "Ada\r\nBcc: eve@example.com <ada@example.com>",
            "Ada\t<ada@example.com>",
            "\"Ada\r\n\" <ada@example.com>",
            r#""Ada <ada@example.com>"#,
            r#""Ada\"#,
            r#""Ada" Lovelace <ada@example.com>"#,
            r#""Ada"@x <ada@example.com>"#,
            "Ada <ada@example.com> ",
            r#""eve@example.org" <ada@example.com>"#,
            r#""Eve <eve@example.org>" <ada@example.com>"#,
            "eve\u{ff20}example.org <ada@example.com>",
            r#""Jörg @ Work" <ada@example.com>"#,
            r#""x  ada@example.com" <ada@example.com>"#,
            r#""=?utf-8?q?x?= ada@example.com" <ada@example.com>"#,
            &format!("{} <ada@example.com>", "x".repeat(256)),
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
