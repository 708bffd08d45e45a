//! A message's header fields (RFC 5322 §2.2), parsed so strictly that no other parser finds different ones: one that
//! ends the headers at a malformed line, or skips it, would see another message.

/// A header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field<'a> {
    /// The text before the colon, without trailing white space (RFC 5322 §4.5).
    pub(super) name: &'a [u8],
    /// The text after the colon, still folded.
    pub(super) value: &'a [u8],
}

impl Field<'_> {
    /// Compares names case-insensitively (RFC 5322 §1.2.2).
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// Whether it is effectively absent: no reader finds anything in it.
    pub(super) fn is_empty(&self) -> bool {
        is_empty(self.value)
    }
}

/// Whether a value has nothing but white space, or nothing in its angle brackets.
pub(super) fn is_empty(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let inside = (value.strip_prefix(b"<")).and_then(|rest| rest.strip_suffix(b">"));
    inside.unwrap_or(value).trim_ascii().is_empty()
}

/// A line is neither a field nor the continuation of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoField;

/// The fields of a message, up to its empty line.
pub(super) fn fields(message: &[u8]) -> Result<Vec<Field<'_>>, NoField> {
    let mut fields: Vec<Field<'_>> = Vec::new();
    let mut value_start = 0;
    let mut start = 0;
    while start < message.len() && !message[start..].starts_with(b"\r\n") {
        let length = memchr::memmem::find(&message[start..], b"\r\n");
        let end = length.map_or(message.len(), |length| start + length);
        let line = &message[start..end];
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            let last = fields.last_mut().ok_or(NoField)?;
            last.value = &message[value_start..end];
        } else {
            let colon = memchr::memchr(b':', line).ok_or(NoField)?;
            value_start = start + colon + 1;
            fields.push(Field {
                name: name(&line[..colon])?,
                value: &message[value_start..end],
            });
        }
        start = (end + 2).min(message.len());
    }
    Ok(fields)
}

fn name(text: &[u8]) -> Result<&[u8], NoField> {
    let last = text.iter().rposition(|byte| !matches!(byte, b' ' | b'\t'));
    let name = last.map_or(&text[..0], |last| &text[..=last]);
    let fits = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    fits.then_some(name).ok_or(NoField)
}

#[cfg(test)]
mod tests {
    use mail_parser::MessageParser;
    use proptest::prelude::*;

    use super::*;

    fn read(message: &str) -> Result<Vec<(&str, &str)>, NoField> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or("not UTF-8");
        fields(message.as_bytes()).map(|fields| {
            let pairs = fields.iter();
            pairs
                .map(|field| (text(field.name), text(field.value)))
                .collect()
        })
    }

    #[test]
    fn fields_end_with_the_empty_line() {
        for (message, expected) in [
            ("", vec![]),
            ("\r\nFrom: x\r\n", vec![]),
            ("From: x", vec![("From", " x")]),
            ("From:\r\n", vec![("From", "")]),
            (
                "a:b\r\nC \t: d\r\n\te\r\n \r\n f\r\n\r\ng: h",
                vec![("a", "b"), ("C", " d\r\n\te\r\n \r\n f")],
            ),
            ("a::b:c\r\n", vec![("a", ":b:c")]),
        ] {
            assert_eq!(read(message), Ok(expected), "{message:?}");
        }
    }

    #[test]
    fn any_other_line_is_refused() {
        for message in [
            " folded\r\nFrom: x\r\n\r\n",
            "\tFrom: x\r\n\r\n",
            " \r\nFrom: x\r\n\r\n",
            "From x Sat Jan  3 01:05:34 1996\r\nFrom: x\r\n\r\n",
            "From: x\r\ngarbage\r\nFrom: y\r\n\r\n",
            "From: x\r\n: y\r\n\r\n",
            ":From: x\r\n\r\n",
            "F r o m: x\r\n\r\n",
            "Fr\u{f6}m: x\r\n\r\n",
            "\u{b}From: x\r\n\r\n",
            "From\u{c}: x\r\n\r\n",
            "From: x\r\nno colon",
        ] {
            assert_eq!(read(message), Err(NoField), "{message:?}");
        }
    }

    proptest! {
        // Without Date: mail-parser reads on past the empty line after an invalid one.
        #[test]
        fn another_reader_finds_the_same(
            fields in prop::collection::vec(
                ("(From|To|Bcc|Subject|Content-Type|Received|X-[!-9;-~]{1,40})[ \t]{0,2}",
                 "[ -~\u{e9}]{0,20}(\r\n[ \t][ -~]{0,20}){0,2}"),
                1..8,
            ),
        ) {
            let lines: Vec<String> = fields.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect();
            let message = format!("{}\r\nBody: x\r\n\r\n", lines.concat());
            let found = read(&message).unwrap_or_default();
            let expected: Vec<(&str, &str)> = fields
                .iter()
                .map(|(name, value)| (name.trim_end(), value.as_str()))
                .collect();
            prop_assert_eq!(&found, &expected);
            let parsed = MessageParser::new().parse_headers(message.as_bytes());
            let parsed = parsed.map(|it| it.headers().iter().map(|it| it.name().to_lowercase()).collect());
            let names: Vec<String> = found.iter().map(|(name, _)| name.to_lowercase()).collect();
            prop_assert_eq!(parsed, Some(names));
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = fields(&bytes);
        }
    }
}
