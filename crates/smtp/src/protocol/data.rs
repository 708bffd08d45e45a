//! Receives a message's content: DATA (RFC 5321 §4.5.2) and BDAT chunks (RFC 3030). The content is interpreted, and a
//! refusal answered, elsewhere.

use bytes::{Buf, BytesMut};

/// How an LF without a CR in a message is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareNewline {
    /// The message is refused.
    Refuse,
    /// It is converted to CRLF; it ends a line but never the message.
    Normalize,
}

/// Maximum memory reserved for a message in advance, since a declared size can't be relied on: room for one piece and
/// one more read.
const RESERVED: usize = 384 * 1024;

/// Content up to this size grows as it arrives, in octets.
const SMALL: usize = 64 * 1024;

/// How much beyond twice the limit is discarded before the session must close, in octets.
const PATIENCE: usize = 1024 * 1024;

/// The exact number of octets read for a message with this limit before giving up.
#[must_use]
pub fn patience(limit: usize) -> usize {
    limit.saturating_mul(2).saturating_add(PATIENCE)
}

/// Why content is refused. It has been consumed to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedContent {
    /// It exceeds the limit.
    #[error("the message exceeds the size limit")]
    TooLarge,
    /// A CR without LF, an LF without CR where it isn't normalized, or a NUL (RFC 5321 §2.3.8, RFC 5322 §4).
    #[error("the message holds a bare CR, a bare LF or a NUL")]
    Malformed,
}

/// The result of receiving input after a DATA command.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// All input is consumed, and the end hasn't been reached.
    More,
    /// The end was reached; anything after it is left in the input.
    End(Result<Vec<u8>, RefusedContent>),
    /// No end within twice the limit and 1 MiB: close the connection.
    Endless,
}

/// The octets kept of a message, and the reasons to refuse it.
#[derive(Debug)]
struct KeptContent {
    octets: Vec<u8>,
    /// Octets received, kept or not.
    length: usize,
    limit: usize,
    bare_newline: BareNewline,
    malformed: bool,
}

impl KeptContent {
    fn new(limit: usize, declared: Option<u64>, bare_newline: BareNewline) -> Self {
        let mut octets = Vec::new();
        let declared = declared.map_or(0, |size| usize::try_from(size).unwrap_or(limit));
        // If memory isn't available, the message grows as it arrives.
        let _ = octets.try_reserve_exact(declared.min(limit).min(RESERVED));
        Self {
            octets,
            length: 0,
            limit,
            bare_newline,
            malformed: false,
        }
    }

    fn push(&mut self, octets: &[u8]) {
        self.length = self.length.saturating_add(octets.len());
        if self.length > self.limit {
            self.octets = Vec::new();
        } else if !self.malformed {
            self.make_room(octets.len());
            self.octets.extend_from_slice(octets);
        }
    }

    /// Once a message proves large, reserves the room of a whole piece, instead of repeatedly reallocating to twice the
    /// size and leaving copies behind.
    fn make_room(&mut self, more: usize) {
        let needed = self.octets.len().saturating_add(more);
        if self.length > SMALL && needed > self.octets.capacity() && needed <= RESERVED {
            // If memory isn't available, it grows as it arrives.
            let _ = self.octets.try_reserve_exact(RESERVED - self.octets.len());
        }
    }

    /// Keeps the octets before an LF without a CR, and CRLF in place of the LF; `false` if it is refused.
    fn push_bare_newline(&mut self, before: &[u8]) -> bool {
        let is_taken = self.bare_newline == BareNewline::Normalize;
        if is_taken {
            self.push(before);
            self.push(b"\r\n");
        }
        is_taken
    }

    fn refuse_malformed(&mut self) {
        self.malformed = true;
        self.octets = Vec::new();
    }

    /// Takes the octets since the last call, once there are at least `at_least`. The message may still be refused
    /// later.
    fn take(&mut self, at_least: usize) -> Option<Vec<u8>> {
        (self.octets.len() >= at_least).then(|| {
            let mut octets = std::mem::take(&mut self.octets);
            octets.shrink_to_fit();
            octets
        })
    }

