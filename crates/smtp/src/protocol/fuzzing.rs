//! Fuzz targets of the protocol's parts: the result doesn't depend on how the input is split.

#![expect(
    clippy::missing_panics_doc,
    reason = "targets panic if an invariant is violated"
)]

use bytes::BytesMut;

use super::command::Command;
use super::data::{ChunkReceiver, DataReceiver, Progress, RefusedContent};
use super::line::{Line, LineReader};
use super::proxy;
use crate::protocol::data::BareNewline;
use mailgate_types::fuzzing::{Input, is_printable, pieces};

/// Size limit of a message, in octets.
const LIMIT: usize = 600;

/// One command line: everything accepted is bounded, and addresses are unchanged.
pub fn smtp_commands(data: &[u8]) {
    match Command::parse(data) {
        Err(reply) => assert!((500..600).contains(&reply.code()), "{reply:?}"),
        Ok(Command::Ehlo(name) | Command::Helo(name)) => {
            assert!((1..=255).contains(&name.len()) && is_printable(&name));
        }
        Ok(Command::Mail { reverse_path, .. }) => {
            assert!(is_printable(&reverse_path) && contains(data, reverse_path.as_bytes()));
        }
        Ok(Command::Rcpt { forward_path }) => {
            let line = format!("RCPT TO:<{forward_path}>");
            let again = Command::parse(line.as_bytes());
            assert!(
                matches!(again, Ok(Command::Rcpt { forward_path: other }) if other == forward_path),
                "{line}"
            );
            assert!(contains(data, forward_path.as_str().as_bytes()));
        }
        Ok(_) => {}
    }
}

fn contains(data: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(data, part).is_some()
}

/// Splits a stream into command lines.
pub fn smtp_lines(data: &[u8]) {
    let mut input = Input::new(data);
    let limit = usize::from(input.byte()).max(2);
    let cuts = input.cuts();
    let stream = input.rest();
    let whole = lines(&[stream], limit);
    assert_eq!(lines(&pieces(stream, cuts), limit), whole);
    assert_eq!(lines(&pieces(stream, &[1]), limit), whole);
}

fn lines(pieces: &[&[u8]], limit: usize) -> Vec<Line> {
    let (mut reader, mut input, mut lines) = (LineReader::new(), BytesMut::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        while let Some(line) = reader.next(&mut input, limit) {
            if let Line::Whole(line) = &line {
                assert!(line.len() + 2 <= limit);
                assert!(memchr::memchr2(b'\r', b'\n', line).is_none());
            }
            lines.push(line);
        }
        assert!(input.len() < limit, "{} octets are held", input.len());
    }
    lines
}

/// A message's content by DATA and by BDAT: accepted content equals the sent content, octet for octet, except for
/// normalized bare line feeds.
pub fn smtp_content(data: &[u8]) {
    let mut input = Input::new(data);
    let taken_from = usize::from(input.byte());
    let (cuts, chunks) = (input.cuts(), input.cuts());
    let content = input.rest();
    for bare_newline in [BareNewline::Refuse, BareNewline::Normalize] {
        let expected = verdict(content, bare_newline);
        let by_bdat = |chunks, cuts| by_bdat(content, chunks, cuts, taken_from, bare_newline);
        for received in [by_bdat(chunks, cuts), by_bdat(&[], &[]), by_bdat(&[1], &[])] {
            assert_eq!(received, expected, "by BDAT");
        }
        stuffed_content(content, &expected, cuts, taken_from, bare_newline);
        let stream = [content, b"\r\n.\r\nQUIT\r\n"].concat();
        any_stream(&stream, cuts, taken_from, bare_newline);
    }
}

/// The content as sent by DATA by a client that dot-stuffs its lines.
fn stuffed_content(
    content: &[u8],
    expected: &Result<Vec<u8>, RefusedContent>,
    cuts: &[u8],
    taken_from: usize,
    bare_newline: BareNewline,
) {
    let mut stuffed = Vec::new();
    let mut at_line_start = true;
    for byte in content {
        if at_line_start && *byte == b'.' {
            stuffed.push(b'.');
        }
        at_line_start = *byte == b'\n'
            && (stuffed.last() == Some(&b'\r') || bare_newline == BareNewline::Normalize);
        stuffed.push(*byte);
    }
    let is_whole = content.is_empty() || content.ends_with(b"\r\n");
    if !is_whole {
        stuffed.extend_from_slice(b"\r\n");
    }
    stuffed.extend_from_slice(b".\r\nQUIT\r\n");
    for cuts in [cuts, &[], &[1]] {
        let (received, left) = by_data(&stuffed, cuts, taken_from, bare_newline);
        match (expected, is_whole) {
            (Ok(content), true) => {
                assert_eq!(received, Progress::End(Ok(content.clone())), "by DATA");
                assert_eq!(left, b"QUIT\r\n");
            }
            (Ok(content), false) if content.len() + 2 <= LIMIT => {
                let content = [content, &b"\r\n"[..]].concat();
                assert_eq!(received, Progress::End(Ok(content)), "by DATA");
            }
            // It may end elsewhere, but must not become another message.
            _ => assert!(!matches!(received, Progress::End(Ok(_))), "by DATA"),
        }
    }
}

