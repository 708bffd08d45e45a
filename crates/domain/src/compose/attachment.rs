//! Attachments of a message.

use std::fmt::Write as _;

use super::base64_lines::Base64Lines;
use super::header::{encoded_words, of_words};
use super::media_type::MediaType;
use super::pieces::Pieces;

/// Maximum attachments of one message.
pub const MOST_ATTACHMENTS: usize = 100;

/// Longest file name, in characters.
const FILENAME_LENGTH: usize = 255;

/// Longest Content-ID without its brackets, in octets.
const CONTENT_ID_LENGTH: usize = 255;

/// Characters in one section of a long name, so that its whole line stays within 78.
const PARAMETER: usize = 60;

/// Why a file name is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFilename {
    /// It is empty.
    #[error("must not be empty")]
    Empty,
    /// It is too long.
    #[error("may have 255 characters at most")]
    TooLong,
    /// It would name a folder, or break a header.
    #[error("must contain neither / nor \\ nor control characters")]
    Character,
}

/// Why a Content-ID is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be 1 to 255 ASCII letters, digits, dots, @ and !#$%&'*+-/=?^_`{{|}}~, without angle brackets"
)]
pub struct InvalidContentId;

/// A file's name, without a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filename(String);

impl Filename {
    /// Checks a name.
    pub fn new(name: String) -> Result<Self, InvalidFilename> {
        if name.is_empty() {
            Err(InvalidFilename::Empty)
        } else if name.chars().count() > FILENAME_LENGTH {
            Err(InvalidFilename::TooLong)
        } else if name.contains(|letter: char| matches!(letter, '/' | '\\') || letter.is_control())
        {
            Err(InvalidFilename::Character)
        } else {
            Ok(Self(name))
        }
    }

    /// Whether every reader accepts it unchanged in quotes: none decodes or trims it.
    fn is_clear(&self) -> bool {
        let name = self.0.as_str();
        (name.bytes()).all(|byte| matches!(byte, b' '..=b'~') && byte != b'"')
            && !name.contains("=?")
            && name.trim() == name
    }

    /// The parameters of Content-Disposition: quoted, or encoded by RFC 2231 §4 if not ASCII, and in sections (§3) if
    /// long.
    fn parameters(&self) -> Vec<String> {
        let name = self.0.as_str();
        if self.is_clear() {
            return vec![format!("filename=\"{name}\"")];
        }
        let mut sections = vec![String::from("utf-8''")];
        for letter in name.chars() {
            let encoded = percent_encoded(letter);
            match sections.last_mut() {
                Some(section) if section.len() + encoded.len() <= PARAMETER => {
                    section.push_str(&encoded);
                }
                _ => sections.push(encoded),
            }
        }
        if let [only] = sections.as_slice() {
            return vec![format!("filename*={only}")];
        }
        let numbered = sections.iter().enumerate();
        numbered
            .map(|(number, section)| format!("filename*{number}*={section}"))
            .collect()
    }

    /// The parameter of Content-Type for readers that know neither Content-Disposition nor RFC 2231: in encoded words,
    /// which RFC 2047 §5 doesn't allow there, but which they decode.
    fn name(&self) -> Vec<String> {
        let name = self.0.as_str();
        if self.is_clear() {
            return vec![format!("name=\"{name}\"")];
        }
        let mut words = encoded_words(name);
        if let Some(first) = words.first_mut() {
            first.insert_str(0, "name=\"");
        }
        if let Some(last) = words.last_mut() {
            last.push('"');
        }
        words
    }
}

/// attribute-char of RFC 2231 §7 unchanged, everything else as its UTF-8 octets.
fn percent_encoded(letter: char) -> String {
    if letter.is_ascii_alphanumeric() || "!#$&+-.^_`{|}~".contains(letter) {
        return letter.to_string();
    }
    let mut encoded = String::new();
    for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
        // Writing to a `String` can't fail.
        let _ = write!(encoded, "%{byte:02X}");
    }
    encoded
}

/// The id by which HTML refers to a part: `cid:` followed by this (RFC 2392).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContentId(String);

impl ContentId {
    /// Validates a Content-ID, without its angle brackets. One without an `@` is accepted too: they are common in HTML.
    pub fn new(id: String) -> Result<Self, InvalidContentId> {
        let is_id = (1..=CONTENT_ID_LENGTH).contains(&id.len())
            && id.bytes().all(|byte| {
                byte.is_ascii_alphanumeric() || b".@!#$%&'*+-/=?^_`{|}~".contains(&byte)
            });
        if is_id {
            Ok(Self(id))
        } else {
            Err(InvalidContentId)
        }
    }
}

/// An attachment of a message.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// Its name.
    pub filename: Filename,
    /// Its media type.
    pub media_type: MediaType,
    /// Its bytes.
    pub content: Vec<u8>,
    /// If set, the HTML displays the file.
    pub content_id: Option<ContentId>,
}

impl Attachment {
    /// Writes its headers and its bytes. `disposition` is `inline` or `attachment`.
    pub(super) fn write(self, disposition: &str, pieces: &mut Pieces) {
        let mut words = separated(self.media_type.words());
        if !self.media_type.has_name() {
            if let Some(last) = words.last_mut() {
                last.push(';');
            }
            words.extend(self.filename.name());
        }
        pieces.push(&of_words("Content-Type", &words));
        pieces.push("Content-Transfer-Encoding: base64\r\n");
        if let Some(ContentId(id)) = &self.content_id {
            pieces.push(&of_words("Content-ID", &[format!("<{id}>")]));
        }
        let mut words = vec![disposition.to_owned()];
        words.extend(self.filename.parameters());
        pieces.push(&of_words("Content-Disposition", &separated(&words)));
        pieces.push("\r\n");
        let mut lines = Base64Lines::for_length(self.content.len());
        lines.push(&self.content);
        pieces.push_piece(lines.finish());
    }
}

