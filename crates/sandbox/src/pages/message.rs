//! The page of a message: envelope, decoded headers, text, HTML source, attachments.

use std::borrow::Cow;

use askama::Template;
use mail_parser::{
    HeaderName, HeaderValue, Message, MessageParser, MessagePart, MimeHeaders as _, PartType,
};

use crate::inbox::ArrivedMessage;

/// How many bytes of one part are shown.
const SHOWN_BYTES: usize = 256 * 1024;

/// The page of one message.
#[derive(Template)]
#[template(path = "message.html")]
pub(super) struct MessagePage<'a> {
    message: &'a ArrivedMessage,
    /// Name and value of each; `None` if there is no reading them.
    headers: Option<Vec<(String, String)>>,
    /// `None` if it can't be read as a message.
    parts: Option<Vec<Part<'a>>>,
}

/// What a message is made of.
enum Part<'a> {
    Text {
        title: &'static str,
        /// As much of it as is shown.
        shown: Cow<'a, str>,
        /// In bytes, of all of it.
        length: usize,
    },
    Attachment {
        name: String,
        kind: String,
        length: usize,
    },
}

impl<'a> MessagePage<'a> {
    pub(super) fn new(message: &'a ArrivedMessage, bytes: &'a [u8]) -> Self {
        // A first reading takes every header as text, to decode it; a second one takes them for what they are.
        // (Only a parser told of at least one header heeds its default for the others.)
        let headers = MessageParser::new()
            .header_text(HeaderName::Subject)
            .default_header_text()
            .parse_headers(bytes);
        let read = MessageParser::default().parse(bytes);
        Self {
            message,
            headers: headers.as_ref().map(shown_headers),
            parts: read.map(|read| read.parts.into_iter().filter_map(Part::of).collect()),
        }
    }
}

fn shown_headers(message: &Message<'_>) -> Vec<(String, String)> {
    let headers = message.headers().iter().map(|header| {
        let value = match &header.value {
            HeaderValue::Text(text) => text.to_string(),
            HeaderValue::TextList(texts) => texts.join(", "),
            _ => String::new(),
        };
        let name = match &header.name {
            HeaderName::Other(name) => name.as_ref(),
            known => known.as_str(),
        };
        (name.to_owned(), value)
    });
    headers.collect()
}

impl<'a> Part<'a> {
    fn of(part: MessagePart<'a>) -> Option<Self> {
        let is_attachment = part
            .content_disposition()
            .is_some_and(mail_parser::ContentType::is_attachment);
        match part.body {
            PartType::Multipart(_) => None,
            PartType::Text(text) if !is_attachment => Some(Self::text("Text", text)),
            PartType::Html(text) if !is_attachment => Some(Self::text("HTML source", text)),
            _ => Some(Self::attachment(&part)),
        }
    }

    fn text(title: &'static str, text: Cow<'a, str>) -> Self {
        let length = text.len();
        let end = text.floor_char_boundary(SHOWN_BYTES);
        let shown = match text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
            Cow::Owned(mut text) => {
                text.truncate(end);
                Cow::Owned(text)
            }
        };
        Self::Text {
            title,
            shown,
            length,
        }
    }

    fn attachment(part: &MessagePart<'_>) -> Self {
        let kind = part.content_type().map_or_else(
            || "unknown type".to_owned(),
            |kind| match kind.subtype() {
                Some(subtype) => format!("{}/{subtype}", kind.ctype()),
                None => kind.ctype().to_owned(),
            },
        );
        Self::Attachment {
            name: part.attachment_name().unwrap_or("(no name)").to_owned(),
            kind,
            length: part.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(bytes: &[u8]) -> String {
        let message = ArrivedMessage {
            id: "m1".to_owned(),
            mailbox: "ada@x.test".to_owned(),
            envelope_from: String::new(),
            envelope_to: Vec::new(),
            received_at: chrono::DateTime::UNIX_EPOCH,
            size: bytes.len(),
            subject: None,
        };
        MessagePage::new(&message, bytes).to_string()
    }

    #[test]
    fn parts_are_decoded_and_escaped() {
        let mail = "From: =?utf-8?q?Gr=C3=BCn?= <g@x.test>\r\nX-Own: <script>1</script>\r\nSubject: s\r\n\
             MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
             --b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n1 =3C 2 =C3=A4\r\n\
             --b\r\nContent-Type: text/html\r\n\r\n<img src=x onerror=alert(1)>\r\n\
             --b\r\nContent-Type: text/html\r\nContent-Disposition: attachment; filename=\"<i>.html\"\r\n\r\n<b>kept out</b>\r\n--b--\r\n";
        let page = html(mail.as_bytes());
        for expected in [
            "<dt>From</dt><dd>Grün &lt;g@x.test&gt;</dd>",
            "<dt>X-Own</dt><dd>&lt;script&gt;1&lt;/script&gt;</dd>",
            "<h2>Text</h2><div class=\"card\"><pre>1 &lt; 2 ä",
            "<h2>HTML source</h2><div class=\"card\"><pre>&lt;img src=x onerror=alert(1)&gt;",
            "&lt;i&gt;.html<br><small>text/html · ",
        ] {
            assert!(page.contains(expected), "{expected} in {page}");
        }
        assert!(!page.contains("kept out"));
        assert!(!page.contains("<img") && !page.contains("<script"));
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let mail = format!(
            "Content-Type: text/plain; charset=utf-8\r\n\r\na{}",
            "ä".repeat(SHOWN_BYTES)
        );
        let page = html(mail.as_bytes());
        assert!(page.len() < SHOWN_BYTES + 2000);
        assert!(page.contains(&format!("of {} bytes", SHOWN_BYTES * 2 + 1)));
    }

    #[test]
    fn bytes_that_are_no_message_do_no_harm() {
        for bytes in [
            &b""[..],
            b"\0\xff<i>\xfe",
            b"<i>no header here",
            b"a:\r\n\r\n<i>",
        ] {
            assert!(!html(bytes).contains("<i>"), "{bytes:?}");
        }
    }
}