/// Any stream after DATA: only the first dot on its own line between CRLFs ends it.
fn any_stream(stream: &[u8], cuts: &[u8], taken_from: usize, bare_newline: BareNewline) {
    let behind_command = [&b"\r\n"[..], stream].concat();
    let Some(end) = memchr::memmem::find(&behind_command, b"\r\n.\r\n") else {
        unreachable!("the stream ends so");
    };
    let mut unstuffed = Vec::new();
    let (mut before, mut rest) = (&b"\r\n"[..], &stream[..end]);
    while !rest.is_empty() {
        // The client didn't stuff a single dot after a bare line feed.
        let drops_dot = match before {
            b"\r\n" => rest.starts_with(b"."),
            _ => rest.starts_with(b".."),
        };
        rest = &rest[usize::from(drops_dot)..];
        let line = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let (line, behind) = rest.split_at(line);
        unstuffed.extend_from_slice(line);
        before = if line.ends_with(b"\r\n") {
            b"\r\n"
        } else {
            b"\n"
        };
        rest = behind;
    }
    let expected = verdict(&unstuffed, bare_newline);
    let whole = by_data(stream, &[], taken_from, bare_newline);
    assert_eq!(whole.1, stream[end + 3..]);
    match (&whole.0, &expected) {
        // Its length when dots and bare CRs mix doesn't matter.
        (Progress::End(Err(_)), Err(_)) => {}
        (Progress::End(received), expected) => assert_eq!(received, expected, "by DATA"),
        _ => unreachable!("it has ended"),
    }
    for cuts in [cuts, &[1]] {
        let received = by_data(stream, cuts, taken_from, bare_newline);
        assert_eq!(received, whole, "by DATA");
    }
}

/// The content expected to arrive, or the expected refusal.
fn verdict(content: &[u8], bare_newline: BareNewline) -> Result<Vec<u8>, RefusedContent> {
    let mut rest = content.iter().peekable();
    let (mut kept, mut malformed) = (Vec::new(), false);
    while let Some(byte) = rest.next() {
        match byte {
            b'\r' if rest.next_if_eq(&&b'\n').is_some() => kept.extend_from_slice(b"\r\n"),
            b'\n' if bare_newline == BareNewline::Normalize => kept.extend_from_slice(b"\r\n"),
            byte => {
                malformed |= matches!(byte, b'\r' | b'\n' | 0);
                kept.push(*byte);
            }
        }
    }
    if kept.len() > LIMIT {
        Err(RefusedContent::TooLarge)
    } else if malformed {
        Err(RefusedContent::Malformed)
    } else {
        Ok(kept)
    }
}

fn by_bdat(
    content: &[u8],
    chunks: &[u8],
    cuts: &[u8],
    taken_from: usize,
    bare_newline: BareNewline,
) -> Result<Vec<u8>, RefusedContent> {
    let mut receiver = ChunkReceiver::new(LIMIT, None, bare_newline);
    let mut taken = Vec::new();
    for chunk in pieces(content, chunks) {
        let mut remaining = chunk.len() as u64;
        for piece in pieces(chunk, cuts) {
            let mut input = BytesMut::from(piece);
            assert!(receiver.receive(&mut input, &mut remaining));
            assert!(input.is_empty());
            taken.extend(receiver.take(taken_from.max(1)).unwrap_or_default());
        }
        assert_eq!(remaining, 0);
    }
    let rest = receiver.finish()?;
    Ok([taken, rest].concat())
}

fn by_data(
    stuffed: &[u8],
    cuts: &[u8],
    taken_from: usize,
    bare_newline: BareNewline,
) -> (Progress, Vec<u8>) {
    let mut receiver = DataReceiver::new(LIMIT, None, bare_newline);
    let (mut input, mut taken) = (BytesMut::new(), Vec::new());
    let mut progress = Progress::More;
    for piece in pieces(stuffed, cuts) {
        input.extend_from_slice(piece);
        if progress == Progress::More {
            progress = receiver.receive(&mut input);
            taken.extend(receiver.take(taken_from.max(1)).unwrap_or_default());
        }
    }
    if let Progress::End(Ok(rest)) = progress {
        progress = Progress::End(Ok([taken, rest].concat()));
    }
    (progress, input.to_vec())
}

/// A PROXY header, read as a connection does: never an octet more than requested.
pub fn proxy_header(data: &[u8]) {
    let mut input = Input::new(data);
    let cuts = input.cuts();
    let stream = input.rest();
    let read = |cuts: &[u8]| {
        let (mut taken, mut cuts) = (0, cuts.iter().cycle());
        loop {
            match proxy::parse(&stream[..taken]) {
                Ok(proxy::Progress::Wants(wanted)) if taken < stream.len() => {
                    assert!(wanted > 0 && taken + wanted <= proxy::LONGEST);
                    let piece = cuts.next().map_or(wanted, |cut| usize::from(*cut).max(1));
                    taken = stream.len().min(taken + piece.min(wanted));
                }
                outcome => return (outcome, taken),
            }
        }
    };
    let whole = read(&[]);
    for other in [read(cuts), read(&[1])] {
        assert_eq!(other.0, whole.0);
        // An error may be detected before all requested octets have arrived.
        assert!(whole.0.is_err() || other.1 == whole.1);
    }
    if let Ok(proxy::Progress::Whole { client }) = whole.0 {
        assert_eq!(client.map(|client| client.to_canonical()), client);
    }
}
