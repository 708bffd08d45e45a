#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;

const LIMIT: usize = 1000;

/// Feeds pieces until something other than `More` is returned; returns that, and the remaining input.
fn receive(limit: usize, pieces: &[&[u8]]) -> (Progress, Vec<u8>) {
    let mut receiver = DataReceiver::new(limit, None, BareNewline::Refuse);
    let mut input = BytesMut::new();
    let mut progress = Progress::More;
    for piece in pieces {
        input.extend_from_slice(piece);
        if progress == Progress::More {
            progress = receiver.receive(&mut input);
        }
        assert!(receiver.capacity() <= 2 * limit + 8);
    }
    (progress, input.to_vec())
}

fn kept(content: &str) -> Progress {
    Progress::End(Ok(content.as_bytes().to_vec()))
}

#[test]
fn every_split_of_every_ending() {
    let malformed = || Progress::End(Err(RefusedContent::Malformed));
    let cases: &[(&str, Option<&str>, &str)] = &[
        (".\r\nQUIT\r\n", Some(""), "QUIT\r\n"),
        ("a\r\n.\r\n", Some("a\r\n"), ""),
        ("\r\n.\r\n", Some("\r\n"), ""),
        ("a\r\n\r\n..\r\n.\r\nNOOP", Some("a\r\n\r\n.\r\n"), "NOOP"),
        ("..a\r\n.\r\n", Some(".a\r\n"), ""),
        (".a\r\n...\r\n.\r\n", Some("a\r\n..\r\n"), ""),
        ("a.\r\n.\r\n", Some("a.\r\n"), ""),
        ("a", None, ""),
        ("a\r\n.", None, ""),
        ("a\r\n.\r", None, ""),
        // None of these end a message, and what follows is content, not a command.
        ("a\r\n.\r\r\nQUIT\r\n", None, ""),
        ("a\n.\nQUIT\r\n", None, ""),
        ("a\n.\r\nQUIT\r\n", None, ""),
        ("a\r\n.\nQUIT\r\n", None, ""),
        ("a\r.\r\nQUIT\r\n", None, ""),
        ("a\r.\rQUIT\r\n", None, ""),
        (".\nQUIT\r\n", None, ""),
        (".\rQUIT\r\n", None, ""),
    ];
    for (text, expected, rest) in cases {
        let expected = (
            expected.map_or(Progress::More, kept),
            rest.as_bytes().to_vec(),
        );
        for cut in 0..=text.len() {
            let (before, behind) = text.as_bytes().split_at(cut);
            assert_eq!(
                receive(LIMIT, &[before, behind]),
                expected,
                "{text:?} cut at {cut}"
            );
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(receive(LIMIT, &bytes), expected, "{text:?} byte by byte");
    }
    for text in [
        "a\r\n.\r\r\nb\r\n.\r\n",
        "a\n.\nb\r\n.\r\n",
        "a\n.\r\nb\r\n.\r\n",
        "a\r\n.\nb\r\n.\r\n",
        "a\r.\r\nb\r\n.\r\n",
        ".\rb\r\n.\r\n",
        ".\nb\r\n.\r\n",
        ".\r\r\n.\r\n",
        "\r\r\n.\r\n",
        "\n\r\n.\r\n",
        "a\0b\r\n.\r\n",
        ".\0\r\n.\r\n",
    ] {
        for cut in 0..=text.len() {
            let (before, behind) = text.as_bytes().split_at(cut);
            assert_eq!(
                receive(LIMIT, &[before, behind]),
                (malformed(), Vec::new()),
                "{text:?} cut at {cut}"
            );
        }
    }
}

#[test]
fn the_limit_counts_unstuffed_octets() {
    for (text, limit, fits) in [
        ("abc\r\n.\r\n", 5, true),
        ("abcd\r\n.\r\n", 5, false),
        ("..bc\r\n.\r\n", 5, true),
        (".\r\n", 0, true),
        ("\r\n.\r\n", 1, false),
        // Too large and malformed: the same result however it is split.
        ("a\nbcdefg\r\n.\r\n", 5, false),
        ("abcdefg\n\r\n.\r\n", 5, false),
    ] {
        for cut in 0..=text.len() {
            let (before, behind) = text.as_bytes().split_at(cut);
            let (progress, rest) = receive(limit, &[before, behind]);
            assert_eq!(rest, b"");
            match progress {
                Progress::End(Ok(_)) => assert!(fits, "{text:?}"),
                Progress::End(Err(RefusedContent::TooLarge)) => assert!(!fits, "{text:?}"),
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_is_over_the_limit_is_dropped_and_endless_input_stops() {
    let limit = 1000;
    let mut receiver = DataReceiver::new(limit, None, BareNewline::Refuse);
    let mut input = BytesMut::new();
    let mut fed = 0;
    let line = [[b'x'; 98].as_slice(), b"\r\n"].concat();
    loop {
        input.extend_from_slice(&line);
        fed += line.len();
        match receiver.receive(&mut input) {
            Progress::More => assert!(fed < patience(limit)),
            Progress::Endless => break,
            other @ Progress::End(_) => panic!("{other:?}"),
        }
        if fed > limit {
            assert_eq!(receiver.capacity(), 0);
        }
    }
    assert!(fed - patience(limit) < line.len());

    // Fed all at once, it stops at the same octet.
    let mut input = BytesMut::from(vec![b'x'; patience(limit) + 5].as_slice());
    input.extend_from_slice(b"\r\n.\r\n");
    assert_eq!(
        DataReceiver::new(limit, None, BareNewline::Refuse).receive(&mut input),
        Progress::Endless
    );
    assert_eq!(&input[..], b"xxxxx\r\n.\r\n");
}

#[test]
fn the_declared_size_reserves_up_to_the_limit() {
    for (declared, capacity) in [
        (None, 0),
        (Some(10), 10),
        (Some(1000), 1000),
        (Some(u64::MAX), 1000),
    ] {
        let refuse = BareNewline::Refuse;
        assert_eq!(
            DataReceiver::new(1000, declared, refuse).capacity(),
            capacity
        );
        assert_eq!(
            ChunkReceiver::new(1000, declared, refuse).capacity(),
            capacity
        );
    }
}

fn chunks(limit: usize, pieces: &[&[u8]]) -> Result<Vec<u8>, RefusedContent> {
    received_chunks(ChunkReceiver::new(limit, None, BareNewline::Refuse), pieces)
}

fn received_chunks(
    mut receiver: ChunkReceiver,
    pieces: &[&[u8]],
) -> Result<Vec<u8>, RefusedContent> {
    for piece in pieces {
        let mut input = BytesMut::from(*piece);
        let mut remaining = piece.len() as u64;
        assert!(receiver.receive(&mut input, &mut remaining));
        assert_eq!((remaining, input.len()), (0, 0));
    }
    receiver.finish()
}

#[test]
fn chunks_are_raw_and_checked() {
    for (text, expected) in [
        ("", Ok(())),
        ("a\r\n.\r\n..b\r\n", Ok(())),
        ("no line end", Ok(())),
        ("a\rb", Err(RefusedContent::Malformed)),
        ("a\nb", Err(RefusedContent::Malformed)),
        ("\n", Err(RefusedContent::Malformed)),
        ("a\r", Err(RefusedContent::Malformed)),
        ("a\r\r\n", Err(RefusedContent::Malformed)),
        ("a\r\n\n", Err(RefusedContent::Malformed)),
        ("a\0", Err(RefusedContent::Malformed)),
        ("123456789012345678901", Err(RefusedContent::TooLarge)),
        ("12345678901234567890\n", Err(RefusedContent::TooLarge)),
    ] {
        let expected = expected.map(|()| text.as_bytes().to_vec());
        for cut in 0..=text.len() {
            let (before, behind) = text.as_bytes().split_at(cut);
            assert_eq!(
                chunks(20, &[before, b"", behind]),
                expected,
                "{text:?} cut at {cut}"
            );
        }
    }
}

#[test]
fn normalized_chunks_are_measured_alike_at_any_split() {
    for text in [
        "\ra\n\n\n\n\n\n\n\n",
        "\0\n\n\n\n\n\n\n\n\n",
        "a\n\n\n\n\n\n\n\n\r",
    ] {
        for cut in 0..=text.len() {
            let (before, behind) = text.as_bytes().split_at(cut);
            let receiver = ChunkReceiver::new(14, None, BareNewline::Normalize);
            let verdict = received_chunks(receiver, &[before, behind]);
            let expected = Err(RefusedContent::TooLarge);
            assert_eq!(verdict, expected, "{text:?} cut at {cut}");
        }
    }
}

#[test]
fn a_chunk_ends_by_its_count() {
    let mut receiver = ChunkReceiver::new(100, None, BareNewline::Refuse);
    let mut input = BytesMut::from("abcNOOP\r\n");
    let mut remaining = 3;
    assert!(receiver.receive(&mut input, &mut remaining));
    assert_eq!((remaining, &input[..]), (0, &b"NOOP\r\n"[..]));
    assert_eq!(receiver.finish().unwrap(), b"abc");
}

#[test]
fn endless_chunks_stop() {
    let mut receiver = ChunkReceiver::new(10, None, BareNewline::Refuse);
    let mut input = BytesMut::from(vec![b'x'; patience(10) + 1].as_slice());
    let mut remaining = u64::MAX;
    assert!(!receiver.receive(&mut input, &mut remaining));
    assert_eq!((input.len(), receiver.capacity()), (1, 0));
}

/// What a client sends (RFC 5321 §4.5.2).
fn stuff(content: &str) -> String {
    let mut wire = String::new();
    for line in content.split_inclusive("\r\n") {
        if line.starts_with('.') {
            wire.push('.');
        }
        wire.push_str(line);
    }
    wire + ".\r\n"
}

proptest! {
    #[test]
    fn what_is_stuffed_comes_out_as_it_was(
        lines in prop::collection::vec("[.a\u{e9} ]{0,6}", 0..12),
        cuts in prop::collection::vec(1_usize..12, 120),
    ) {
        let content: String = lines.iter().flat_map(|line| [line, "\r\n"]).collect();
        let wire = format!("{}RSET\r\n", stuff(&content));
        let mut pieces = Vec::new();
        let mut rest = wire.as_bytes();
        for cut in cuts {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = behind;
        }
        pieces.push(rest);
        prop_assert_eq!(receive(LIMIT, &pieces), (kept(&content), b"RSET\r\n".to_vec()));
    }

    #[test]
    fn normalized_content_is_the_same_at_any_split_and_by_chunks(
        text in "[.a\r\n]{0,60}",
        cuts in prop::collection::vec(0_usize..20, 8),
    ) {
        let (mut pieces, mut rest) = (Vec::new(), text.as_bytes());
        for cut in cuts {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = behind;
        }
        pieces.push(rest);
        let by_data = |pieces: &[&[u8]]| {
            let mut receiver = DataReceiver::new(LIMIT, None, BareNewline::Normalize);
            let mut input = BytesMut::new();
            for piece in pieces {
                input.extend_from_slice(piece);
                match receiver.receive(&mut input) {
                    Progress::More => {}
                    end => return (end, input.len()),
                }
            }
            (Progress::More, 0)
        };
        // Nothing else ends it, and anything after its end is left alone.
        let wire = format!("{}\r\n.\r\n", stuff(&text));
        let at = format!("\r\n{wire}").find("\r\n.\r\n").unwrap_or(0);
        let left = wire.len() - at - 3;
        let whole = by_data(&[wire.as_bytes()]);
        let bytes: Vec<&[u8]> = wire.as_bytes().chunks(1).collect();
        let (one_by_one, _) = by_data(&bytes);
        prop_assert_eq!(whole.1, left);
        prop_assert_eq!(&one_by_one, &whole.0);
        if let Progress::End(Ok(content)) = whole.0 {
            let content = String::from_utf8(content).unwrap();
            prop_assert!(!content.replace("\r\n", "").contains(['\r', '\n']), "{:?}", content);
        }

        let mut receiver = ChunkReceiver::new(LIMIT, None, BareNewline::Normalize);
        for piece in pieces {
            let mut remaining = piece.len() as u64;
            prop_assert!(receiver.receive(&mut BytesMut::from(piece), &mut remaining));
        }
        let expected = text.replace("\r\n", "\n").replace('\n', "\r\n");
        let expected = if text.replace("\r\n", "").contains('\r') {
            Err(RefusedContent::Malformed)
        } else {
            Ok(expected.into_bytes())
        };
        prop_assert_eq!(receiver.finish(), expected);
    }

    #[test]
    fn the_end_is_the_first_crlf_dot_crlf(text in "[.a\r\n\0]{0,60}", cut in 0_usize..60) {
        let (before, behind) = text.as_bytes().split_at(cut.min(text.len()));
        let (progress, rest) = receive(LIMIT, &[before, behind]);
        let whole = format!("\r\n{text}");
        match whole.find("\r\n.\r\n") {
            None => prop_assert_eq!(progress, Progress::More),
            Some(end) => {
                prop_assert_eq!(rest, &whole.as_bytes()[end + 5..]);
                let lines = &whole[..end];
                let malformed = lines.replace("\r\n", "").contains(['\r', '\n', '\0']);
                match progress {
                    Progress::End(Ok(content)) => {
                        prop_assert!(!malformed);
                        let stuffed = stuff(std::str::from_utf8(&content).unwrap());
                        // A lone dot before a line without one is dropped and can't be restored.
                        let normal: String = lines.get(2..).map(|sent| format!("{sent}\r\n")).unwrap_or_default()
                            .split_inclusive("\r\n")
                            .map(|line| match line.strip_prefix('.') {
                                Some(rest) if !rest.starts_with('.') => rest.to_owned(),
                                _ => line.to_owned(),
                            })
                            .collect();
                        prop_assert_eq!(stuffed, format!("{normal}.\r\n"));
                    }
                    other => {
                        prop_assert_eq!(other, Progress::End(Err(RefusedContent::Malformed)));
                        prop_assert!(malformed);
                    }
                }
            }
        }
    }
}
