//! Enhanced status codes (RFC 3463 §2).

/// The code at the beginning of a text, like `5.1.1`, as in a Status field with a comment.
pub(crate) fn leading(text: &str) -> Option<String> {
    let text = text.trim_start();
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (code, rest) = text.split_at(end);
    let code = code.strip_suffix('.').unwrap_or(code);
    // `5.1.1-x` and `5.1.1a` aren't codes; `5.1.1_x` is Exchange's form.
    let ends = !rest.starts_with(|letter: char| letter.is_alphanumeric());
    (ends && is_code(code)).then(|| code.to_owned())
}

/// The first enhanced status code in a diagnostic text: `550 5.1.1 …`, `550-5.1.1 …`, `#5.1.1`, `(#5.1.1)`.
#[must_use]
pub fn within(text: &str) -> Option<String> {
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        let is_start = matches!(letter, '4' | '5') && !before.is_alphanumeric() && before != '.';
        if is_start && let Some(code) = leading(&text[at..]) {
            return Some(code);
        }
        before = letter;
    }
    None
}

/// Whether it has no more information than its class.
pub(crate) fn is_vague(code: &str) -> bool {
    code.ends_with(".0.0")
}

/// Class 4 or 5, a subject and a detail of at most three digits.
fn is_code(code: &str) -> bool {
    let mut numbers = code.split('.');
    let class = numbers.next();
    let is_number = |number: Option<&str>| {
        number.is_some_and(|number| {
            (1..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    matches!(class, Some("4" | "5"))
        && is_number(numbers.next())
        && is_number(numbers.next())
        && numbers.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        for (text, expected) in [
            ("5.1.1", Some("5.1.1")),
            (" 4.4.7 (delivery time expired)", Some("4.4.7")),
            ("5.1.1. Gone", Some("5.1.1")),
            ("2.0.0", None),
            ("5.1", None),
            ("5.1.1.1", None),
            ("5.1000.1", None),
            ("5.1.1x", None),
            ("550", None),
            ("", None),
        ] {
            assert_eq!(leading(text).as_deref(), expected, "{text}");
        }
        for (text, expected) in [
            ("550 5.1.1 <a@b>: no such user", Some("5.1.1")),
            ("550-5.7.26 unauthenticated", Some("5.7.26")),
            ("host 15.1.2.3 said: 450 4.2.0 later", Some("4.2.0")),
            ("mx.example[5.1.1.2] (#5.1.1)", Some("5.1.1")),
            ("version 4.92.3-x of 2026", Some("4.92.3")),
            ("no code", None),
        ] {
            assert_eq!(within(text).as_deref(), expected, "{text}");
        }
    }
}
