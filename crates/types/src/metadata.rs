//! An app's own metadata on a message: a few strings under keys that it chooses, shown in the log and in the message's
//! events, and never to recipients.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// Maximum number of entries per message.
pub const MOST: usize = 20;

/// Longest key, in characters.
pub const KEY_LENGTH: usize = 40;

/// Longest value, in characters.
pub const VALUE_LENGTH: usize = 500;

/// Why an entry is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMetadata {
    /// There are too many.
    #[error("may have 20 keys at most")]
    TooMany,
    /// The key can't be part of a header's name, or is too long.
    #[error("is no key: 1 to 40 ASCII letters, digits, and any of _ - .")]
    Key,
    /// The key is a duplicate, ignoring case as in header names.
    #[error("is given twice: keys that differ only in upper and lower case are the same")]
    Twice,
    /// The value contains a line break or another control character.
    #[error("must not contain control characters")]
    Control,
    /// The value is too long.
    #[error("may have 500 characters at most")]
    TooLong,
}

/// The values by their keys, in their original spelling.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Metadata(BTreeMap<String, String>);

impl Metadata {
    /// Adds an entry.
    pub fn insert(&mut self, key: &str, value: &str) -> Result<(), InvalidMetadata> {
        if self.0.len() >= MOST {
            return Err(InvalidMetadata::TooMany);
        }
        let is_key = (1..=KEY_LENGTH).contains(&key.len())
            && (key.bytes())
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        if !is_key {
            return Err(InvalidMetadata::Key);
        }
        if (self.0.keys()).any(|known| known.eq_ignore_ascii_case(key)) {
            return Err(InvalidMetadata::Twice);
        }
        if value.contains(char::is_control) {
            return Err(InvalidMetadata::Control);
        }
        if value.chars().count() > VALUE_LENGTH {
            return Err(InvalidMetadata::TooLong);
        }
        self.0.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(key, text)| (key.as_str(), text.as_str()))
    }

    /// The stored form; `None` if empty.
    #[must_use]
    pub fn to_json(&self) -> Option<String> {
        // Serializing strings can't fail.
        (!self.is_empty()).then(|| serde_json::to_string(self).unwrap_or_default())
    }
}

/// Parses the stored form.
impl From<Option<Value>> for Metadata {
    fn from(stored: Option<Value>) -> Self {
        let texts = stored.and_then(|stored| serde_json::from_value(stored).ok());
        Self(texts.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds() {
        let mut metadata = Metadata::default();
        assert_eq!(metadata.to_json(), None);
        for (key, value, expected) in [
            ("order.id-1_X", "4711", Ok(())),
            ("Order.ID-1_x", "4711", Err(InvalidMetadata::Twice)),
            ("", "x", Err(InvalidMetadata::Key)),
            ("a b", "x", Err(InvalidMetadata::Key)),
            ("a:b", "x", Err(InvalidMetadata::Key)),
            ("ü", "x", Err(InvalidMetadata::Key)),
            (&"k".repeat(40), "", Ok(())),
            (&"l".repeat(41), "", Err(InvalidMetadata::Key)),
            ("u", &"ü".repeat(500), Ok(())),
            ("v", &"ü".repeat(501), Err(InvalidMetadata::TooLong)),
            ("w", "a\tb", Err(InvalidMetadata::Control)),
            ("w", "\0", Err(InvalidMetadata::Control)),
            ("w", "\u{85}", Err(InvalidMetadata::Control)),
        ] {
            assert_eq!(metadata.insert(key, value), expected, "{key:?} {value:?}");
        }
        for number in 3..MOST {
            assert_eq!(metadata.insert(&format!("n{number}"), "x"), Ok(()));
        }
        assert_eq!(metadata.insert("one", "x"), Err(InvalidMetadata::TooMany));
    }

    proptest! {
        #[test]
        fn what_is_taken_is_read_back(entries in prop::collection::vec(("[A-Za-z0-9_.-]{0,42}", "[^\x00-\x1f]{0,20}"), 0..25)) {
            let mut metadata = Metadata::default();
            for (key, value) in &entries {
                let _ = metadata.insert(key, value);
            }
            let stored = metadata.to_json().and_then(|text| serde_json::from_str(&text).ok());
            prop_assert_eq!(Metadata::from(stored), metadata);
        }
    }
}
