//! The media type of an attachment (RFC 2045 §5.1, RFC 6838 §4.2).

/// Longest media type with its parameters, in octets.
const LENGTH: usize = 255;

/// Longest type and longest subtype (RFC 6838 §4.2).
const NAME_LENGTH: usize = 127;

/// Why a text is not a valid media type for an attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMediaType {
    /// It is malformed.
    #[error("must be a media type like application/pdf, of 255 characters at most")]
    Form,
    /// A type whose content must not be encoded.
    #[error(
        "must be neither multipart nor message, which can't be encoded; \
         attach a message as application/octet-stream with a name like message.eml"
    )]
    Composite,
}

/// A media type with its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaType {
    /// `type/subtype` and each `name=value`.
    words: Vec<String>,
}

impl Default for MediaType {
    fn default() -> Self {
        Self {
            words: vec!["application/octet-stream".to_owned()],
        }
    }
}

impl MediaType {
    /// Parses `type/subtype`, with or without parameters.
    pub fn parse(text: &str) -> Result<Self, InvalidMediaType> {
        if text.len() > LENGTH || !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(InvalidMediaType::Form);
        }
        let (essence, mut rest) = text.split_at(text.find(';').unwrap_or(text.len()));
        let essence = essence.trim_matches(' ');
        let (kind, subtype) = essence.split_once('/').ok_or(InvalidMediaType::Form)?;
        if !is_restricted_name(kind) || !is_restricted_name(subtype) {
            return Err(InvalidMediaType::Form);
        }
        // RFC 2045 §6.4: only 7bit, 8bit and binary are allowed, which the content may not satisfy.
        if ["multipart", "message"]
            .iter()
            .any(|composite| kind.eq_ignore_ascii_case(composite))
        {
            return Err(InvalidMediaType::Composite);
        }
        let mut words = vec![essence.to_owned()];
        while let Some(parameter) = rest.strip_prefix(';') {
            let (name, value) = parameter.split_once('=').ok_or(InvalidMediaType::Form)?;
            let name = name.trim_matches(' ');
            let value = value.trim_start_matches(' ');
            let end = value_end(value).ok_or(InvalidMediaType::Form)?;
            let (value, after) = value.split_at(end);
            if !is_token(name) {
                return Err(InvalidMediaType::Form);
            }
            words.push(format!("{name}={value}"));
            rest = after.trim_start_matches(' ');
        }
        if rest.is_empty() {
            Ok(Self { words })
        } else {
            Err(InvalidMediaType::Form)
        }
    }

    /// Whether it has a parameter `name`, also an encoded one or in sections (RFC 2231).
    pub(super) fn has_name(&self) -> bool {
        self.words.iter().skip(1).any(|word| {
            let name = word.split('=').next().unwrap_or_default();
            name.split('*')
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case("name"))
        })
    }

    /// The words of its header, without the semicolons between them.
    pub(super) fn words(&self) -> &[String] {
        &self.words
    }
}

/// The end of the token or quoted string at the start of `text`.
fn value_end(text: &str) -> Option<usize> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', ';']).unwrap_or(text.len());
        return is_token(&text[..end]).then_some(end);
    };
    let mut escaped = false;
    for (position, byte) in quoted.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(position + 2),
            _ => {}
        }
    }
    None
}

/// token (RFC 2045 §5.1).
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte))
}

fn is_restricted_name(text: &str) -> bool {
    text.len() <= NAME_LENGTH
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types() {
        for (text, expected) in [
            ("application/pdf", vec!["application/pdf"]),
            ("Image/SVG+xml", vec!["Image/SVG+xml"]),
            (
                "text/calendar; method=REQUEST;charset=\"utf-8\" ; x = y",
                vec![
                    "text/calendar",
                    "method=REQUEST",
                    "charset=\"utf-8\"",
                    "x=y",
                ],
            ),
            (
                "text/plain; name=\"a;b\\\"c\"",
                vec!["text/plain", "name=\"a;b\\\"c\""],
            ),
        ] {
            assert_eq!(
                MediaType::parse(text).map(|it| it.words),
                Ok(expected.iter().map(ToString::to_string).collect()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_none() {
        for text in [
            "",
            "pdf",
            "/",
            "application/",
            "/pdf",
            "a/b/c",
            "a b/c",
            "text/plain\r\nBcc: eve@example.com",
            "text/plain; charset",
            "text/plain;",
            "text/plain; charset=",
            "text/plain; charset=\"utf-8",
            "text/plain; charset=a b",
            "text/plain; a=b c=d",
            "text/plain; a b=c",
            "täxt/plain",
            &format!("text/{}", "x".repeat(128)),
            &format!("text/plain; x={}", "x".repeat(250)),
        ] {
            assert_eq!(
                MediaType::parse(text),
                Err(InvalidMediaType::Form),
                "{text}"
            );
        }
        for text in [
            "multipart/mixed; boundary=x",
            "message/rfc822",
            "Message/partial",
        ] {
            assert_eq!(
                MediaType::parse(text),
                Err(InvalidMediaType::Composite),
                "{text}"
            );
        }
    }
}
