use proptest::prelude::*;

use super::*;

const LIMIT: usize = 16;

fn show(line: Line) -> String {
    match line {
        Line::Whole(line) => String::from_utf8_lossy(&line).into_owned(),
        Line::BareLineEnd => "(bare)".to_owned(),
        Line::TooLong => "(long)".to_owned(),
    }
}

/// The lines of pieces fed one after the other, and what remains in the buffer.
fn read(pieces: &[&[u8]]) -> (Vec<String>, Vec<u8>) {
    let mut reader = LineReader::new();
    let mut input = BytesMut::new();
    let mut lines = Vec::new();
    for piece in pieces {
        input.extend_from_slice(piece);
        while let Some(line) = reader.next(&mut input, LIMIT) {
            lines.push(show(line));
        }
        assert!(
            input.len() < LIMIT,
            "an unfinished line is held beyond the limit"
        );
    }
    (lines, input.to_vec())
}

#[test]
fn lines_whole_and_byte_by_byte() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("", &[], ""),
        ("NOOP\r\n", &["NOOP"], ""),
        ("\r\n\r\n", &["", ""], ""),
        ("A\r\nB\r\nC", &["A", "B"], "C"),
        ("A\r", &[], "A\r"),
        ("A\nB\r\nC\r\n", &["(bare)", "C"], ""),
        ("A\rB\r\nC\r\n", &["(bare)", "C"], ""),
        ("A\r\r\nC\r\n", &["(bare)", "C"], ""),
        ("\nA\r\n", &["(bare)"], ""),
        ("A\n\r\nB\r\n", &["(bare)", "B"], ""),
        ("A\n\n\n", &[], ""),
        // 14 octets and CRLF are the limit; one more is too many.
        ("12345678901234\r\nB\r\n", &["12345678901234", "B"], ""),
        ("123456789012345\r\nB\r\n", &["(long)", "B"], ""),
        ("1234567890123456\r\nB\r\n", &["(long)", "B"], ""),
        ("123456789012345\r\r\nB\r\n", &["(long)", "B"], ""),
        ("1234567890123456789\n\r\r\nB\r\n", &["(long)", "B"], ""),
        ("1234567890\n23456789\r\nB\r\n", &["(bare)", "B"], ""),
    ];
    for (text, lines, rest) in cases {
        let expected = (
            lines.iter().map(ToString::to_string).collect(),
            rest.as_bytes().to_vec(),
        );
        assert_eq!(read(&[text.as_bytes()]), expected, "{text:?}");
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(read(&bytes), expected, "{text:?} byte by byte");
    }
}

#[test]
fn a_line_of_a_megabyte_takes_no_memory() {
    let mut reader = LineReader::new();
    let mut input = BytesMut::with_capacity(4096);
    for _ in 0..1024 {
        input.extend_from_slice(&[b'x'; 1024]);
        assert_eq!(reader.next(&mut input, 2048), None);
        assert!(input.len() < 2048);
        assert!(
            input.capacity() <= 8192,
            "the buffer grew to {}",
            input.capacity()
        );
    }
    input.extend_from_slice(b"\r\nNOOP\r\n");
    assert_eq!(reader.next(&mut input, 2048), Some(Line::TooLong));
    assert_eq!(
        reader.next(&mut input, 2048),
        Some(Line::Whole(BytesMut::from("NOOP")))
    );
    assert_eq!(reader.next(&mut input, 2048), None);
}

proptest! {
    #[test]
    fn any_split_gives_the_same_lines(
        text in "[ab\r\n]{0,80}",
        cuts in prop::collection::vec(1_usize..9, 80),
    ) {
        let mut pieces = Vec::new();
        let mut rest = text.as_bytes();
        for cut in cuts {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = behind;
        }
        prop_assert_eq!(read(&pieces), read(&[text.as_bytes()]));
    }
}
