//! The fuzz target of an IMAP server's responses.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use bytes::BytesMut;

use super::cursor::Cursor;
use super::framing::{Framing, NotAResponse};
use super::refused;
use super::response::parse::parse;
use super::response::{Response, Status};
use super::special_use::{Finder, JUNK, SENT};
use crate::mail::received::Received;
use crate::mail::received::fuzzing::check;
use mailgate_types::fuzzing::{Input, is_printable, pieces};

/// The octets of a literal that are kept.
const KEPT: usize = 256 * 1024;

/// Any stream, however it is split; the kept data is bounded and safe for a log line.
pub fn imap_responses(data: &[u8]) {
    let mut input = Input::new(data);
    let cuts = input.cuts();
    let stream = input.rest();
    let whole = responses(&[stream]);
    assert_eq!(responses(&pieces(stream, cuts)), whole);
    assert_eq!(responses(&pieces(stream, &[1])), whole);
    let (mut sent, mut junk) = (Finder::of(&SENT), Finder::of(&JUNK));
    for response in whole.0 {
        let Ok(response) = response else { continue };
        match response {
            Response::Tagged(_, status) | Response::Untagged(status) => look(&status),
            Response::List(listed) => {
                sent.consider(listed.clone());
                junk.consider(listed);
            }
            Response::Fetch(fetched) => {
                let section = fetched.section.unwrap_or_default();
                assert!(section.len() <= KEPT.max(stream.len()));
                check(&Received::parse(&section));
            }
            _ => {}
        }
    }
    let _ = (sent.name(), junk.name());
    if let Some(cursor) = std::str::from_utf8(stream).ok().and_then(Cursor::read) {
        assert_eq!(Cursor::read(&cursor.to_string()), Some(cursor));
    }
}

fn look(status: &Status) {
    assert!(is_printable(&status.text) && status.text.chars().count() <= 500);
    let _ = (
        refused(status),
        status.number("UIDNEXT"),
        status.code_name(),
    );
}

type Responses = (Vec<Result<Response, NotAResponse>>, bool);

/// The responses, and whether the stream stayed valid.
fn responses(pieces: &[&[u8]]) -> Responses {
    let (mut framing, mut buffer, mut responses) =
        (Framing::default(), BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match framing.take(&mut buffer) {
                Ok(Some(frame)) => {
                    assert!(frame.literals.iter().all(|literal| literal.len() <= KEPT));
                    responses.push(parse(&frame));
                }
                Ok(None) => break,
                Err(_) => return (responses, false),
            }
        }
    }
    (responses, true)
}