    /// The reason to refuse the message. The two have a fixed order, since the order of detection depends on how the
    /// input was split.
    fn verdict(&self) -> Result<(), RefusedContent> {
        if self.length > self.limit {
            Err(RefusedContent::TooLarge)
        } else if self.malformed {
            Err(RefusedContent::Malformed)
        } else {
            Ok(())
        }
    }
}

/// The position of the next octet in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    LineStart,
    /// After a dot that began the line and is not kept.
    Dot,
    /// After such a dot and a CR: an LF here ends the message.
    DotCr,
    Inside,
    /// After a CR that only an LF may follow.
    Cr,
    /// After an LF without a CR.
    BareLineStart,
    /// After a dot that follows such an LF, not kept yet. Clients that dot-stuff there send two.
    BareDot,
}

/// Receives the content after a DATA command, up to `CRLF . CRLF` and nothing else.
#[derive(Debug)]
pub struct DataReceiver {
    content: KeptContent,
    place: LinePosition,
    /// Octets left until the input counts as endless.
    patience: usize,
}

impl DataReceiver {
    /// For content of at most `limit` octets after dot-unstuffing; `declared` is SIZE= and reserves memory.
    #[must_use]
    pub fn new(limit: usize, declared: Option<u64>, bare_newline: BareNewline) -> Self {
        Self {
            content: KeptContent::new(limit, declared, bare_newline),
            // The CRLF of the DATA command counts as the one before the dot.
            place: LinePosition::LineStart,
            patience: patience(limit),
        }
    }

    /// Consumes what it can use of `input`.
    pub fn receive(&mut self, input: &mut BytesMut) -> Progress {
        let window = input.len().min(self.patience);
        let (consumed, ended) = self.scan(&input[..window]);
        input.advance(consumed);
        self.patience -= consumed;
        if ended {
            let octets = std::mem::take(&mut self.content.octets);
            Progress::End(self.content.verdict().map(|()| octets))
        } else if self.patience == 0 {
            Progress::Endless
        } else {
            Progress::More
        }
    }

    /// The number of octets kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.content.octets.len()
    }

    /// The octets since the last call, once there are at least this many (more than none).
    pub fn take(&mut self, at_least: usize) -> Option<Vec<u8>> {
        self.content.take(at_least)
    }

    /// Scans `bytes` from line end to line end and keeps them in runs as long as possible. Returns the octets consumed
    /// and whether the end was among them.
    fn scan(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut position = 0;
        let mut unkept = 0;
        while let Some(&byte) = bytes.get(position) {
            match (self.place, byte) {
                (LinePosition::LineStart, b'.') => {
                    self.content.push(&bytes[unkept..position]);
                    position += 1;
                    unkept = position;
                    self.place = LinePosition::Dot;
                }
                (LinePosition::Dot, b'\r') => {
                    position += 1;
                    unkept = position;
                    self.place = LinePosition::DotCr;
                }
                (LinePosition::DotCr, b'\n') => return (position + 1, true),
                (LinePosition::Cr, b'\n') => {
                    position += 1;
                    self.place = LinePosition::LineStart;
                }
                (LinePosition::DotCr | LinePosition::Cr, _) => {
                    self.content.refuse_malformed();
                    self.place = LinePosition::Inside;
                }
                (LinePosition::BareLineStart, b'.') => {
                    self.content.push(&bytes[unkept..position]);
                    position += 1;
                    unkept = position;
                    self.place = LinePosition::BareDot;
                }
                (LinePosition::BareDot, b'.') => self.place = LinePosition::Inside,
                (LinePosition::BareDot, _) => {
                    self.content.push(b".");
                    self.place = LinePosition::Inside;
                }
                (
                    LinePosition::LineStart
                    | LinePosition::Dot
                    | LinePosition::Inside
                    | LinePosition::BareLineStart,
                    _,
                ) => {
                    let found = memchr::memchr3(b'\r', b'\n', 0, &bytes[position..]);
                    let end = found.map_or(bytes.len(), |offset| position + offset);
                    self.place = match bytes.get(end) {
                        None => LinePosition::Inside,
                        Some(b'\r') => LinePosition::Cr,
                        Some(b'\n') if self.content.push_bare_newline(&bytes[unkept..end]) => {
                            unkept = end + 1;
                            LinePosition::BareLineStart
                        }
                        Some(_) => {
                            self.content.refuse_malformed();
                            LinePosition::Inside
                        }
                    };
                    position = (end + 1).min(bytes.len());
                }
            }
        }
        self.content.push(&bytes[unkept..]);
        (bytes.len(), false)
    }

    /// Octets of memory held.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.content.octets.capacity()
    }
}

