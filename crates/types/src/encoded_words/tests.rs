//! Encoded words as programs write them.

use proptest::prelude::*;

use super::*;

fn text(value: &str) -> String {
    decoded(value.as_bytes())
}

#[test]
fn words_are_joined_before_they_are_decoded() {
    // RFC 2047 §6.2
    for (value, expected) in [
        (
            "=?UTF-8?Q?pasi=C5=BEad=C4?= =?UTF-8?Q?=97jim?=",
            "pasi\u{17e}ad\u{117}jim",
        ),
        ("=?utf-8?q?=F0=9F?=\r\n =?UTF-8*de?Q?=8E=89?=", "\u{1f389}"),
        ("=?utf-8?q?=C3?==?utf-8?q?=BC?=", "\u{fc}"),
        ("=?utf-8?b?w7w=?= =?utf-8?b?w7w=?=", "\u{fc}\u{fc}"),
        ("=?utf-8?b?w7w?= =?utf-8?b?w7w?=", "\u{fc}\u{fc}"),
        ("=?utf-8?b?YQ?= =?utf-8?b?Yg?=", "ab"),
        ("=?utf-8?b?w7zD?=\r\n\t=?utf-8?b?vA==?=", "\u{fc}\u{fc}"),
        ("=?utf-8?b?w7zDv?=\r\n\t=?utf-8?b?A==?=", "\u{fc}\u{fc}"),
        ("=?utf-8?b?w?= =?utf-8?b?7?= =?utf-8?b?w=?=", "\u{fc}"),
        ("=?utf-8?q?=C3?= =?utf-8?b?vA==?=", "\u{fc}"),
        (
            "=?ISO-2022-JP?B?GyRCJCIbKEI=?= =?iso-2022-jp?B?GyRCJCQbKEI=?=",
            "\u{3042}\u{3044}",
        ),
        (
            "=?ISO-2022-JP?B?GyRCJCIk?= =?ISO-2022-JP?B?JBsoQg==?=",
            "\u{3042}\u{3044}",
        ),
        (
            "=?shift_jis?b?gqCC?= =?Shift_JIS?b?og==?=",
            "\u{3042}\u{3044}",
        ),
        ("=?utf-8?q?=C3?= =?UTF8?q?=BC?=", "\u{fc}"),
        ("=?utf-8?q?=C?= =?utf-8?q?3=bc?=", "\u{fc}"),
        (
            "=?utf-8?q?=C3?= =?utf-8?q??= =?utf-8?b??= =?utf-8?b?vA?=",
            "\u{fc}",
        ),
        // Different ones aren't.
        ("=?iso-8859-1?q?=C3?= =?utf-8?q?=BC?=", "\u{c3}\u{fffd}"),
        ("=?utf-8?q?=C3?= x =?utf-8?q?=BC?=", "\u{fffd} x \u{fffd}"),
    ] {
        assert_eq!(text(value), expected, "{value}");
        let joined = joined(value.as_bytes()).into_owned();
        assert_eq!(decoded(&joined), expected, "{value}");
    }
}

#[test]
fn white_space() {
    for (value, expected) in [
        (" a\r\n  b\r\n\tc \r\n", "a b c"),
        ("a  b\tc", "a  b\tc"),
        (
            " =?utf-8?q?a?=   =?utf-8?q?b?=\r\n \r\n =?utf-8?q?c?= ",
            "abc",
        ),
        ("=?utf-8?q?a_?= =?utf-8?q?_b?=", "a  b"),
        ("a =?utf-8?q?b?= c", "a b c"),
        ("a=?utf-8?q?b?=c", "abc"),
        ("(=?utf-8?q?a?= =?utf-8?q?b?=)", "(ab)"),
        ("=?utf-8?q?a?=\r\n b\r\n =?utf-8?q?c?=", "a b c"),
        ("", ""),
    ] {
        assert_eq!(text(value), expected, "{value:?}");
    }
}

