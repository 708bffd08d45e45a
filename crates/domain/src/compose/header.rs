//! Header lines (RFC 5322 §2.2): folding, and encoded words (RFC 2047) for non-ASCII text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use mailgate_types::email_address::EmailAddress;

/// Preferred line length, in characters: a line with an encoded word must keep to it (RFC 2047 §2), any other may have
/// two more (RFC 5322 §2.1.1).
const LINE: usize = 76;

/// Maximum line length, in characters.
const LONGEST_LINE: usize = 998;

/// Octets in one encoded word: with its delimiters they make 60 characters, so that it fits next to the usual header
/// names.
const ENCODED_WORD: usize = 36;

/// Longest word of a subject that is left unencoded; longer ones would make long lines.
const SUBJECT_WORD: usize = LINE - "Subject: ".len();

/// A header of `words`, each with its preceding white space, where a line may be folded.
fn header<'a>(
    name: &str,
    words: impl IntoIterator<Item = (&'a str, &'a str)>,
    first_line: usize,
) -> String {
    let mut text = format!("{name}:");
    let mut column = text.len();
    let mut limit = first_line;
    for (gap, word) in words {
        if column + gap.len() + word.len() > limit {
            text.push_str("\r\n");
            column = 0;
        }
        text.push_str(gap);
        text.push_str(word);
        column += gap.len() + word.len();
        limit = LINE;
    }
    text.push_str("\r\n");
    text
}

/// A header of words separated by one space; lines are folded only there.
pub(super) fn of_words(name: &str, words: &[String]) -> String {
    let words = words.iter().map(|word| (" ", word.as_str()));
    header(name, words, LONGEST_LINE)
}

/// An ASCII value, unchanged, but for more spaces in a row than a line can hold; lines are folded only at its spaces.
/// No word is longer than `LONGEST_LINE - 1`.
pub(super) fn verbatim(name: &str, value: &str) -> String {
    let mut words = Vec::new();
    let mut rest = value;
    while !rest.is_empty() {
        let gap = rest.len() - rest.trim_start_matches(' ').len();
        let (gap, others) = rest.split_at(gap);
        let (word, others) = others.split_at(others.find(' ').unwrap_or(others.len()));
        let fits = !words.is_empty() && gap.len() + word.len() <= LONGEST_LINE;
        words.push((if fits { gap } else { " " }, word));
        rest = others;
    }
    header(name, words, LONGEST_LINE)
}

/// Free text, left unencoded if readers recover it unchanged that way: at most `longest_word` octets without a space.
pub(super) fn text(name: &str, value: &str, longest_word: usize) -> String {
    let in_clear = value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !is_ambiguous(value)
        && value.split(' ').all(|word| word.len() <= longest_word);
    if in_clear {
        return verbatim(name, value);
    }
    let words = encoded_words(value);
    header(name, words.iter().map(|word| (" ", word.as_str())), LINE)
}

/// An id or an address behind a name, which is encoded.
pub(super) fn named(name: &str, phrase: &str, id: &str) -> String {
    let words = encoded_words(phrase);
    let words = words.iter().map(String::as_str).chain([id]);
    header(name, words.map(|word| (" ", word)), LINE)
}

/// The Subject header.
pub(super) fn subject(value: &str) -> String {
    text("Subject", value, SUBJECT_WORD)
}

/// A header of addresses.
pub(super) fn addresses(name: &str, addresses: &[EmailAddress]) -> String {
    let last = addresses.len().saturating_sub(1);
    let words: Vec<String> = addresses
        .iter()
        .enumerate()
        .map(|(index, address)| {
            let comma = if index < last { "," } else { "" };
            format!("{}{comma}", address_word(address))
        })
        .collect();
    of_words(name, &words)
}

/// The From header.
pub(super) fn from(name: Option<&str>, address: &EmailAddress) -> String {
    let Some(name) = name else {
        return addresses("From", std::slice::from_ref(address));
    };
    let printable = name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let mut words = if !printable || is_ambiguous(name) {
        encoded_words(name)
    } else if name.bytes().all(is_phrase_byte) {
        vec![name.to_owned()]
    } else {
        let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
        vec![format!("\"{escaped}\"")]
    };
    words.push(format!("<{address}>"));
    of_words("From", &words)
}

