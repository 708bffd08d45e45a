//! Bytes as hexadecimal digits.

use std::fmt::Write as _;

/// Two lower-case digits per byte.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a `String` can't fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_for_each_byte() {
        assert_eq!(hex(&[]), "");
        assert_eq!(hex(&[0, 1, 0x0a, 0xff]), "00010aff");
    }
}
