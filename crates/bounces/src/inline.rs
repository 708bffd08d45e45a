//! Finds the original within the text of a notification, for servers that don't attach it.

use crate::fields::is_indented;

/// Maximum number of blank lines within a folded field.
const BLANKS: usize = 8;

/// The position of the original in a text.
#[derive(Debug, Default)]
pub(crate) struct Inline {
    /// The line at which the notification's own words end.
    pub(crate) line: Option<usize>,
    /// The original's header; empty if it has no Message-ID.
    pub(crate) header: String,
}

/// Finds the first block of at least two header lines that has a Message-ID.
pub(crate) fn find(lines: &[&str]) -> Inline {
    let mut begun: Option<usize> = None;
    let mut block = String::new();
    let (mut fields, mut has_id) = (0_usize, false);
    let mut is_set_in = false;
    for (number, line) in lines.iter().enumerate() {
        if begun.is_some() && !is_set_in && is_fold(&lines[number..]) {
            continue;
        }
        let text = line.trim_start_matches(['>', '|', ' ', '\t']);
        if let Some(name) = field_name(text) {
            begun.get_or_insert(number);
            is_set_in = text.len() < line.len();
            fields += 1;
            has_id |= name.eq_ignore_ascii_case("message-id");
            block.push_str(text);
            block.push_str("\r\n");
        } else if begun.is_some() && is_indented(line.as_bytes()) && !text.is_empty() {
            block.push(' ');
            block.push_str(text);
            block.push_str("\r\n");
        } else {
            if has_id && fields >= 2 {
                break;
            }
            begun = None;
            (fields, has_id) = (0, false);
            block.clear();
        }
    }
    if has_id && fields >= 2 {
        return Inline {
            line: begun,
            header: block,
        };
    }
    Inline::default()
}

/// Whether a header continues after blank lines (RFC 5322 §4.2).
fn is_fold(lines: &[&str]) -> bool {
    let is_blanks = |line: &&&str| is_indented(line.as_bytes()) && line.trim().is_empty();
    let blanks = lines.iter().take(BLANKS).take_while(is_blanks).count();
    let next = lines.get(blanks).filter(|_| blanks > 0);
    next.is_some_and(|next| {
        !next.trim().is_empty() && (is_indented(next.as_bytes()) || field_name(next).is_some())
    })
}

/// The name of a header field that looks like one of a message.
fn field_name(text: &str) -> Option<&str> {
    let (name, _) = text.split_once(':')?;
    let mut letters = name.bytes();
    let begins = letters
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic());
    let is_name = begins
        && name.len() >= 2
        && letters.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_within_a_text() {
        let text = "Sorry.\n  To: a@x.org\n  Subject: hi\n\nError: x\n\nReceived: from a\n\tby b\nMessage-ID: <m@x>\n\nbody";
        let lines: Vec<&str> = text.lines().collect();
        let found = find(&lines);
        assert_eq!(found.line, Some(6));
        assert_eq!(
            found.header,
            "Received: from a\r\n by b\r\nMessage-ID: <m@x>\r\n"
        );
        assert_eq!(find(&["Message-ID: <m@x>"]).line, None);
        let folded = [
            "To: a@x.org",
            "X-Spam-Report:",
            " \t",
            "\t* 1.0 x",
            " ",
            "Message-ID: <m@x>",
            "",
            "To: b",
        ];
        let found = find(&folded);
        assert_eq!(found.line, Some(0));
        assert!(
            found.header.ends_with("* 1.0 x\r\nMessage-ID: <m@x>\r\n"),
            "{}",
            found.header
        );
        // If everything is indented, a blank line is the empty line.
        let set_in = ["  To: a@x.org", "  Message-ID: <m@x>", "  ", "  X: y"];
        assert_eq!(find(&set_in).header, "To: a@x.org\r\nMessage-ID: <m@x>\r\n");
        assert_eq!(find(&["> From: x", "> Message-Id: <m@x>"]).line, Some(0));
        assert_eq!(find(&[]).line, None);
    }
}
