//! A Message-ID for storage and comparison.

use sha2::{Digest, Sha256};

use crate::encoded_words;
use crate::hex::hex;

/// Longest Message-ID, in octets: the limit of a header line (RFC 5322 §2.1.1). An index row of the database holds
/// 2,704.
pub const LONGEST: usize = 998;

/// A Message-ID without control characters; one longer than any header can hold is replaced with a digest, so that
/// different ones stay distinct.
#[must_use]
pub fn bounded(id: &str) -> String {
    let id: String = id.chars().filter(|letter| !letter.is_control()).collect();
    if id.len() <= LONGEST {
        return id;
    }
    format!(
        "<sha256-{}@too-long.invalid>",
        hex(&Sha256::digest(id.as_bytes()))
    )
}

/// The Message-IDs in a header's value, with their angle brackets. Invalid forms are tolerated: encoded words
/// (forbidden by RFC 2047 §5) are decoded, and blanks within an id are removed. The id with its blanks follows, since a
/// program may have sent it like that.
#[must_use]
pub fn all_in(value: &[u8]) -> Vec<String> {
    let text = encoded_words::decoded(value);
    let is_encoded = memchr::memmem::find(value, b"=?").is_some();
    let mut ids = Vec::new();
    let mut add = |id: &str| {
        let words: Vec<&str> = id.split_whitespace().collect();
        // Programs that encode it may leave `_` unescaped, which then decodes to a blank.
        let underlined = is_encoded.then(|| words.join("_"));
        for id in [words.concat(), words.join(" ")]
            .into_iter()
            .chain(underlined)
        {
            let id = bounded(&format!("<{id}>"));
            if id != "<>" && ids.last() != Some(&id) {
                ids.push(id);
            }
        }
    };
    for rest in text.split('<').skip(1) {
        add(rest.split('>').next().unwrap_or(rest));
    }
    if ids.is_empty() {
        // Some have no brackets, but may still be folded.
        let words: Vec<&str> = text
            .split([' ', '\t', ',', '<', '>'])
            .filter(|word| !word.is_empty())
            .collect();
        let has_at = |word: &&&str| word.contains('@');
        if let [only] = words.as_slice() {
            ids.push(bounded(&format!("<{only}>")));
        } else {
            let named = words.iter().filter(has_at);
            ids.extend(named.map(|word| bounded(&format!("<{word}>"))));
            if ids.len() == 1 {
                ids.push(bounded(&format!("<{}>", words.concat())));
            }
        }
        ids.retain(|id| id != "<>");
    }
    ids
}

/// An encoded Message-ID, verbatim: replies copy it from programs that send it (python/cpython#79986).
#[must_use]
pub fn encoded(value: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(value);
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_encoded = !words.is_empty() && words.iter().all(|word| word.starts_with("=?"));
    is_encoded.then(|| bounded(&words.join(" ")))
}

/// Ids from both ends, within the limits on their number and on their total length, `bytes`.
#[must_use]
pub fn both_ends(mut ids: Vec<String>, most: usize, bytes: usize) -> Vec<String> {
    let (mut front, mut back, mut room) = (0, ids.len(), bytes);
    loop {
        let behind = ids.len() - back;
        if front >= back || front + behind >= most {
            break;
        }
        let is_front = front <= behind;
        let place = if is_front { front } else { back - 1 };
        let Some(left) = room.checked_sub(ids[place].len()) else {
            break;
        };
        room = left;
        if is_front {
            front += 1;
        } else {
            back -= 1;
        }
    }
    ids.drain(front..back);
    ids
}

