//! The page of a message: envelope, HTML in a frame, text, HTML source, headers, source, attachments.

use std::borrow::Cow;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use mail_parser::{MessageParser, MessagePart, MimeHeaders as _, PartType};

use super::part::{is_attachment, media_type};
use super::{not_found, unreadable};
use crate::inbox::{ArrivedMessage, Inbox};
use crate::mime;
use mailgate_server::page::Page;

/// How many bytes of one part are shown.
const SHOWN_BYTES: usize = 256 * 1024;

pub(super) async fn page(State(inbox): State<Inbox>, Path(id): Path<String>) -> Response {
    let Some(message) = inbox.find(&id) else {
        return not_found();
    };
    let bytes = match inbox.raw(&id).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return not_found(),
        Err(error) => return unreadable(&error),
    };
    // A message may be large, and parsing it takes a while.
    let shown = tokio::task::spawn_blocking(move || {
        Page::new(
            StatusCode::OK,
            "Message",
            MessagePage::new(&message, &bytes),
        )
        .with_forms()
        .with_frames()
        .into_response()
    });
    shown
        .await
        .unwrap_or_else(|error| unreadable(&error.into()))
}

/// The page of one message.
#[derive(Template)]
#[template(path = "message.html")]
struct MessagePage<'a> {
    message: &'a ArrivedMessage,
    /// Names and values; `None` if they can't be parsed.
    headers: Option<Vec<(String, String)>>,
    /// `None` if it can't be parsed.
    parts: Option<Vec<Part<'a>>>,
    has_html: bool,
    /// The shown beginning.
    source: Cow<'a, str>,
}

/// A part of a message.
enum Part<'a> {
    Text {
        title: &'static str,
        /// The shown beginning.
        shown: Cow<'a, str>,
        /// The full length, in bytes.
        length: usize,
        /// Whether it is expanded initially.
        is_open: bool,
    },
    Attachment {
        name: String,
        kind: String,
        length: usize,
        /// Its place in the message.
        number: usize,
    },
}

impl<'a> MessagePage<'a> {
    fn new(message: &'a ArrivedMessage, bytes: &'a [u8]) -> Self {
        let read = MessageParser::default().parse(bytes);
        let has_html = read
            .iter()
            .flat_map(|read| &read.parts)
            .any(|part| matches!(part.body, PartType::Html(_)) && !is_attachment(part));
        let parts = read.map(|read| {
            let parts = read.parts.into_iter().enumerate();
            parts
                .filter_map(|(number, part)| Part::of(number, part, has_html))
                .collect()
        });
        Self {
            message,
            headers: mime::headers(bytes),
            parts,
            has_html,
            source: String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]),
        }
    }
}

impl<'a> Part<'a> {
    fn of(number: usize, part: MessagePart<'a>, has_html: bool) -> Option<Self> {
        let is_attachment = is_attachment(&part);
        match part.body {
            PartType::Multipart(_) => None,
            PartType::Text(text) if !is_attachment => Some(Self::text("Text", text, !has_html)),
            PartType::Html(text) if !is_attachment => Some(Self::text("HTML source", text, false)),
            _ => Some(Self::attachment(number, &part)),
        }
    }

    fn text(title: &'static str, text: Cow<'a, str>, is_open: bool) -> Self {
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
            is_open,
        }
    }

    fn attachment(number: usize, part: &MessagePart<'_>) -> Self {
        Self::Attachment {
            name: part.attachment_name().unwrap_or("(no name)").to_owned(),
            kind: media_type(part).unwrap_or_else(|| "unknown type".to_owned()),
            length: part.len(),
            number,
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
            "<details><summary><h2>Text</h2></summary><div class=\"card\"><pre>1 &lt; 2 ä",
            "<details><summary><h2>HTML source</h2></summary><div class=\"card\"><pre>&lt;img src=x onerror=alert(1)&gt;",
            "<a href=\"/messages/m1/parts/3\">&lt;i&gt;.html</a><br>\n<small>text/html · ",
            "<iframe sandbox=\"allow-popups allow-popups-to-escape-sandbox\" src=\"/messages/m1/html\"",
        ] {
            assert!(page.contains(expected), "{expected} in {page}");
        }
        // Only in the source.
        assert_eq!(page.matches("kept out").count(), 1);
        assert!(!page.contains("<img") && !page.contains("<script"));
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let mail = format!(
            "Content-Type: text/plain; charset=utf-8\r\n\r\na{}",
            "ä".repeat(SHOWN_BYTES)
        );
        let page = html(mail.as_bytes());
        // The text and the source.
        assert!(page.len() < 2 * SHOWN_BYTES + 5000);
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
