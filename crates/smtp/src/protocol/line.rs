//! Splits the input into command lines. Only CRLF ends one (RFC 5321 §2.3.8).

use bytes::{Buf, BytesMut};

/// A line, or why it is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A complete line, without its CRLF.
    Whole(BytesMut),
    /// A line with a bare CR or LF. It was consumed up to its CRLF.
    BareLineEnd,
    /// A line over the limit. It was consumed up to its CRLF.
    TooLong,
}

/// Finds lines in a buffer that grows at its end.
///
/// An unfinished line stays in the caller's buffer; a refused line is discarded as it arrives, so the buffer never
/// exceeds the limit.
#[derive(Debug)]
pub struct LineReader {
    state: State,
}

#[derive(Debug)]
enum State {
    /// This many octets of the buffer are known to contain no line end; a CR may be the last.
    Searching { scanned: usize },
    /// The line is refused: its octets are discarded as they arrive.
    Swallowing { too_long: bool, after_cr: bool },
}

impl LineReader {
    /// At the start of a line.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::Searching { scanned: 0 },
        }
    }

    /// Takes the next line from `input`; `None` if its end hasn't arrived yet. `limit` counts octets, CRLF included. Of
    /// two errors the first one is reported.
    pub fn next(&mut self, input: &mut BytesMut, limit: usize) -> Option<Line> {
        loop {
            match self.state {
                State::Searching { scanned } => {
                    if let Some(line) = self.search(input, scanned, limit)? {
                        return Some(line);
                    }
                }
                State::Swallowing { too_long, after_cr } => {
                    if !self.swallow(input, too_long, after_cr) {
                        return None;
                    }
                    self.state = State::Searching { scanned: 0 };
                    return Some(if too_long {
                        Line::TooLong
                    } else {
                        Line::BareLineEnd
                    });
                }
            }
        }
    }

    /// Searches for the CRLF among octets not seen before. `None`: more input is needed; `Some(None)`: the line is
    /// refused and must be discarded.
    #[expect(
        clippy::option_option,
        reason = "the outer one is that of `next`, passed on by `?`"
    )]
    fn search(
        &mut self,
        input: &mut BytesMut,
        scanned: usize,
        limit: usize,
    ) -> Option<Option<Line>> {
        let window = &input[..input.len().min(limit)];
        let found = window
            .get(scanned..)
            .and_then(|rest| memchr::memchr2(b'\r', b'\n', rest));
        if let Some(position) = found.map(|offset| scanned + offset) {
            match (window[position], window.get(position + 1)) {
                (b'\r', Some(b'\n')) => {
                    let mut line = input.split_to(position + 2);
                    line.truncate(position);
                    self.state = State::Searching { scanned: 0 };
                    return Some(Some(Line::Whole(line)));
                }
                // The next octet decides whether this CR stands alone.
                (b'\r', None) => {}
                _ => {
                    input.advance(position + 1);
                    self.state = State::Swallowing {
                        too_long: false,
                        after_cr: false,
                    };
                    return Some(None);
                }
            }
        }
        if input.len() >= limit {
            let after_cr = limit
                .checked_sub(1)
                .is_some_and(|last| input[last] == b'\r');
            input.advance(limit);
            self.state = State::Swallowing {
                too_long: true,
                after_cr,
            };
            return Some(None);
        }
        let open = usize::from(input.last() == Some(&b'\r'));
        self.state = State::Searching {
            scanned: input.len() - open,
        };
        None
    }

    /// Discards octets up to the CRLF; returns whether it was found.
    fn swallow(&mut self, input: &mut BytesMut, too_long: bool, after_cr: bool) -> bool {
        if after_cr && input.first() == Some(&b'\n') {
            input.advance(1);
            return true;
        }
        for position in memchr::memchr_iter(b'\n', input) {
            if position > 0 && input[position - 1] == b'\r' {
                input.advance(position + 1);
                return true;
            }
        }
        if let Some(last) = input.last() {
            self.state = State::Swallowing {
                too_long,
                after_cr: *last == b'\r',
            };
        }
        input.clear();
        false
    }
}

impl Default for LineReader {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
