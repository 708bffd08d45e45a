//! A Message-ID as it is stored and compared.

use sha2::{Digest, Sha256};

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

/// Whether this is a single `msg-id` of RFC 5322 §3.6.4: a provider that keeps such a Message-ID finds it again
/// unchanged, and not finding it means that the provider doesn't have the message.
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
        }
    }
}
