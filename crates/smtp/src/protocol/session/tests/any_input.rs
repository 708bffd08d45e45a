//! Any input, split anywhere.

use proptest::prelude::*;

use super::*;

/// Fragments of dialogues, sensible and not.
fn fragment() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "EHLO c\r\n",
        "HELO c\r\n",
        "STARTTLS\r\n",
        "AUTH LOGIN\r\n",
        "AUTH PLAIN\r\n",
        "AUTH XOAUTH2\r\n",
        "YXBw\r\n",
        "Z29vZA==\r\n",
        "*\r\n",
        "\r\n",
        "MAIL FROM:<a@x>\r\n",
        "MAIL FROM:<é@x> SMTPUTF8\r\n",
        "RCPT TO:<b@x>\r\n",
        "RCPT TO:<no@x>\r\n",
        "DATA\r\n",
        "hi\r\n.\r\n",
        ".\r\n",
        "\r\n.\r\r\n",
        "a\n.\n",
        "BDAT 4\r\na\r\nb",
        "BDAT 3 LAST\r\nx\r\n",
        "BDAT 200\r\n",
        "RSET\r\n",
        "NOOP\r\n",
        "QUIT\r\n",
        "X\r\n",
        "NO\rOP\r\n",
    ]);
    prop_oneof![
        8 => fixed.prop_map(str::to_owned),
        2 => prop::sample::select(vec!["good", "bad", "later"]).prop_map(auth_plain),
        1 => prop::sample::select(vec!["good", "bad"]).prop_map(|token| format!("AUTH XOAUTH2 {}\r\n", xoauth2(token))),
        1 => (0_usize..3000).prop_map(|length| format!("NOOP {}\r\n", "x".repeat(length))),
        1 => "[ -~\r\n\0]{0,20}",
    ]
}

fn split<'bytes>(bytes: &'bytes [u8], cuts: &[usize]) -> Vec<&'bytes [u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    for cut in cuts {
        let (piece, behind) = rest.split_at((*cut).min(rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(rest);
    pieces
}

proptest! {
    #[test]
    fn any_split_gives_the_same_dialogue(
        fragments in prop::collection::vec(fragment(), 0..30),
        cuts in prop::collection::vec(0_usize..60, 0..60),
        prepared in any::<bool>(),
    ) {
        let prelude = if prepared {
            format!("EHLO c\r\n{}MAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\n", auth_plain("good"))
        } else {
            String::new()
        };
        let client = prelude + &fragments.concat();
        for encryption in [Encryption::Clear, Encryption::Tls] {
            let whole = run(session(encryption), &[client.as_bytes()]);
            let pieces = split(client.as_bytes(), &cuts);
            prop_assert_eq!(&run(session(encryption), &pieces), &whole);
            let bytes: Vec<&[u8]> = client.as_bytes().chunks(1).collect();
            prop_assert_eq!(&run(session(encryption), &bytes), &whole);
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        run(session(Encryption::Clear), &[&bytes]);
        run(session(Encryption::Tls), &[b"EHLO c\r\n", &bytes]);
    }
}
