//! Receives a message's content: DATA (RFC 5321 §4.5.2) and BDAT chunks (RFC 3030). What the content
//! means, and which reply a refusal becomes, is decided elsewhere.

use bytes::{Buf, BytesMut};

/// What becomes of an LF without its CR in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareNewline {
    /// The message is refused.
    Refuse,
    /// It becomes CRLF, and ends a line but never the message.
    Normalize,
}

/// Reserved for a message at most before it comes: whoever declares a size need not keep his word.
/// Room for a piece as drivers take them, and for what one read brings beyond it.
const RESERVED: usize = 384 * 1024;

/// Up to here content grows as it comes, in octets.
const SMALL: usize = 64 * 1024;

/// Swallowed beyond twice the limit before the session has to close, in octets.
const PATIENCE: usize = 1024 * 1024;

/// Octets that are swallowed, and not one more, of a message that has a limit.
#[must_use]
pub fn patience(limit: usize) -> usize {
    limit.saturating_mul(2).saturating_add(PATIENCE)
}

/// Why content is refused. It was swallowed up to its end nevertheless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedContent {
    /// More octets than the limit.
    #[error("the message exceeds the size limit")]
    TooLarge,
    /// A CR by itself, an LF where it isn't normalized, or a NUL (RFC 5321 §2.3.8, RFC 5322 §4).
    #[error("the message holds a bare CR, a bare LF or a NUL")]
    Malformed,
}

/// What became of a DATA command's input.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// All input is consumed and the end hasn't come.
    More,
    /// The end came; what follows it is left in the input.
    End(Result<Vec<u8>, RefusedContent>),
    /// No end within twice the limit and 1 MiB: close the connection.
    Endless,
}

/// The octets kept of a message, once, and what speaks against them.
#[derive(Debug)]
struct KeptContent {
    octets: Vec<u8>,
    /// Octets that came, kept or not.
    length: usize,
    limit: usize,
    bare_newline: BareNewline,
    malformed: bool,
}

impl KeptContent {
    fn new(limit: usize, declared: Option<u64>, bare_newline: BareNewline) -> Self {
        let mut octets = Vec::new();
        let declared = declared.map_or(0, |size| usize::try_from(size).unwrap_or(limit));
        // Without the memory the message grows as it comes, and fails only if it has to.
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

    /// A message that has proved large gets the room of a piece at once, instead of moving to twice
    /// the room again and again and leaving copies behind.
    fn make_room(&mut self, more: usize) {
        let needed = self.octets.len().saturating_add(more);
        if self.length > SMALL && needed > self.octets.capacity() && needed <= RESERVED {
            // Without the memory it grows as it comes.
            let _ = self.octets.try_reserve_exact(RESERVED - self.octets.len());
        }
    }

    /// Keeps the octets before an LF without its CR, and CRLF in its place; `false` when it isn't taken.
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

    /// What has come since the last time, once it is at least so much. What is refused later was
    /// taken in vain.
    fn take(&mut self, at_least: usize) -> Option<Vec<u8>> {
        (self.octets.len() >= at_least).then(|| {
            let mut octets = std::mem::take(&mut self.octets);
            octets.shrink_to_fit();
            octets
        })
    }

    /// The first reason of the two in a fixed order, since which of them shows first depends on
    /// where the input was cut.
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

/// Where in a line the next octet stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    LineStart,
    /// Behind a dot that began the line and is not kept.
    Dot,
    /// Behind such a dot and a CR: an LF here ends the message.
    DotCr,
    Inside,
    /// Behind a CR that only an LF may follow.
    Cr,
    /// Behind an LF by itself.
    BareLineStart,
    /// Behind a dot behind such an LF, not kept yet. Clients that stuff dots there send two.
    BareDot,
}

/// Receives what follows a DATA command, up to `CRLF . CRLF` and nothing else.
#[derive(Debug)]
pub struct DataReceiver {
    content: KeptContent,
    place: LinePosition,
    /// Octets yet to be taken before the input counts as endless.
    patience: usize,
}

impl DataReceiver {
    /// For content of at most `limit` octets, dots unstuffed; `declared` is SIZE= and reserves.
    #[must_use]
    pub fn new(limit: usize, declared: Option<u64>, bare_newline: BareNewline) -> Self {
        Self {
            content: KeptContent::new(limit, declared, bare_newline),
            // The CRLF of the DATA command counts as the one before the dot.
            place: LinePosition::LineStart,
            patience: patience(limit),
        }
    }

    /// Takes what it can use off `input`.
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

    /// Octets that are kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.content.octets.len()
    }

    /// The octets since the last time, once there are at least so many (more than none).
    pub fn take(&mut self, at_least: usize) -> Option<Vec<u8>> {
        self.content.take(at_least)
    }

    /// Walks over `bytes` from line end to line end and keeps them in runs as long as possible.
    /// Returns the octets consumed and whether the end was among them.
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

/// Assembles the chunks of BDAT commands. Dots mean nothing in them.
#[derive(Debug)]
pub struct ChunkReceiver {
    content: KeptContent,
    after_cr: bool,
    patience: usize,
}

impl ChunkReceiver {
    /// For content of at most `limit` octets over all chunks; `declared` is SIZE= and reserves.
    #[must_use]
    pub fn new(limit: usize, declared: Option<u64>, bare_newline: BareNewline) -> Self {
        Self {
            content: KeptContent::new(limit, declared, bare_newline),
            after_cr: false,
            patience: patience(limit),
        }
    }

    /// Takes up to `remaining` octets of the current chunk off `input` and counts them down.
    /// `false` when the chunks have exceeded twice the limit and 1 MiB: close the connection.
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

    /// Octets that are kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.content.octets.len()
    }

    /// The octets since the last time, once there are at least so many (more than none).
    pub fn take(&mut self, at_least: usize) -> Option<Vec<u8>> {
        self.content.take(at_least)
    }

    /// Keeps octets, in runs as long as possible.
    fn keep(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        let mut unkept = 0;
        let mut malformed = self.after_cr && bytes.first() != Some(&b'\n');
        // What is refused is measured to its end, so that the reason is the same at any split.
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

    /// What speaks against the octets so far.
    ///
    /// # Errors
    ///
    /// When they are too many or malformed. A CR at their end waits for its LF.
    pub fn verdict(&self) -> Result<(), RefusedContent> {
        self.content.verdict()
    }

    /// The content, after its last chunk.
    ///
    /// # Errors
    ///
    /// When it is too large or malformed.
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
