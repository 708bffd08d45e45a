//! The fields of a header, and of the groups of a delivery status, which are written alike (RFC 5322 §2.2, RFC 3464
//! §2.1).

use crate::lines::Lines;

/// Bytes of one value that are kept; what follows is ignored.
const VALUE: usize = 16 * 1024;

/// What stands in a block of fields.
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

/// Reads `block` entry by entry; a line that is no field continues the one before, since some servers forget to
/// indent the further lines of a diagnostic.
pub(crate) struct Entries<'a> {
    lines: std::iter::Peekable<Lines<'a>>,
}

impl<'a> Entries<'a> {
    pub(crate) fn of(block: &'a [u8]) -> Self {
        Self {
            lines: Lines::from(block, 0).peekable(),
        }
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
            while let Some(more) = (self.lines).next_if(|line| {
                !is_blank(line.text) && (is_indented(line.text) || split(line.text).is_none())
            }) {
                if value.len() < VALUE {
                    value.push(b' ');
                    value.extend_from_slice(more.text.trim_ascii());
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

/// The values of the fields with this name, up to the first empty line.
pub(crate) fn values<'a>(header: &'a [u8], name: &'a str) -> impl Iterator<Item = String> + 'a {
    Entries::of(header)
        .map_while(|entry| match entry {
            Entry::Field { name, value } => Some((name, value)),
            Entry::Blank => None,
        })
        .filter_map(move |(its, value)| its.eq_ignore_ascii_case(name).then_some(value))
}

/// The value of the first field with this name.
pub(crate) fn value(header: &[u8], name: &str) -> Option<String> {
    values(header, name).next()
}

/// The name and the value of a line that begins a field.
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