/// Assembles the chunks of BDAT commands, where dots have no special meaning.
#[derive(Debug)]
pub struct ChunkReceiver {
    content: KeptContent,
    after_cr: bool,
    patience: usize,
}

impl ChunkReceiver {
    /// For content of at most `limit` octets over all chunks; `declared` is SIZE= and reserves memory.
    #[must_use]
    pub fn new(limit: usize, declared: Option<u64>, bare_newline: BareNewline) -> Self {
        Self {
            content: KeptContent::new(limit, declared, bare_newline),
            after_cr: false,
            patience: patience(limit),
        }
    }

    /// Consumes up to `remaining` octets of the current chunk from `input` and decrements `remaining`. `false` if the
    /// chunks have exceeded twice the limit and 1 MiB: close the connection.
    pub fn receive(&mut self, input: &mut BytesMut, remaining: &mut u64) -> bool {
        let consumed = usize::try_from(*remaining)
            .unwrap_or(usize::MAX)
            .min(input.len())
            .min(self.patience);
        self.keep(&input[..consumed]);
        input.advance(consumed);
        self.patience -= consumed;
        *remaining -= consumed as u64;
        *remaining == 0 || self.patience > 0
    }

    /// The number of octets kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.content.octets.len()
    }

    /// The octets since the last call, once there are at least this many (more than none).
    pub fn take(&mut self, at_least: usize) -> Option<Vec<u8>> {
        self.content.take(at_least)
    }

    /// Keeps octets, in runs as long as possible.
    fn keep(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        let mut unkept = 0;
        let mut malformed = self.after_cr && bytes.first() != Some(&b'\n');
        // Refused content is measured to its end, so that the reason doesn't depend on how it is split.
        for position in memchr::memchr3_iter(b'\r', b'\n', 0, bytes) {
            malformed |= match bytes[position] {
                b'\r' => bytes.get(position + 1).is_some_and(|next| *next != b'\n'),
                b'\n' if position == 0 && self.after_cr => false,
                b'\n' if position > 0 && bytes[position - 1] == b'\r' => false,
                b'\n' if self.content.push_bare_newline(&bytes[unkept..position]) => {
                    unkept = position + 1;
                    false
                }
                _ => true,
            };
        }
        self.after_cr = *last == b'\r';
        if malformed {
            self.content.refuse_malformed();
        }
        self.content.push(&bytes[unkept..]);
    }

    /// Checks the octets so far.
    ///
    /// # Errors
    ///
    /// If there are too many or they are malformed. A trailing CR still waits for its LF.
    pub fn verdict(&self) -> Result<(), RefusedContent> {
        self.content.verdict()
    }

    /// The content, after its last chunk.
    ///
    /// # Errors
    ///
    /// If it is too large or malformed.
    pub fn finish(mut self) -> Result<Vec<u8>, RefusedContent> {
        if self.after_cr {
            self.content.refuse_malformed();
        }
        self.content.verdict().map(|()| self.content.octets)
    }

    /// Octets of memory held.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.content.octets.capacity()
    }
}

#[cfg(test)]
mod tests;
