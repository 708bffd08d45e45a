//! Names that others have chosen, for mails of the gateway's own.

/// Longest name, in characters.
const LENGTH: usize = 80;

/// Sanitizes a name. The person who signs up chooses both it and the address that it is mailed to, which may be
/// somebody else's: so it can't start a line, reverse text, end a quotation, or become a link in a mail client.
#[must_use]
pub fn plain_name(text: &str) -> String {
    let text = text.replace(
        |letter| char::is_control(letter) || is_invisible(letter),
        " ",
    );
    let mut name = String::new();
    let mut letters = text.chars().take(LENGTH).peekable();
    while let Some(letter) = letters.next() {
        name.push(if is_quotation_mark(letter) {
            '\''
        } else {
            letter
        });
        let goes_on = letters.peek().is_some_and(|next| !next.is_whitespace());
        if goes_on && matches!(letter, '.' | ':' | '@' | '/' | '。' | '．' | '․' | '｡') {
            name.push(' ');
        }
    }
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_quotation_mark(letter: char) -> bool {
    matches!(
        letter,
        '"' | '“' | '”' | '„' | '‟' | '«' | '»' | '″' | '＂' | '〝' | '〞'
    )
}

/// Invisible characters that change how others are shown (Unicode's category Cf, except those that names need).
pub(crate) fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_nothing_but_a_name() {
        for (label, expected) in [
            ("Acme Inc.", "Acme Inc."),
            ("Müller & Söhne", "Müller & Söhne"),
            ("  a\r\nBcc: x ", "a Bcc: x"),
            ("https://evil.example/pay", "https: / / evil. example/ pay"),
            ("A\". Call \u{201c}us\u{201d}", "A'. Call 'us'"),
            ("evil\u{2024}example", "evil\u{2024} example"),
            ("www.evil.example", "www. evil. example"),
            ("eve@evil.example", "eve@ evil. example"),
            ("abc\u{202e}def", "abc def"),
            ("a\u{2028}b\u{200b}c", "a b c"),
        ] {
            assert_eq!(plain_name(label), expected, "{label:?}");
        }
        assert_eq!(plain_name(&"é".repeat(255)).chars().count(), 80);
    }
}
