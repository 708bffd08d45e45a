//! The forms of an address that every server accepts, with or without SMTPUTF8 (RFC 6531).

use super::{EmailAddress, MAXIMUM_ADDRESS};

impl EmailAddress {
    /// The address, with its local part quoted if its dots require quotes (RFC 5321 §4.1.2).
    #[must_use]
    pub fn to_standard(&self) -> Self {
        let local_part = self.local_part();
        let is_standard =
            local_part.starts_with('"') || local_part.split('.').all(|it| !it.is_empty());
        if is_standard {
            self.clone()
        } else {
            Self(format!("\"{local_part}\"@{}", self.domain()))
        }
    }

    /// The address in its standard form, with its domain in A-labels (RFC 5890 §2.3.2.1, mapped by UTS 46) if that
    /// makes it ASCII. An address with a non-ASCII local part has no such form.
    #[must_use]
    pub fn to_ascii(&self) -> Self {
        let standard = self.to_standard();
        let local_part = standard.local_part();
        if standard.is_ascii() || !local_part.is_ascii() {
            return standard;
        }
        let ascii = a_labels(self.domain()).map(|domain| format!("{local_part}@{domain}"));
        ascii
            .filter(|address| address.len() <= MAXIMUM_ADDRESS)
            .map_or_else(|| standard.clone(), Self)
    }
}

/// A domain in A-labels; `None` if it has none.
pub(super) fn a_labels(domain: &str) -> Option<String> {
    idna::domain_to_ascii_strict(domain).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ascii(address: &str) -> String {
        EmailAddress::parse(address).map_or_else(
            |error| error.to_string(),
            |address| address.to_ascii().to_string(),
        )
    }

    // jstedfast/MailKit#1780, bitwarden/server#1512
    #[test]
    fn domains_become_a_labels() {
        for (address, expected) in [
            ("try..this@docomo.ne.jp", "\"try..this\"@docomo.ne.jp"),
            ("\"try..this\"@docomo.ne.jp", "\"try..this\"@docomo.ne.jp"),
            ("xxx.yyy.@docomo.ne.jp", "\"xxx.yyy.\"@docomo.ne.jp"),
            (".bob@b\u{fc}cher.example", "\".bob\"@xn--bcher-kva.example"),
            ("j\u{f6}rg.@example.com", "\"j\u{f6}rg.\"@example.com"),
            ("bob@b\u{fc}cher.example", "bob@xn--bcher-kva.example"),
            ("Bob@B\u{dc}CHER.example", "Bob@xn--bcher-kva.example"),
            // As NFD.
            ("bob@bu\u{308}cher.example", "bob@xn--bcher-kva.example"),
            (
                "bob@mail.b\u{fc}cher.example",
                "bob@mail.xn--bcher-kva.example",
            ),
            (
                "bob@xn--bcher-kva.b\u{fc}ro.example",
                "bob@xn--bcher-kva.xn--bro-hoa.example",
            ),
            // Not "strasse": the deviation characters are kept since IDNA 2008.
            ("bob@stra\u{df}e.example", "bob@xn--strae-oqa.example"),
            (
                "bob@\u{4f8b}\u{3048}.\u{30c6}\u{30b9}\u{30c8}",
                "bob@xn--r8jz45g.xn--zckzah",
            ),
            (
                "bob@\u{645}\u{62b}\u{627}\u{644}.example",
                "bob@xn--mgbh0fb.example",
            ),
            (
                "bob@\u{909}\u{926}\u{93e}\u{939}\u{930}\u{923}.example",
                "bob@xn--p1b6ci4b4b3a.example",
            ),
            (
                "\"a b\"@b\u{fc}cher.example",
                "\"a b\"@xn--bcher-kva.example",
            ),
            // Unchanged, or not convertible.
            ("bob@xn--bcher-kva.example", "bob@xn--bcher-kva.example"),
            ("Bob@Example.ORG", "Bob@Example.ORG"),
            ("bob@[192.0.2.1]", "bob@[192.0.2.1]"),
            (
                "j\u{f6}rg@b\u{fc}cher.example",
                "j\u{f6}rg@b\u{fc}cher.example",
            ),
            ("j\u{f6}rg@example.org", "j\u{f6}rg@example.org"),
        ] {
            assert_eq!(ascii(address), expected, "{address}");
        }
    }

    #[test]
    fn domains_without_a_labels_are_none() {
        for domain in [
            // Mixed directions in one label (RFC 5893).
            "a\u{5d0}b.example",
            // A combining mark first.
            "\u{308}u.example",
            "xn--\u{fc}.example",
            // A soft hyphen alone maps to nothing.
            "\u{ad}.example",
            // 63 octets at most, as A-labels.
            &format!("{}.example", "\u{fc}".repeat(60)),
        ] {
            assert_eq!(
                ascii(&format!("bob@{domain}")),
                "the part after the @ isn't a valid domain",
                "{domain}"
            );
        }
    }

    proptest! {
        #[test]
        fn the_form_is_an_address_and_its_own(local in "[a-z.\u{e4}]{1,5}", domain in "[a-z\u{df}\u{fc}\u{5d0}.-]{1,20}") {
            if let Ok(address) = EmailAddress::parse(&format!("{local}@{domain}")) {
                let ascii = address.to_ascii();
                prop_assert_eq!(EmailAddress::parse(ascii.as_str()), Ok(ascii.clone()));
                prop_assert_eq!(ascii.to_ascii(), ascii.clone());
                prop_assert_eq!(ascii.is_ascii(), local.is_ascii());
            }
        }
    }
}
