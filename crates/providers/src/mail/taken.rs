//! The messages taken from a list, as the end of a cursor: for lists that can be continued only from their end, and are
//! read again if reading stopped before it.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// The bytes of an id's hash that are kept, and their base64 length. A list has a few hundred ids at most.
const HASH: usize = 6;
const ENCODED: usize = 8;

/// Follows the position of the list. It begins a URL's fragment, which isn't sent, so releases that don't know it read
/// the list from its beginning.
const MARK: char = '#';

/// The ids of messages, as far as they are needed to recognize them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Taken {
    hashes: BTreeSet<[u8; HASH]>,
}

impl Taken {
    /// The position of a cursor, and the messages taken there.
    pub(super) fn split(cursor: &str) -> (&str, Self) {
        let Some((position, hashes)) = cursor.split_once(MARK) else {
            return (cursor, Self::default());
        };
        let hashes = (hashes.as_bytes().chunks(ENCODED))
            .map(|hash| URL_SAFE_NO_PAD.decode(hash).ok()?.try_into().ok())
            .collect::<Option<_>>()
            .unwrap_or_default();
        (position, Self { hashes })
    }

    /// The cursor of a position where these were taken.
    pub(super) fn join(&self, position: &str) -> String {
        let mut cursor = position.to_owned();
        if !self.hashes.is_empty() {
            cursor.push(MARK);
        }
        for hash in &self.hashes {
            URL_SAFE_NO_PAD.encode_string(hash, &mut cursor);
        }
        cursor
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.hashes.contains(&hash_of(id))
    }

    pub(super) fn add(&mut self, id: &str) {
        self.hashes.insert(hash_of(id));
    }
}

fn hash_of(id: &str) -> [u8; HASH] {
    let mut kept = [0; HASH];
    kept.copy_from_slice(&Sha256::digest(id)[..HASH]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_recognized_in_the_next_check() {
        let mut taken = Taken::default();
        assert_eq!(taken.join("https://x/y?z"), "https://x/y?z");
        let ids: Vec<String> = (0..400).map(|number| format!("AAMk{number}=")).collect();
        for id in &ids {
            taken.add(id);
        }
        let cursor = taken.join("https://x/y?z");
        assert_eq!(cursor.len(), "https://x/y?z#".len() + 400 * ENCODED);
        assert!(!cursor.contains(' '));
        let (position, read) = Taken::split(&cursor);
        assert_eq!((position, &read), ("https://x/y?z", &taken));
        assert!(ids.iter().all(|id| read.has(id)) && !read.has("AAMk400="));
    }

    #[test]
    fn a_cursor_that_names_none() {
        for (cursor, position) in [
            ("", ""),
            ("1000", "1000"),
            ("1000#", "1000"),
            ("1000#AAAA", "1000"),
            ("1000#AAAAAAAA*AAAAAAA", "1000"),
            ("1000#ÄAAAAAA#", "1000"),
        ] {
            assert_eq!(Taken::split(cursor), (position, Taken::default()));
        }
    }
}
