//! Digits in groups of three.

/// A whole number's digits, with the separator between groups of three.
#[must_use]
pub fn grouped(digits: &str, separator: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 2);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push_str(separator);
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_begin_at_the_end() {
        for (digits, expected) in [
            ("", ""),
            ("0", "0"),
            ("999", "999"),
            ("1000", "1,000"),
            ("123456", "123,456"),
            ("1234567", "1,234,567"),
        ] {
            assert_eq!(grouped(digits, ","), expected);
        }
    }
}