/// Whether this is a single `msg-id` (RFC 5322 §3.6.4): a provider stores such a Message-ID unchanged, so a search that
/// doesn't find it proves that the provider doesn't have the message.
#[must_use]
pub fn is_well_formed(id: &str) -> bool {
    let Some(inner) = id.strip_prefix('<').and_then(|id| id.strip_suffix('>')) else {
        return false;
    };
    let is_plain = |part: &str| {
        !part.is_empty()
            && (part.bytes()).all(|byte| byte.is_ascii_graphic() && !b"<>@\"\\,;".contains(&byte))
    };
    id.len() <= LONGEST
        && inner
            .split_once('@')
            .is_some_and(|(left, right)| is_plain(left) && is_plain(right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_fits_a_header_stays() {
        for id in ["<a@b>", "<ü@b>", "", "no brackets"] {
            assert_eq!(bounded(id), id);
        }
        assert_eq!(bounded("<a\0\r\n@b>"), "<a@b>");
        let longest = format!("<{}>", "x".repeat(LONGEST - 2));
        assert_eq!(bounded(&longest), longest);
    }

    #[test]
    fn what_a_provider_finds_again() {
        for (id, expected) in [
            ("<a.b+c=1@mail.example>", true),
            ("<x@[127.0.0.1]>", true),
            ("abc", false),
            ("<abc>", false),
            ("a@b", false),
            ("<a@b> <c@d>", false),
            ("<a@b>,<c@d>", false),
            ("<a@b@c>", false),
            ("<@b>", false),
            ("<a@>", false),
            ("<a b@c>", false),
            ("<\u{fc}@b>", false),
            ("", false),
        ] {
            assert_eq!(is_well_formed(id), expected, "{id:?}");
        }
    }

    #[test]
    fn ids_in_the_value_of_a_header() {
        for (value, expected) in [
            ("<a@x> <b@x>", &["<a@x>", "<b@x>"][..]),
            ("<a@x>,<b@x>", &["<a@x>", "<b@x>"]),
            ("Ada's message of Monday <a@x> (copy)", &["<a@x>"]),
            ("<a\r\n @x>", &["<a@x>", "<a @x>"]),
            ("=?utf-8?q?=3Ca=40?= =?utf-8?q?x=3E?=", &["<a@x>"]),
            (
                "=?utf-8?q?<log_7@x>?=",
                &["<log7@x>", "<log 7@x>", "<log_7@x>"],
            ),
            ("a@x", &["<a@x>"]),
            ("a@x (copy)", &["<a@x>", "<a@x(copy)>"]),
            ("a@x b@x", &["<a@x>", "<b@x>"]),
            ("a@\r\n x", &["<a@>", "<a@x>"]),
            ("a", &["<a>"]),
            ("a message", &[]),
            ("<>", &[]),
            ("<\u{7f}>", &[]),
            ("\u{7f}", &[]),
            ("", &[]),
        ] {
            assert_eq!(all_in(value.as_bytes()), expected, "{value:?}");
        }
    }

    #[test]
    fn what_is_kept_of_many() {
        let ids =
            |count: usize| -> Vec<String> { (0..count).map(|it| format!("<{it}>")).collect() };
        assert_eq!(both_ends(ids(3), 3, 100), ids(3));
        assert_eq!(both_ends(ids(9), 3, 100), ["<0>", "<1>", "<8>"]);
        assert_eq!(both_ends(ids(9), 9, 7), ["<0>", "<8>"]);
        assert_eq!(both_ends(ids(9), 0, 100), ids(0));
        assert_eq!(both_ends(ids(0), 3, 100), ids(0));
    }

    #[test]
    fn longer_ones_are_told_apart() {
        let cjk = "字".repeat(LONGEST);
        let (one, other) = (bounded(&format!("<{cjk}a>")), bounded(&format!("<{cjk}b>")));
        assert_ne!(one, other);
        assert_eq!(one, bounded(&format!("<{cjk}a>")));
        assert!(one.ends_with("@too-long.invalid>"));
    }

    proptest! {
        #[test]
        fn any_text_fits_the_index(id in "(?s).{0,3000}") {
            let bounded = bounded(&id);
            prop_assert!(bounded.len() <= LONGEST);
            prop_assert!(!bounded.contains(char::is_control));
            for id in all_in(id.as_bytes()).into_iter().chain(encoded(id.as_bytes())) {
                prop_assert!(id.len() <= LONGEST && !id.contains(char::is_control) && id != "<>");
            }
        }
    }
}
