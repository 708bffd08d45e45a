//! The display name of an address (RFC 5322 §3.4, display-name), and whether it could be mistaken for another address.

use super::email_address::EmailAddress;

/// The at sign, and its lookalikes (U+FF20, U+FE6B), which some readers accept as one.
pub const AT_SIGNS: [char; 3] = ['@', '\u{ff20}', '\u{fe6b}'];

/// The dots of a domain, as IDNA reads them (UTS #46 §2.3).
const DOTS: [char; 4] = ['.', '\u{3002}', '\u{ff0e}', '\u{ff61}'];

/// Characters that may surround an address.
const AROUND: [char; 11] = ['\'', '"', '(', ')', '<', '>', ',', ';', ':', '.', '`'];

/// Whether a name contains an address other than this one. `Ada @ Work` and `Ada (@ada)` contain none; white space
/// around the at sign makes no difference if a domain follows (RFC 5322 §4.4 allows it there).
#[must_use]
pub fn holds_another(name: &str, address: &EmailAddress) -> bool {
    let words: Vec<&str> = name.split_whitespace().collect();
    (0..words.len()).any(|place| is_another(&words, place, address))
}

fn is_another(words: &[&str], place: usize, address: &EmailAddress) -> bool {
    let Some((before, behind)) = words[place].split_once(AT_SIGNS) else {
        return false;
    };
    let (before, behind) = (opened(before), closed(behind));
    let neighbour = |place: Option<usize>| place.and_then(|place| words.get(place));
    let left = neighbour(place.checked_sub(1)).map_or("", |word| opened(word));
    let right = neighbour(place.checked_add(1)).map_or("", |word| closed(word));
    let (local_part, domain) = match (before, behind) {
        ("", "") => (left, right),
        ("", domain) => (left, domain),
        (local_part, "") => (local_part, right),
        together => together,
    };
    let is_one_word = !before.is_empty() && !behind.is_empty();
    let is_domain = is_one_word || domain.starts_with('[') || domain.contains(DOTS);
    // A word may contain a second at sign.
    let is_address = !local_part.is_empty() && is_domain || domain.contains(AT_SIGNS);
    is_address
        && !address
            .as_str()
            .eq_ignore_ascii_case(&format!("{local_part}@{domain}"))
}

fn opened(word: &str) -> &str {
    word.trim_start_matches(AROUND)
}

fn closed(word: &str) -> &str {
    word.trim_end_matches(AROUND)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    fn is_refused(name: &str) -> bool {
        let address = EmailAddress::parse("ada@sandbox.example").unwrap();
        holds_another(name, &address)
    }

    #[test]
    fn another_address_in_a_name() {
        for name in [
            "eve@example.org",
            "<eve@example.org>",
            "Eve eve@example.org",
            "eve@example.org (Eve)",
            "x@y",
            "eve@example.org ada@sandbox.example",
            "ada@sandbox.example eve@example.org",
            "ada@sandbox.example,eve@example.org",
            "ada@sandbox.example.org",
            "xada@sandbox.example",
            "ada@sandbox.example@example.org",
            "@@eve@example.org",
            "eve @ example.org",
            "eve@ example.org",
            "eve @example.org (Eve)",
            "eve @ [192.0.2.7]",
            "eve@[192.0.2.7]",
            "\"eve\"@example.org",
            "eve\u{ff20}example.org",
            "eve\u{fe6b}example.org",
            "eve @ example\u{3002}org",
            "ada\u{200b}@sandbox.example",
            "ada@s\u{430}ndbox.example",
        ] {
            assert!(is_refused(name), "{name}");
        }
    }

    #[test]
    fn a_name_without_another() {
        for name in [
            "",
            "Ada",
            "Ada K. Lovelace",
            "ada@sandbox.example",
            " Ada@Sandbox.Example ",
            "'ada@sandbox.example'",
            "<ada@sandbox.example>",
            "Ada (ada@sandbox.example)",
            "ada @ sandbox.example",
            "Ada @ Work",
            "Ada @Work",
            "@ada",
            "Ada (@ada)",
            "Mail me @",
            "@",
        ] {
            assert!(!is_refused(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_name_hides_an_address(
            before in "([ '\"<>(),;:.]|Ada|ada@sandbox.example){0,5}",
            behind in "([ '\"<>(),;:.]|Ada|ada@sandbox.example){0,5}",
        ) {
            let name = format!("{before}eve@example.org{behind}");
            prop_assert!(is_refused(&name), "{}", name);
        }
    }
}
