//! One address in several spellings.

use super::ascii::a_labels;
use super::{is_atoms, is_quoted_string};

/// An address in its form for comparison, itself a valid address: in lower case, since no provider distinguishes case,
/// quoted only if necessary, and with its domain in ASCII if possible (RFC 5890).
#[must_use]
pub fn comparison_key(address: &str) -> String {
    let Some((local_part, domain)) = address.rsplit_once('@') else {
        return address.to_lowercase();
    };
    let local_part = local_part.trim();
    // An unclosed quote doesn't quote.
    let is_quoted = is_quoted_string(local_part);
    let local_part = if is_quoted {
        unquoted(local_part)
    } else {
        local_part.to_owned()
    };
    let local_part = local_part.to_lowercase();
    let domain = domain.trim();
    let domain = a_labels(domain).unwrap_or_else(|| domain.to_lowercase());
    if !is_quoted || is_atoms(&local_part) {
        return format!("{local_part}@{domain}");
    }
    let local_part = local_part.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{local_part}\"@{domain}")
}

fn unquoted(quoted_string: &str) -> String {
    let mut inside = String::with_capacity(quoted_string.len());
    let inside_quotes = quoted_string
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let mut letters = inside_quotes.unwrap_or_default().chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => inside.extend(letters.next()),
            letter => inside.push(letter),
        }
    }
    inside
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::EmailAddress;
    use super::*;

    #[test]
    fn spellings_of_one_address() {
        for (one, other) in [
            ("Bob@Example.com", "bob@example.COM"),
            ("\"bob\"@example.com", "bob@example.com"),
            ("\"b\\ob\"@example.com", "bob@example.com"),
            ("\"try..this\"@docomo.example", "try..this@docomo.example"),
            ("\"xxx.yyy.\"@docomo.example", "XXX.yyy.@docomo.example"),
            ("\"a\\ b\"@example.com", "\"A b\"@example.com"),
            ("\"a\\\"\"@example.com", "\"A\\\"\"@example.com"),
            ("bob@b\u{fc}cher.example", "bob@xn--bcher-kva.example"),
            ("J\u{d6}RG@example.com", "j\u{f6}rg@example.com"),
        ] {
            assert_eq!(comparison_key(one), comparison_key(other), "{one}");
        }
        for (one, other) in [
            ("a.b@example.com", "a..b@example.com"),
            ("\"a b\"@example.com", "\"ab\"@example.com"),
            ("bob@a_b.example", "bob@ab.example"),
            ("\"a@b\"@example.com", "a@b.example.com"),
            ("\"bob@example.com", "bob@example.com"),
            ("bob\"@example.com", "bob@example.com"),
            ("b\\ob@example.com", "bob@example.com"),
        ] {
            assert_ne!(comparison_key(one), comparison_key(other), "{one}");
        }
    }

    proptest! {
        #[test]
        fn a_key_is_an_address_and_its_own_key(local in "[a-cA-C.\\\\\" @]{1,8}|\"[a-c. @]{0,8}\"", domain in "[a-c_.]{1,6}") {
            if let Ok(address) = EmailAddress::parse(&format!("{local}@{domain}")) {
                let key = comparison_key(address.as_str());
                prop_assert!(EmailAddress::parse(&key).is_ok(), "{} of {}", key, address);
                prop_assert_eq!(comparison_key(&key), key.clone());
                prop_assert_eq!(comparison_key(address.to_ascii().as_str()), key);
            }
        }
    }
}
