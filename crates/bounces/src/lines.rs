//! Lines with any line end: CRLF, LF, CR, and the CR CR LF of gateways that convert twice.

use memchr::memchr2;

/// The lines of a text, each with its position.
#[derive(Debug, Clone)]
pub(crate) struct Lines<'a> {
    text: &'a [u8],
    at: usize,
}

/// A line without its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) text: &'a [u8],
    /// Its start in the text.
    pub(crate) begin: usize,
    /// The start of the next line.
    pub(crate) next: usize,
}

impl<'a> Lines<'a> {
    /// The lines from `at` on.
    pub(crate) fn from(text: &'a [u8], at: usize) -> Self {
        Self { text, at }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let begin = self.at;
        let rest = self.text.get(begin..).filter(|rest| !rest.is_empty())?;
        let length = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let ending = match rest[length..] {
            [b'\r', b'\r', b'\n', ..] => 3,
            [b'\r', b'\n', ..] => 2,
            [] => 0,
            _ => 1,
        };
        self.at = begin + length + ending;
        Some(Line {
            text: &rest[..length],
            begin,
            next: self.at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_end() {
        let text = b"a\r\nb\nc\rd\r\r\n\r\n\re";
        let lines: Vec<&[u8]> = Lines::from(text, 0).map(|line| line.text).collect();
        assert_eq!(lines, [&b"a"[..], b"b", b"c", b"d", b"", b"", b"e"]);
        assert_eq!(Lines::from(b"", 0).count(), 0);
        assert_eq!(Lines::from(b"a", 7).count(), 0);
        let whole: usize = Lines::from(text, 0)
            .map(|line| line.next - line.begin)
            .sum();
        assert_eq!(whole, text.len());
    }
}
