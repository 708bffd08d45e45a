//! A reply: its code, its enhanced status code and its lines (RFC 5321 §4.2, RFC 2034).

/// Longest text of one line, in octets. A whole line has at most 512 (RFC 5321 §4.5.3.1.5), of which code, enhanced
/// code, separators and CRLF take up to 19.
const MAXIMUM_TEXT: usize = 480;

/// Replaces a code that SMTP doesn't define: a temporary failure, so that nothing is lost.
const LOCAL_ERROR: u16 = 451;

/// A reply to one command.
///
/// Text may come from elsewhere, such as a provider's reply: control characters and line breaks become spaces, runs of
/// spaces become one, non-ASCII text is transliterated (few replies may contain UTF-8, RFC 6531 §3.7.4), and long text
/// is wrapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    code: u16,
    enhanced: Option<(u8, u16, u16)>,
    lines: Vec<String>,
}

impl Reply {
    /// A reply of one line. `enhanced` has the form `5.7.8`; anything else, such as `""`, omits it.
    #[must_use]
    pub fn new(code: u16, enhanced: &str, text: &str) -> Self {
        Self::with_lines(code, enhanced, &[text])
    }

    /// A reply of several lines, at least one.
    #[must_use]
    pub fn with_lines<Text: AsRef<str>>(code: u16, enhanced: &str, lines: &[Text]) -> Self {
        let mut clean: Vec<String> = lines
            .iter()
            .flat_map(|line| wrap(&sanitise(line.as_ref())))
            .collect();
        if clean.is_empty() {
            clean.push(String::new());
        }
        Self {
            code: if (200..600).contains(&code) {
                code
            } else {
                LOCAL_ERROR
            },
            enhanced: parse_enhanced(enhanced),
            lines: clean,
        }
    }

    /// The three-digit code.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.code
    }

    /// The enhanced status code (RFC 3463), in its three parts.
    #[must_use]
    pub fn enhanced(&self) -> Option<(u8, u16, u16)> {
        self.enhanced
    }

    /// The text, line by line.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Whether it is a temporary refusal (4yz).
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        (400..500).contains(&self.code)
    }

    /// Appends the reply in wire form, including CRLF.
    pub fn write_to(&self, output: &mut Vec<u8>) {
        let last = self.lines.len().saturating_sub(1);
        for (index, line) in self.lines.iter().enumerate() {
            let separator = if index == last { ' ' } else { '-' };
            let start = format!("{:03}{separator}", self.code);
            output.extend_from_slice(start.as_bytes());
            if let Some((class, subject, detail)) = self.enhanced {
                output.extend_from_slice(format!("{class}.{subject}.{detail}").as_bytes());
                if !line.is_empty() {
                    output.push(b' ');
                }
            }
            output.extend_from_slice(line.as_bytes());
            output.extend_from_slice(b"\r\n");
        }
    }
}

/// Three numbers of the grammar in RFC 2034 §4: class 2, 4 or 5, then up to three digits each.
fn parse_enhanced(text: &str) -> Option<(u8, u16, u16)> {
    let mut parts = text.split('.');
    let class = parts
        .next()?
        .parse()
        .ok()
        .filter(|class| matches!(class, 2 | 4 | 5))?;
    let mut number = || parts.next()?.parse().ok().filter(|number| *number < 1000);
    let (subject, detail) = (number()?, number()?);
    parts.next().is_none().then_some((class, subject, detail))
}

fn sanitise(text: &str) -> String {
    // Transliteration would drop control characters and join what they separate.
    let spaced = text.replace(char::is_control, " ");
    let ascii = deunicode::deunicode(&spaced);
    let words: Vec<&str> = ascii
        .split(|character: char| !character.is_ascii_graphic())
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

/// Splits ASCII text into lines, at spaces if there are any.
fn wrap(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while rest.len() > MAXIMUM_TEXT {
        let end = rest[..MAXIMUM_TEXT]
            .rfind(' ')
            .filter(|space| *space > 0)
            .unwrap_or(MAXIMUM_TEXT);
        lines.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    lines.push(rest.to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reply: &Reply) -> String {
        let mut output = Vec::new();
        reply.write_to(&mut output);
        String::from_utf8_lossy(&output).into_owned()
    }

    #[test]
    fn on_the_wire() {
        for (reply, expected) in [
            (Reply::new(250, "2.0.0", "OK"), "250 2.0.0 OK\r\n"),
            (Reply::new(354, "", "Go ahead"), "354 Go ahead\r\n"),
            (Reply::new(334, "", ""), "334 \r\n"),
            (Reply::new(250, "2.0.0", ""), "250 2.0.0\r\n"),
            (
                Reply::with_lines(250, "2.0.0", &["a", "b"]),
                "250-2.0.0 a\r\n250 2.0.0 b\r\n",
            ),
            (Reply::with_lines::<&str>(250, "", &[]), "250 \r\n"),
            (
                Reply::new(550, "5.7.1", "no\r\n250 2.0.0 yes\0"),
                "550 5.7.1 no 250 2.0.0 yes\r\n",
            ),
            (
                Reply::new(550, "5.1.1", "boîte\u{7f}\tinconnue"),
                "550 5.1.1 boite inconnue\r\n",
            ),
            (Reply::new(42, "", "x"), "451 x\r\n"),
            (Reply::new(1000, "", "x"), "451 x\r\n"),
        ] {
            assert_eq!(written(&reply), expected);
        }
    }

    #[test]
    fn enhanced_codes() {
        for (text, expected) in [
            ("5.7.8", Some((5, 7, 8))),
            ("4.999.999", Some((4, 999, 999))),
            ("", None),
            ("3.0.0", None),
            ("5.7", None),
            ("5.7.8.9", None),
            ("5.1000.0", None),
            ("5.x.0", None),
        ] {
            assert_eq!(Reply::new(550, text, "").enhanced(), expected, "{text}");
        }
    }

    #[test]
    fn long_text_is_wrapped_into_lines_of_512_octets() {
        for text in [
            "word ".repeat(300),
            "x".repeat(1500),
            format!(" {}", "x".repeat(1000)),
        ] {
            let wire = written(&Reply::new(550, "5.999.999", &text));
            let lines: Vec<&str> = wire.split_inclusive("\r\n").collect();
            assert!(lines.len() > 2, "{wire}");
            assert!(
                lines
                    .iter()
                    .all(|line| line.len() <= 512 && line.ends_with("\r\n"))
            );
            let last = lines.len() - 1;
            for (index, line) in lines.iter().enumerate() {
                let start = if index == last {
                    "550 5.999.999 "
                } else {
                    "550-5.999.999 "
                };
                assert!(line.starts_with(start), "{line}");
            }
            let letters = |text: &str| text.matches(['x', 'w']).count();
            assert_eq!(letters(&wire), letters(&text));
        }
    }
}
