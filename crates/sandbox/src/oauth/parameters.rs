//! The parameters of an OAuth request: form-encoded, each at most once, empty ones treated as omitted (RFC 6749 §3.1
//! and §3.2).

use std::collections::{HashMap, HashSet};

/// Longest address, in bytes: RFC 5321 §4.5.3.1.3 less the brackets.
const ADDRESS_MAX: usize = 254;

/// Decoded parameters.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    values: HashMap<String, String>,
    repeated: HashSet<String>,
}

/// A parameter is repeated.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repeated;

impl Parameters {
    /// Decodes a query or a form body.
    pub(super) fn parse(encoded: &[u8]) -> Self {
        let mut parameters = Self::default();
        for (name, value) in url::form_urlencoded::parse(encoded) {
            if value.is_empty() {
                continue;
            }
            let name = name.into_owned();
            if parameters
                .values
                .insert(name.clone(), value.into_owned())
                .is_some()
            {
                parameters.repeated.insert(name);
            }
        }
        parameters
    }

    /// The value of `name`.
    pub(super) fn get(&self, name: &str) -> Result<Option<&str>, Repeated> {
        if self.repeated.contains(name) {
            return Err(Repeated);
        }
        Ok(self.values.get(name).map(String::as_str))
    }
}

/// Whether `scope` is a list of scope tokens (RFC 6749 §3.3).
pub(super) fn is_scope(scope: &str) -> bool {
    scope.split(' ').all(|token| {
        !token.is_empty()
            && token
                .bytes()
                .all(|byte| matches!(byte, 0x21 | 0x23..=0x5B | 0x5D..=0x7E))
    })
}

/// Whether `text` can be a `code_challenge` with method S256, or a `code_verifier` if `longest` is 128 (RFC 7636 §4.1,
/// §4.2).
pub(super) fn is_pkce(text: &str, longest: usize) -> bool {
    (43..=longest).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

/// Whether `text` can be a mailbox's address: close enough for a sandbox.
pub(super) fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    !local.is_empty()
        && !local.contains('@')
        && !domain.is_empty()
        && text.len() <= ADDRESS_MAX
        && !text.contains(|character: char| {
            character.is_whitespace() || character.is_control() || "<>\",".contains(character)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoded_single_and_repeated() {
        let parameters = Parameters::parse(b"a=1+2%40&b=&c=1&c=2&d=&d=4");
        assert_eq!(parameters.get("a"), Ok(Some("1 2@")));
        assert_eq!(parameters.get("b"), Ok(None));
        assert_eq!(parameters.get("c"), Err(Repeated));
        assert_eq!(parameters.get("d"), Ok(Some("4")));
    }

    #[test]
    fn forms() {
        for (scope, valid) in [
            ("a b:c/d", true),
            ("a", true),
            ("a  b", false),
            ("a\"", false),
            ("ä", false),
        ] {
            assert_eq!(is_scope(scope), valid, "{scope}");
        }
        for (text, valid) in [(42, false), (43, true), (128, true), (129, false)] {
            assert_eq!(is_pkce(&"a".repeat(text), 128), valid, "{text}");
        }
        assert!(!is_pkce(&"+".repeat(43), 43));
        for (text, valid) in [
            ("ada@sandbox.example", true),
            ("jörg@x", true),
            ("ada", false),
            ("@x", false),
            ("a@", false),
            ("a@b@c", false),
            ("a b@c", false),
            ("<a@b>", false),
            ("a\n@b", false),
        ] {
            assert_eq!(is_address(text), valid, "{text}");
        }
        assert!(!is_address(&format!("{}@x", "a".repeat(300))));
    }
}
