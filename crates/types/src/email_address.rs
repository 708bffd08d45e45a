//! An email address as SMTP defines it: RFC 5321's Mailbox, in UTF-8 as RFC 6531 allows. Display names and the header
//! forms of RFC 5322 are not parsed here.

mod ascii;
mod comparison;

use std::fmt::{Display, Formatter};
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Serialize;

pub use self::comparison::comparison_key;
use super::plain_name::is_invisible;

/// Longest local part, in octets (RFC 5321 §4.5.3.1.1).
const MAXIMUM_LOCAL_PART: usize = 64;

/// Longest domain, in octets (RFC 5321 §4.5.3.1.2).
const MAXIMUM_DOMAIN: usize = 255;

/// Longest address, in octets: a path of 256 less its angle brackets (RFC 5321 §4.5.3.1.3).
const MAXIMUM_ADDRESS: usize = 254;

/// Longest ASCII label, in octets (RFC 1035 §2.3.4). A U-label is longer than the A-label it stands for, so only the
/// domain's limit applies to it.
const MAXIMUM_LABEL: usize = 63;

/// Why a text is not an email address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEmailAddress {
    /// The `@` is missing.
    #[error("an email address has the form name@domain")]
    Form,
    /// More than 254 octets.
    #[error("the email address is longer than 254 octets")]
    TooLong,
    /// The part before the `@` is empty, or has characters that need quoting.
    #[error("the part before the @ isn't valid; put it in quotes if it holds spaces or specials")]
    LocalPart,
    /// The part before the `@` has more than 64 octets.
    #[error("the part before the @ is longer than 64 octets")]
    LocalPartTooLong,
    /// The part after the `@` is neither a domain nor an address literal.
    #[error("the part after the @ isn't a valid domain")]
    Domain,
}

/// A valid email address, spelled as it was given.
///
/// Equality and hashing are by spelling; [`Self::same_mailbox`] compares as mail providers do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct EmailAddress(String);

impl EmailAddress {
    /// Parses a Mailbox (RFC 5321 §4.1.2, RFC 6531 §3.3); surrounding white space is not stripped. Two forms that the
    /// grammar forbids exist in practice, and are accepted: dots anywhere in an unquoted local part, which Japanese
    /// providers issued, and underscores in a domain.
    ///
    /// # Errors
    ///
    /// If the text isn't a Mailbox or exceeds a limit.
    pub fn parse(text: &str) -> Result<Self, InvalidEmailAddress> {
        if text.len() > MAXIMUM_ADDRESS {
            return Err(InvalidEmailAddress::TooLong);
        }
        // A domain can't contain an `@`, but a quoted local part can.
        let (local_part, domain) = text.rsplit_once('@').ok_or(InvalidEmailAddress::Form)?;
        if local_part.len() > MAXIMUM_LOCAL_PART {
            return Err(InvalidEmailAddress::LocalPartTooLong);
        }
        if !is_atoms(local_part) && !is_quoted_string(local_part) {
            return Err(InvalidEmailAddress::LocalPart);
        }
        let has_form = domain.is_ascii() || ascii::a_labels(domain).is_some();
        if !has_form || !is_domain(domain) && !is_address_literal(domain) {
            return Err(InvalidEmailAddress::Domain);
        }
        Ok(Self(text.to_owned()))
    }

    /// The whole address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the `@`, including quotes.
    #[must_use]
    pub fn local_part(&self) -> &str {
        self.0
            .rsplit_once('@')
            .map_or("", |(local_part, _)| local_part)
    }

    /// The part after the `@`: a domain, or an address literal with its brackets.
    #[must_use]
    pub fn domain(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(_, domain)| domain)
    }

    /// Whether it can only be read as an address: unquoted, as quotes can hold any sentence, and without invisible
    /// characters.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !self.0.starts_with('"') && !self.0.contains(is_invisible)
    }

    /// Whether it can be used without SMTPUTF8.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.0.is_ascii()
    }

    /// Whether both refer to the same mailbox: ASCII case is ignored, even in the local part, since no provider
    /// distinguishes it.
    #[must_use]
    pub fn same_mailbox(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }

    /// The address with ASCII letters in lower case: equal for two addresses if and only if [`Self::same_mailbox`]
    /// holds.
    #[must_use]
    pub fn lookup_key(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl Display for EmailAddress {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl AsRef<str> for EmailAddress {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Whether `text` is a Domain: letter-digit-hyphen labels (RFC 5321 §4.1.2), also with underscores, or U-labels
/// (RFC 6531 §3.3). Address literals are not.
#[must_use]
pub fn is_domain(text: &str) -> bool {
    text.len() <= MAXIMUM_DOMAIN && text.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let inside = |character: char| match character {
        '-' | '_' => true,
        // Full-width and half-width full stops, which IDNA treats as dots.
        '\u{3002}' | '\u{ff0e}' | '\u{ff61}' => false,
        _ if character.is_ascii() => character.is_ascii_alphanumeric(),
        _ => is_visible(character),
    };
    let fits = label.len() <= MAXIMUM_LABEL || !label.is_ascii();
    fits && !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.chars().all(inside)
}

/// `[192.0.2.1]` or `[IPv6:2001:db8::1]` (RFC 5321 §4.1.3). No other tag was ever registered.
fn is_address_literal(text: &str) -> bool {
    let Some(literal) = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    else {
        return false;
    };
    match literal.split_once(':') {
        Some((tag, address)) if tag.eq_ignore_ascii_case("IPv6") => {
            address.parse::<Ipv6Addr>().is_ok()
        }
        Some(_) => false,
        None => literal.parse::<Ipv4Addr>().is_ok(),
    }
}

/// Atoms, with dots anywhere.
fn is_atoms(text: &str) -> bool {
    (text.split('.').flat_map(str::chars)).all(is_atext) && text.contains(|letter| letter != '.')
}

/// atext (RFC 5322 §3.2.3), and UTF-8 beyond ASCII (RFC 6531 §3.3).
fn is_atext(character: char) -> bool {
    if character.is_ascii() {
        character.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(character)
    } else {
        is_visible(character)
    }
}

fn is_quoted_string(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('"') else {
        return false;
    };
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        let valid = match character {
            '"' => return characters.next().is_none(),
            '\\' => characters
                .next()
                .is_some_and(|quoted| matches!(quoted, ' '..='~')),
            ' '..='~' => true,
            _ => !character.is_ascii() && is_visible(character),
        };
        if !valid {
            return false;
        }
    }
    false
}

/// Excludes characters that RFC 6531's grammar allows although they hide or reorder text in logs and headers: C1
/// controls, Unicode spaces and line separators, bidirectional overrides.
fn is_visible(character: char) -> bool {
    !character.is_control()
        && !character.is_whitespace()
        && !matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests;
