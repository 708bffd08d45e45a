//! Fuzz targets of the protocol's pieces: any split of the input gives the same.

use bytes::BytesMut;

use super::command::Command;
use super::data::{ChunkReceiver, DataReceiver, Progress, RefusedContent};
use super::line::{Line, LineReader};
use super::proxy;
use crate::config::BareNewline;
use crate::types::fuzzing::{Input, is_printable, pieces};

/// Octets of a message.
const LIMIT: usize = 600;

/// One command line: what passes is bounded, and an address is the one that was written.
pub(crate) fn smtp_commands(data: &[u8]) {
    match Command::parse(data) {
        Err(reply) => assert!((500..600).contains(&reply.code()), "{reply:?}"),
        Ok(Command::Ehlo(name) | Command::Helo(name)) => {
            assert!((1..=255).contains(&name.len()) && is_printable(&name));
        }
        Ok(Command::Mail { reverse_path, .. }) => {
            let Some(address) = reverse_path else { return };
            let line = format!("MAIL FROM:<{address}> SMTPUTF8 SIZE=1");
            let again = Command::parse(line.as_bytes());
            assert!(
                matches!(again, Ok(Command::Mail { reverse_path: Some(other), .. }) if other == address),
                "{line}"
            );
            assert!(contains(data, address.as_str().as_bytes()), "{address}");
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

/// Command lines out of a stream.
pub(crate) fn smtp_lines(data: &[u8]) {
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

/// A message's content by DATA and by BDAT: what is taken is what was sent, to the octet.
pub(crate) fn smtp_content(data: &[u8]) {
    let mut input = Input::new(data);
    let taken_from = usize::from(input.byte());
    let (cuts, chunks) = (input.cuts(), input.cuts());
    let content = input.rest();
    let expected = match verdict(content) {
        Ok(()) => Ok(content.to_vec()),
        Err(refused) => Err(refused),
    };
    let chunked = by_bdat(content, chunks, cuts, taken_from);
    assert_eq!(chunked, expected, "by BDAT");

    let mut stuffed = Vec::new();
    let mut at_line_start = true;
    for byte in content {
        if at_line_start && *byte == b'.' {
            stuffed.push(b'.');
        }
        at_line_start = *byte == b'\n' && stuffed.last() == Some(&b'\r');
        stuffed.push(*byte);
    }
    let is_whole = content.is_empty() || content.ends_with(b"\r\n");
    if !is_whole {
        stuffed.extend_from_slice(b"\r\n");
    }
    stuffed.extend_from_slice(b".\r\nQUIT\r\n");
    for cuts in [cuts, &[], &[1]] {
        let (received, left) = by_data(&stuffed, cuts, taken_from);
        match (&expected, is_whole) {
            (Ok(content), true) => {
                assert_eq!(received, Progress::End(Ok(content.clone())), "by DATA");
                assert_eq!(left, b"QUIT\r\n");
            }
            (Ok(content), false) if content.len() + 2 <= LIMIT => {
                let content = [content, &b"\r\n"[..]].concat();
                assert_eq!(received, Progress::End(Ok(content)), "by DATA");
            }
            // Where it ends may be another place; it must be no other message.
            _ => assert!(!matches!(received, Progress::End(Ok(_))), "by DATA"),
        }
    }
}

/// What the rules say of a content.
fn verdict(content: &[u8]) -> Result<(), RefusedContent> {
    let mut rest = content.iter().peekable();
    let mut malformed = false;
    while let Some(byte) = rest.next() {
        malformed |= match byte {
            b'\r' => rest.next_if_eq(&&b'\n').is_none(),
            b'\n' | 0 => true,
            _ => false,
        };
    }
    if content.len() > LIMIT {
        Err(RefusedContent::TooLarge)
    } else if malformed {
        Err(RefusedContent::Malformed)
    } else {
        Ok(())
    }
}

fn by_bdat(
    content: &[u8],
    chunks: &[u8],
    cuts: &[u8],
    taken_from: usize,
) -> Result<Vec<u8>, RefusedContent> {
    let mut receiver = ChunkReceiver::new(LIMIT, None, BareNewline::Refuse);
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

fn by_data(stuffed: &[u8], cuts: &[u8], taken_from: usize) -> (Progress, Vec<u8>) {
    let mut receiver = DataReceiver::new(LIMIT, None, BareNewline::Refuse);
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

/// A balancer's header, read as a connection does: never an octet more than is wanted.
pub(crate) fn proxy_header(data: &[u8]) {
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
        // An error may show before all that was wanted has come.
        assert!(whole.0.is_err() || other.1 == whole.1);
    }
    if let Ok(proxy::Progress::Whole { client }) = whole.0 {
        assert_eq!(client.map(|client| client.to_canonical()), client);
    }
}