/// A value and its parameters, with semicolons between them.
fn separated(words: &[String]) -> Vec<String> {
    let last = words.len().saturating_sub(1);
    let numbered = words.iter().enumerate();
    numbered
        .map(|(index, word)| format!("{word}{}", if index < last { ";" } else { "" }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        for (name, expected) in [
            ("", InvalidFilename::Empty),
            ("a/b", InvalidFilename::Character),
            ("..\\b", InvalidFilename::Character),
            ("a\r\nb", InvalidFilename::Character),
            ("a\0", InvalidFilename::Character),
            (&"ü".repeat(256), InvalidFilename::TooLong),
        ] {
            assert_eq!(Filename::new(name.to_owned()), Err(expected), "{name:?}");
        }
        for (name, expected) in [
            ("a b.pdf", vec!["filename=\"a b.pdf\""]),
            ("a\"b", vec!["filename*=utf-8''a%22b"]),
            (" a", vec!["filename*=utf-8''%20a"]),
            ("Grüße.txt", vec!["filename*=utf-8''Gr%C3%BC%C3%9Fe.txt"]),
            (
                "日本語日本語日",
                vec![
                    "filename*0*=utf-8''%E6%97%A5%E6%9C%AC%E8%AA%9E%E6%97%A5%E6%9C%AC",
                    "filename*1*=%E8%AA%9E%E6%97%A5",
                ],
            ),
        ] {
            let parameters = Filename::new(name.to_owned()).map(|name| name.parameters());
            assert_eq!(
                parameters,
                Ok(expected.iter().map(ToString::to_string).collect()),
                "{name}"
            );
        }
    }

    fn content_type(name: &str, media_type: &str) -> String {
        let mut pieces = Pieces::default();
        let (Ok(filename), Ok(media_type)) =
            (Filename::new(name.to_owned()), MediaType::parse(media_type))
        else {
            return String::new();
        };
        let file = Attachment {
            filename,
            media_type,
            content: Vec::new(),
            content_id: None,
        };
        file.write("attachment", &mut pieces);
        let written = pieces.into_message().chunks().flatten().copied().collect();
        let written = String::from_utf8(written).unwrap_or_default();
        let end = written
            .find("\r\nContent-Transfer-Encoding")
            .unwrap_or_default();
        written[..end].to_owned()
    }

    // jstedfast/MimeKit#186
    #[test]
    fn readers_that_know_no_disposition_find_the_name() {
        for (name, media_type, expected) in [
            (
                "a b.pdf",
                "application/pdf",
                "application/pdf; name=\"a b.pdf\"",
            ),
            (
                "a;b.txt",
                "text/plain; charset=utf-8",
                "text/plain; charset=utf-8; name=\"a;b.txt\"",
            ),
            ("a\"b", "a/b", "a/b; name=\"=?utf-8?B?YSJi?=\""),
            (" a", "a/b", "a/b; name=\"=?utf-8?B?IGE=?=\""),
            ("=?x?=", "a/b", "a/b; name=\"=?utf-8?B?PT94Pz0=?=\""),
            (
                "Gr\u{fc}\u{df}e.txt",
                "a/b",
                "a/b; name=\"=?utf-8?B?R3LDvMOfZS50eHQ=?=\"",
            ),
            // The caller's own parameter stays.
            ("a.txt", "a/b; name=x", "a/b; name=x"),
            ("a.txt", "a/b; NAME=\"x;y\"", "a/b; NAME=\"x;y\""),
            ("a.txt", "a/b; name*=utf-8''x", "a/b; name*=utf-8''x"),
            (
                "a.txt",
                "a/b; name*0*=utf-8''x; name*1=y",
                "a/b; name*0*=utf-8''x; name*1=y",
            ),
            (
                "a.txt",
                "a/b; filename=x",
                "a/b; filename=x; name=\"a.txt\"",
            ),
            (
                "a.txt",
                "a/b; charset=name",
                "a/b; charset=name; name=\"a.txt\"",
            ),
        ] {
            let written = content_type(name, media_type);
            assert_eq!(
                written,
                format!("Content-Type: {expected}"),
                "{name} {media_type}"
            );
        }
        let long = content_type(&"\u{65e5}".repeat(255), "application/pdf");
        assert!(long.lines().all(|line| line.len() <= 78), "{long}");
        let decoded = mailgate_types::encoded_words::decoded(long.as_bytes());
        assert!(decoded.contains(&"\u{65e5}".repeat(255)), "{decoded}");
    }

    #[test]
    fn content_ids() {
        for id in ["logo", "logo@example.com", "a.b-c_d+e", &"x".repeat(255)] {
            assert!(ContentId::new(id.to_owned()).is_ok(), "{id}");
        }
        for id in [
            "",
            "<logo>",
            "a b",
            "a\r\nb",
            "ü",
            "a\"b",
            "a,b",
            &"x".repeat(256),
        ] {
            assert!(ContentId::new(id.to_owned()).is_err(), "{id}");
        }
    }
}