#[test]
fn what_is_nearly_a_word() {
    for (value, expected) in [
        // Taken, as programs write them.
        ("=?utf-8?q?how are you??=", "how are you?"),
        ("=?utf-8?q?a=3?=", "a=3"),
        ("=?utf-8?q?a=?=", "a="),
        ("=?utf-8?Q??=", ""),
        ("=?utf-8?b?w7 w=?=", "\u{fc}"),
        ("=?x-none?q?=C3=BC?=", "\u{fc}"),
        ("=?x-none?q?=FC?=", "\u{fffd}"),
        // Left as it is.
        ("=?utf-8?q?a", "=?utf-8?q?a"),
        ("=?utf-8?x?a?=", "=?utf-8?x?a?="),
        ("=?utf-8?b?a%?=", "=?utf-8?b?a%?="),
        ("=??q?a?=", "=??q?a?="),
        ("=?a b?q?a?=", "=?a b?q?a?="),
        ("=?utf-8?q?a =?utf-8?q?b?=", "=?utf-8?q?a b"),
        ("=?=?utf-8?q?b?=", "=?b"),
        ("a =? b", "a =? b"),
    ] {
        assert_eq!(text(value), expected, "{value}");
    }
    let long = format!("=?{}?q?a?=", "x".repeat(CHARSET + 1));
    assert_eq!(text(&long), long);
}

#[test]
fn nothing_else_of_a_header_changes() {
    for header in [
        "From: =?utf-8?q?a?= <a@x.org>\r\n",
        "Subject: x =?utf-8?q?a?= x =?utf-8?q?b?=\r\n",
        "",
    ] {
        assert!(
            matches!(joined(header.as_bytes()), Cow::Borrowed(_)),
            "{header}"
        );
    }
    let header =
        "To: =?utf-8?q?=C3?=\r\n =?utf-8?q?=BC?= <a@x.org>,\r\n =?utf-8?q?b?= <b@x.org>\r\n";
    let expected = "To: =?utf-8?B?w7w=?= <a@x.org>,\r\n =?utf-8?q?b?= <b@x.org>\r\n";
    assert_eq!(joined(header.as_bytes()), expected.as_bytes());
}

#[test]
fn time_grows_with_the_length() {
    for unit in [
        "=?",
        "=?a?q?x",
        "=?a?q?x ",
        "=?a?b?x=?=",
        "=?a?q?=?=",
        "=?utf-8?q?=C3?= ",
        "=?a?q?",
        "\n",
        "=?a?b?x?= ",
    ] {
        let value = unit.repeat(200_000 / unit.len());
        let began = std::time::Instant::now();
        let _ = (text(&value), joined(value.as_bytes()));
        assert!(began.elapsed().as_secs() < 20, "{unit:?}");
    }
}

proptest! {
    #[test]
    fn any_cut_yields_the_text(text in "[ -~üß€字🎉]{1,40}", cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..6)) {
        let octets = text.as_bytes();
        let mut places: Vec<(usize, bool)> = cuts.into_iter().map(|(cut, q)| (cut.index(octets.len()), q)).collect();
        places.push((octets.len(), false));
        places.sort_unstable();
        let (mut value, mut from) = (String::new(), 0);
        for (to, is_q) in places {
            let word = if is_q {
                let letters = octets[from..to].iter().map(|octet| format!("={octet:02X}"));
                format!("=?utf-8?Q?{}?=", letters.collect::<String>())
            } else {
                format!("=?UTF-8?b?{}?=", STANDARD.encode(&octets[from..to]))
            };
            value.push_str(&word);
            value.push_str("\r\n ");
            from = to;
        }
        prop_assert_eq!(decoded(value.as_bytes()), text.trim_matches(' '));
    }

    #[test]
    fn any_bytes_are_read(value in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"=?_ bqQ*\r\n".to_vec())], 0..200)) {
        let once = joined(&value).into_owned();
        // Folded, words are joined only once they are unfolded.
        let is_folded = value.iter().any(|byte| matches!(byte, b'\r' | b'\n'));
        prop_assert!(is_folded || decoded(&once) == decoded(&value));
    }
}