/// An address with a quoted local part gets angle brackets, since some readers mistake it for a name.
fn address_word(address: &EmailAddress) -> String {
    if address.as_str().starts_with('"') {
        format!("<{address}>")
    } else {
        address.to_string()
    }
}

/// atext (RFC 5322 §3.2.3) and the space between words.
fn is_phrase_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~ ".contains(&byte)
}

/// Text that a reader would change: it would decode encoded words, and drop or merge spaces.
fn is_ambiguous(value: &str) -> bool {
    value.contains("=?") || value.contains("  ") || value.starts_with(' ') || value.ends_with(' ')
}

/// The encoded words of a text (RFC 2047), each of whole characters.
pub(super) fn encoded_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.floor_char_boundary(ENCODED_WORD));
        words.push(format!("=?utf-8?B?{}?=", STANDARD.encode(word)));
        rest = after;
    }
    words
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn address(text: &str) -> EmailAddress {
        EmailAddress::parse(text).unwrap()
    }

    #[test]
    fn lines_end_at_spaces_only() {
        let id = format!("<{}@example.com>", "x".repeat(40));
        let references = verbatim("References", &[id.as_str(); 3].join(" "));
        assert_eq!(
            references,
            format!("References: {id}\r\n {id}\r\n {id}\r\n")
        );
        let address = format!("<https://example.com/{}>", "a-b/".repeat(200));
        let unsubscribe = verbatim(
            "List-Unsubscribe",
            &format!("{address}, <mailto:a@b.example>"),
        );
        assert_eq!(
            unsubscribe,
            format!("List-Unsubscribe: {address},\r\n <mailto:a@b.example>\r\n")
        );
        let word = "x".repeat(LONGEST_LINE - 1);
        assert_eq!(verbatim("X", &word), format!("X:\r\n {word}\r\n"));
        assert_eq!(verbatim("X", "a  b"), "X: a  b\r\n");
    }

    #[test]
    fn no_line_is_white_space_alone() {
        let value = format!("a{}b", " ".repeat(200));
        let lines = verbatim("X", &value);
        assert_eq!(lines, format!("X: a\r\n{}b\r\n", " ".repeat(200)));
        let lines = verbatim("X", &format!("a{}b", " ".repeat(998)));
        assert_eq!(lines, "X: a b\r\n");
    }

    #[test]
    fn encoded_words_fit_their_lines() {
        let long_name = "X-".repeat(37);
        for name in ["X", "Subject", long_name.as_str()] {
            let lines = text(name, &"Grüße 日本語 🎉 ".repeat(20), 900);
            for line in lines.lines() {
                assert!(line.len() <= LINE && line.is_ascii(), "{line}");
            }
        }
        assert_eq!(subject("Grüße"), "Subject: =?utf-8?B?R3LDvMOfZQ==?=\r\n");
        assert_eq!(subject("=?x"), "Subject: =?utf-8?B?PT94?=\r\n");
        assert_eq!(subject("Hi there"), "Subject: Hi there\r\n");
        assert_eq!(subject(""), "Subject:\r\n");
    }

    #[test]
    fn senders() {
        for (name, expected) in [
            (None, "From: ada@example.com\r\n"),
            (Some("Ada"), "From: Ada <ada@example.com>\r\n"),
            (
                Some("Lovelace, A. \"x\" \\"),
                "From: \"Lovelace, A. \\\"x\\\" \\\\\" <ada@example.com>\r\n",
            ),
            (
                Some("Jörg"),
                "From: =?utf-8?B?SsO2cmc=?= <ada@example.com>\r\n",
            ),
        ] {
            assert_eq!(from(name, &address("ada@example.com")), expected);
        }
    }

    #[test]
    fn lists_of_addresses_fold_between_them() {
        let many = vec![address("somebody.else@example.com"); 5];
        let lines = addresses("Cc", &many);
        assert!(lines.lines().all(|line| line.len() <= LINE), "{lines}");
        assert_eq!(lines.matches("somebody").count(), 5);
        assert_eq!(lines.matches(',').count(), 4);
        assert_eq!(
            addresses("To", &[address("\"a b\"@example.com")]),
            "To: <\"a b\"@example.com>\r\n"
        );
    }
}
