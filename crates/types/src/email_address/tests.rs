#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;

#[test]
fn valid_addresses() {
    for (text, local_part, domain) in [
        ("a@b", "a", "b"),
        ("jane.doe+tag@example.com", "jane.doe+tag", "example.com"),
        (
            "!#$%&'*+-/=?^_`{|}~@x-1.example",
            "!#$%&'*+-/=?^_`{|}~",
            "x-1.example",
        ),
        ("\"\"@example.com", "\"\"", "example.com"),
        ("\"a b\"@example.com", "\"a b\"", "example.com"),
        (
            "\"a@b>\\\"\\\\\"@example.com",
            "\"a@b>\\\"\\\\\"",
            "example.com",
        ),
        ("a@[192.0.2.1]", "a", "[192.0.2.1]"),
        ("a@[IPv6:2001:db8::1]", "a", "[IPv6:2001:db8::1]"),
        ("a@[ipv6:::ffff:192.0.2.1]", "a", "[ipv6:::ffff:192.0.2.1]"),
        ("用户@例子.广告", "用户", "例子.广告"),
        ("\"é è\"@bücher.example", "\"é è\"", "bücher.example"),
        ("a@1.2.3.4", "a", "1.2.3.4"),
        // jstedfast/MimeKit#728
        ("try..this@docomo.ne.jp", "try..this", "docomo.ne.jp"),
        ("xxx.yyy.@docomo.ne.jp", "xxx.yyy.", "docomo.ne.jp"),
        (".a@b", ".a", "b"),
        ("...a...@b", "...a...", "b"),
        ("-a-._@ezweb.ne.jp", "-a-._", "ezweb.ne.jp"),
        (
            "j\u{f6}rg.@b\u{fc}cher.example",
            "j\u{f6}rg.",
            "b\u{fc}cher.example",
        ),
        ("a@b_c", "a", "b_c"),
        ("a@_b.c_", "a", "_b.c_"),
    ] {
        let address = EmailAddress::parse(text).unwrap();
        assert_eq!(address.local_part(), local_part, "{text}");
        assert_eq!(address.domain(), domain, "{text}");
        assert_eq!(address.as_str(), text);
        assert_eq!(address.to_string(), text);
        assert_eq!(address.is_ascii(), text.is_ascii());
    }
}

#[test]
fn refused_addresses() {
    use InvalidEmailAddress::{Domain, Form, LocalPart};
    for (text, error) in [
        ("", Form),
        ("a", Form),
        ("@", LocalPart),
        ("@b", LocalPart),
        ("a@", Domain),
        (" a@b", LocalPart),
        ("a@b ", Domain),
        ("a b@c", LocalPart),
        (".@b", LocalPart),
        ("..@b", LocalPart),
        ("a.. b@c", LocalPart),
        ("a..\"b\"@c", LocalPart),
        ("a@b@c", LocalPart),
        ("<a@b>", LocalPart),
        ("a,b@c", LocalPart),
        ("\"a@b", LocalPart),
        ("\"a\"b@c", LocalPart),
        ("\"a\"b\"@c", LocalPart),
        ("\"a\\\"@c", LocalPart),
        ("\"a\tb\"@c", LocalPart),
        ("\"a\\\u{e9}\"@c", LocalPart),
        ("a\0@c", LocalPart),
        ("a\u{85}@c", LocalPart),
        ("a\u{a0}b@c", LocalPart),
        ("a\u{202e}b@c", LocalPart),
        ("a@b.", Domain),
        ("a@.b", Domain),
        ("a@b..c", Domain),
        ("a@-b", Domain),
        ("a@b-.c", Domain),
        ("a@-_b", Domain),
        ("a@b\r\nc", Domain),
        ("a@b\u{3002}c", Domain),
        ("a@[192.0.2.256]", Domain),
        ("a@[192.0.2.01]", Domain),
        ("a@[2001:db8::1]", Domain),
        ("a@[IPv6:2001:db8::1%eth0]", Domain),
        ("a@[IPv6:x]", Domain),
        ("a@[x:y]", Domain),
        ("a@[192.0.2.1", Domain),
    ] {
        assert_eq!(EmailAddress::parse(text), Err(error), "{text:?}");
    }
}

#[test]
fn limits() {
    let domain_of = |length: usize| {
        format!("{}.{}", "d".repeat(60), "e".repeat(60)).repeat(9)[..length].replace("de", "d.e")
    };
    let local_part = |length: usize| format!("{}@b", "a".repeat(length));
    assert!(EmailAddress::parse(&local_part(64)).is_ok());
    assert_eq!(
        EmailAddress::parse(&local_part(65)),
        Err(InvalidEmailAddress::LocalPartTooLong)
    );
    assert!(EmailAddress::parse(&format!("a@{}", "b".repeat(63))).is_ok());
    assert_eq!(
        EmailAddress::parse(&format!("a@{}", "b".repeat(64))),
        Err(InvalidEmailAddress::Domain)
    );
    // 22 characters of three octets each: one label of 66 octets whose A-label is shorter.
    assert!(EmailAddress::parse(&format!("a@{}", "例".repeat(22))).is_ok());
    let label = "b".repeat(62);
    let long = format!("{}@{label}.{label}.{label}.x", "a".repeat(63));
    assert_eq!(long.len(), 254);
    assert!(EmailAddress::parse(&long).is_ok());
    assert_eq!(
        EmailAddress::parse(&format!("{long}y")),
        Err(InvalidEmailAddress::TooLong)
    );
    assert!(!is_domain(&domain_of(256)));
}

#[test]
fn one_mailbox_in_two_spellings() {
    let one = EmailAddress::parse("Jane@Example.com").unwrap();
    let other = EmailAddress::parse("jane@EXAMPLE.COM").unwrap();
    assert_ne!(one, other);
    assert!(one.same_mailbox(&other));
    assert_eq!(one.lookup_key(), other.lookup_key());
    assert_eq!(one.lookup_key(), "jane@example.com");
    assert!(!one.same_mailbox(&EmailAddress::parse("jane@example.org").unwrap()));
    assert_eq!(serde_json::to_string(&one).unwrap(), "\"Jane@Example.com\"");
}

proptest! {
    #[test]
    fn never_panics_and_keeps_the_text(text in "\\PC{0,40}|[a-z@.\"\\\\ \\[\\]:-]{0,40}") {
        if let Ok(address) = EmailAddress::parse(&text) {
            prop_assert_eq!(format!("{}@{}", address.local_part(), address.domain()), text);
        }
    }
}
