//! A server's diagnostic text.

/// Maximum length kept, in bytes.
pub const DIAGNOSTIC: usize = 1_000;

/// The text on one line, with single spaces and without control characters; `None` if it is empty.
pub(crate) fn one_line(text: &str) -> Option<String> {
    let mut line = String::new();
    for word in text.split(|letter: char| letter.is_whitespace() || letter.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > DIAGNOSTIC {
            break;
        }
    }
    line.truncate(line.floor_char_boundary(DIAGNOSTIC));
    line.truncate(line.trim_end().len());
    (!line.is_empty()).then_some(line)
}

/// The text of a Diagnostic-Code, without its type (RFC 3464 §2.3.6).
pub(crate) fn of_field(value: &str) -> Option<String> {
    let words = match value.split_once(';') {
        Some((kind, words)) if is_type(kind.trim()) => words,
        _ => value,
    };
    one_line(words)
}

fn is_type(kind: &str) -> bool {
    let is_atom =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    (1..=40).contains(&kind.len()) && kind.chars().all(is_atom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_on_one_line() {
        for (value, expected) in [
            ("smtp; 550 5.1.1\r\n\t gone", Some("550 5.1.1 gone")),
            ("X-Postfix; unknown", Some("unknown")),
            ("smtp;", None),
            (
                "550 5.1.1 unknown; try another",
                Some("550 5.1.1 unknown; try another"),
            ),
            ("a\0b\u{1b}c", Some("a b c")),
            (" \n", None),
        ] {
            assert_eq!(of_field(value).as_deref(), expected, "{value:?}");
        }
        let long = one_line(&"ü ".repeat(2_000)).unwrap_or_default();
        assert!(long.len() <= DIAGNOSTIC && long.ends_with('ü'));
        let long = one_line(&"ü".repeat(2_000)).unwrap_or_default();
        assert_eq!(long.len(), DIAGNOSTIC);
    }
}
