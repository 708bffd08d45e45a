//! One event, one line: untrusted text can't start a line of its own.

use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;

/// A log writer that puts each event on one line.
#[derive(Debug, Clone)]
pub struct SingleLines<W>(pub W);

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for SingleLines<W> {
    type Writer = SingleLineWriter<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        SingleLineWriter(self.0.make_writer())
    }
}

/// Writes one event, passed in one call.
#[derive(Debug)]
pub struct SingleLineWriter<W>(W);

impl<W: Write> Write for SingleLineWriter<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.write_all(&single(event))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The event with each line break, except its last, replaced by a backslash and a letter.
fn single(event: &[u8]) -> Vec<u8> {
    let text = event.strip_suffix(b"\n").unwrap_or(event);
    let mut line = Vec::with_capacity(event.len());
    for byte in text {
        match byte {
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            byte => line.push(*byte),
        }
    }
    line.extend_from_slice(&event[text.len()..]);
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn line_ends_within_an_event_are_shown() {
        for (event, line) in [
            ("INFO a=1\n", "INFO a=1\n"),
            ("error=x\r\nINFO forged\n", "error=x\\r\\nINFO forged\n"),
            ("error=x\n\n", "error=x\\n\n"),
            ("", ""),
        ] {
            assert_eq!(single(event.as_bytes()), line.as_bytes(), "{event:?}");
        }
    }

    proptest! {
        #[test]
        fn any_event_is_one_line(text in any::<String>()) {
            let line = single(format!("{text}\n").as_bytes());
            prop_assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
            prop_assert!(!line.contains(&b'\r'));
        }
    }
}
