//! Untrusted text on one line.

/// The text with control characters replaced by spaces, so that it can't start a new line and the database accepts it,
/// truncated to `bytes`.
#[must_use]
pub fn one_line(text: &str, bytes: usize) -> String {
    let mut line = String::with_capacity(text.len().min(bytes));
    for letter in text.chars() {
        let letter = if letter.is_control() { ' ' } else { letter };
        if line.len() + letter.len_utf8() > bytes {
            break;
        }
        line.push(letter);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_short_line() {
        assert_eq!(one_line("a\r\nb\u{0}", 300), "a  b ");
        assert_eq!(one_line("üü", 3), "ü");
        assert_eq!(one_line("x", 0), "");
    }

    proptest! {
        #[test]
        fn any_text_fits(text in "(?s).{0,100}", bytes in 0_usize..200) {
            let line = one_line(&text, bytes);
            prop_assert!(line.len() <= bytes);
            prop_assert!(!line.contains(char::is_control));
        }
    }
}
