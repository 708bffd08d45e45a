//! The fields of a header, and of a delivery status, which have the same syntax (RFC 5322 §2.2, RFC 3464 §2.1).

use crate::lines::{Line, Lines};

/// Bytes kept of one value; the rest is ignored.
const VALUE: usize = 16 * 1024;

/// An entry in a block of fields.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Field {
        /// In lower case.
        name: String,
        /// Unfolded.
        value: String,
    },
    /// An empty line.
    Blank,
}

/// Reads `block` entry by entry; a line that isn't a field continues the previous one, since some servers forget to
/// indent the continuation lines of a diagnostic.
pub(crate) struct Entries<'a> {
    lines: Lines<'a>,
}

impl<'a> Entries<'a> {
    pub(crate) fn of(block: &'a [u8]) -> Self {
        let lines = Lines::from(block, 0);
        Self { lines }
    }

    /// The next line of the current field, if any. Blank lines may precede it, if it is indented (RFC 5322 §4.2,
    /// obs-FWS).
    fn continuation(&mut self) -> Option<&'a [u8]> {
        let mut ahead = self.lines.clone();
        let mut line = ahead.next()?.text;
        let is_behind_blanks = is_blank(line);
        while is_blank(line) {
            if !is_indented(line) {
                return None;
            }
            line = ahead.next()?.text;
        }
        let goes_on = is_indented(line) || !is_behind_blanks && split(line).is_none();
        goes_on.then(|| {
            self.lines = ahead;
            line
        })
    }
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            let line = self.lines.next()?.text;
            if is_blank(line) {
                return Some(Entry::Blank);
            }
            let Some((name, first)) = split(line) else {
                continue;
            };
            let mut value = first.to_vec();
            while let Some(more) = self.continuation() {
                if value.len() < VALUE {
                    value.push(b' ');
                    value.extend_from_slice(more.trim_ascii());
                }
            }
            value.truncate(VALUE);
            return Some(Entry::Field {
                name: String::from_utf8_lossy(name).to_ascii_lowercase(),
                value: String::from_utf8_lossy(value.trim_ascii()).into_owned(),
            });
        }
    }
}

/// The end of the header that begins at `begin`: after its empty line, or before a delimiter. A line of blanks ends it
/// only if no header line follows: it may be a fold (RFC 5322 §4.2), or a server's empty line.
pub(crate) fn end_of_header(
    text: &[u8],
    begin: usize,
    is_delimiter: impl Fn(Line<'_>) -> bool,
) -> usize {
    let mut blanks: Option<usize> = None;
    for line in Lines::from(text, begin) {
        if is_delimiter(line) {
            return line.begin;
        }
        if is_blank(line.text) {
            if !is_indented(line.text) {
                return line.next;
            }
            blanks.get_or_insert(line.next);
            continue;
        }
        let goes_on = is_indented(line.text) || split(line.text).is_some();
        match blanks.take() {
            Some(end) if !goes_on => return end,
            _ => {}
        }
    }
    text.len()
}

/// The values of the fields with this name in a header; the text may continue after it.
pub(crate) fn values<'a>(header: &'a [u8], name: &'a str) -> impl Iterator<Item = String> + 'a {
    let end = end_of_header(header, 0, |_| false);
    Entries::of(&header[..end]).filter_map(move |entry| match entry {
        Entry::Field { name: its, value } => its.eq_ignore_ascii_case(name).then_some(value),
        Entry::Blank => None,
    })
}

/// The value of the first field with this name.
pub(crate) fn value(header: &[u8], name: &str) -> Option<String> {
    values(header, name).next()
}

/// Splits the first line of a field into name and value.
pub(crate) fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    let name = line[..colon].trim_ascii_end();
    let is_name = !name.is_empty()
        && name
            .iter()
            .all(|byte| matches!(byte, b'!'..=b'9' | b';'..=b'~'));
    is_name.then(|| (name, &line[colon + 1..]))
}

pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

pub(crate) fn is_indented(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

/// The word before the first `;` of a structured value, in lower case, and the parameters by name (RFC 2045 §5.1).
pub(crate) fn parameters(value: &str) -> (String, Vec<(String, String)>) {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let (mut quoted, mut escaped) = (false, false);
    for letter in value.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => {
                escaped = true;
                continue;
            }
            '"' => {
                quoted = !quoted;
                continue;
            }
            ';' if !quoted => {
                pieces.push(std::mem::take(&mut piece));
                continue;
            }
            _ => {}
        }
        piece.push(letter);
    }
    pieces.push(piece);
    let mut pieces = pieces.into_iter();
    let word = pieces
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let named = pieces.filter_map(|piece| {
        let (name, value) = piece.split_once('=')?;
        Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
    });
    (word, named.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_unfolded() {
        let block = b"From here\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp;\r\n 550 a\r\n550 b\r\n\r\nAction : failed";
        let entries: Vec<Entry> = Entries::of(block).collect();
        let field = |name: &str, value: &str| Entry::Field {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        assert_eq!(
            entries,
            [
                field("status", "5.1.1"),
                field("diagnostic-code", "smtp; 550 a 550 b"),
                Entry::Blank,
                field("action", "failed"),
            ]
        );
        assert_eq!(value(block, "status").as_deref(), Some("5.1.1"));
        assert_eq!(value(block, "action"), None);
    }

    #[test]
    fn structured_values() {
        let (word, named) =
            parameters("Multipart/Report; report-type=\"a;b\\\"c\" ;BOUNDARY = x; y");
        assert_eq!(word, "multipart/report");
        assert_eq!(
            named,
            [
                ("report-type".to_owned(), "a;b\"c".to_owned()),
                ("boundary".to_owned(), "x".to_owned()),
            ]
        );
    }
}
