//! An opened message: a head, and the content of one of its tabs.

use mail_parser::{MessagePart, MimeHeaders as _, PartType};

use super::part::{is_attachment, media_type};
use super::{NAME, cut, encoded, named, received_at, sender, size, subject};
use crate::inbox::ArrivedMessage;
use crate::mime;

/// How many bytes a tab shows.
const SHOWN_BYTES: usize = 256 * 1024;

/// How many header fields or attachments a tab shows.
const SHOWN_ENTRIES: usize = 500;

/// A tab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    Html,
    Text,
    Headers,
    Source,
    Attachments,
}

impl Tab {
    const ALL: [Self; 5] = [
        Self::Html,
        Self::Text,
        Self::Headers,
        Self::Source,
        Self::Attachments,
    ];

    /// Its name in addresses, and on the page.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Html => ("html", "HTML"),
            Self::Text => ("text", "Text"),
            Self::Headers => ("headers", "Headers"),
            Self::Source => ("source", "Source"),
            Self::Attachments => ("attachments", "Attachments"),
        }
    }
}

/// A link to a tab.
pub(super) struct TabLink {
    pub(super) address: String,
    pub(super) label: String,
    pub(super) is_chosen: bool,
}

/// A message, with the content of one tab.
pub(super) struct MessageView {
    pub(super) id: String,
    pub(super) subject: String,
    pub(super) sender: String,
    pub(super) recipients: String,
    pub(super) mailbox: String,
    pub(super) received_at: String,
    pub(super) bytes: usize,
    pub(super) size: String,
    pub(super) tabs: Vec<TabLink>,
    pub(super) content: Content,
}

/// What a tab shows.
pub(super) enum Content {
    /// The HTML in a frame, and its source.
    Html(Shown),
    Text(Shown),
    /// There is no text.
    NoText,
    Headers {
        fields: Vec<(String, String)>,
        /// How many aren't shown.
        left_out: usize,
    },
    Source(Shown),
    Attachments {
        files: Vec<Attachment>,
        /// How many aren't shown.
        left_out: usize,
    },
    /// The bytes can't be parsed.
    Unparsed,
}

/// The beginning of a text.
pub(super) struct Shown {
    pub(super) text: String,
    /// The full length, in bytes.
    pub(super) length: usize,
}

pub(super) struct Attachment {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) size: String,
    /// Its place in the message.
    pub(super) number: usize,
}

/// The kinds of parts that tabs show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
    Attachment,
}

fn kind(part: &MessagePart<'_>) -> Option<Kind> {
    match part.body {
        PartType::Multipart(_) => None,
        PartType::Text(_) if !is_attachment(part) => Some(Kind::Text),
        PartType::Html(_) if !is_attachment(part) => Some(Kind::Html),
        _ => Some(Kind::Attachment),
    }
}

impl MessageView {
    pub(super) fn new(message: &ArrivedMessage, bytes: &[u8], asked: &str, words: &str) -> Self {
        let readable = mime::Readable::new(bytes);
        let parsed = readable.parse();
        let parts = parsed.as_ref().map(|parsed| parsed.parts.as_slice());
        let count = |wanted: Kind| {
            let parts = parts.unwrap_or_default().iter();
            parts.filter(|part| kind(part) == Some(wanted)).count()
        };
        let has_html = count(Kind::Html) > 0;
        let usual = if has_html { Tab::Html } else { Tab::Text };
        let chosen = (Tab::ALL.into_iter())
            .filter(|tab| has_html || *tab != Tab::Html)
            .find(|tab| tab.names().0 == asked)
            .unwrap_or(usual);
        let words = if words.is_empty() {
            String::new()
        } else {
            format!("&q={}", encoded(words))
        };
        let id = &message.id;
        let tabs = (Tab::ALL.into_iter())
            .filter(|tab| has_html || *tab != Tab::Html)
            .map(|tab| {
                let (name, label) = tab.names();
                let label = match tab {
                    Tab::Attachments => format!("{label} ({})", count(Kind::Attachment)),
                    _ => label.to_owned(),
                };
                TabLink {
                    address: format!("/messages/{id}?tab={name}{words}"),
                    label,
                    is_chosen: tab == chosen,
                }
            });
        Self {
            id: id.clone(),
            subject: subject(message).to_owned(),
            sender: sender(message).to_owned(),
            recipients: named(&message.envelope_to),
            mailbox: cut(&message.mailbox, NAME).to_owned(),
            received_at: received_at(message),
            bytes: message.size,
            size: size(message.size),
            tabs: tabs.collect(),
            content: Content::of(chosen, parts, bytes),
        }
    }
}

impl Content {
    fn of(tab: Tab, parts: Option<&[MessagePart<'_>]>, bytes: &[u8]) -> Self {
        match (tab, parts) {
            (Tab::Source, _) => Self::Source(Shown {
                text: String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]).into_owned(),
                length: bytes.len(),
            }),
            (Tab::Headers, _) => match mime::headers(bytes) {
                Some(all) => Self::headers(&all),
                None => Self::Unparsed,
            },
            (_, None) => Self::Unparsed,
            (Tab::Html, Some(parts)) => Self::Html(Shown::joined(parts, Kind::Html)),
            (Tab::Text, Some(parts)) => {
                let shown = Shown::joined(parts, Kind::Text);
                if shown.length == 0 {
                    Self::NoText
                } else {
                    Self::Text(shown)
                }
            }
            (Tab::Attachments, Some(parts)) => Self::attachments(parts),
        }
    }

    fn headers(all: &[(String, String)]) -> Self {
        let mut left = SHOWN_BYTES;
        let mut fields = Vec::new();
        for (name, value) in all.iter().take(SHOWN_ENTRIES) {
            if left == 0 {
                break;
            }
            let (name, value) = (cut(name, NAME), cut(value, left));
            left -= value.len().min(left);
            fields.push((name.to_owned(), value.to_owned()));
        }
        Self::Headers {
            left_out: all.len() - fields.len(),
            fields,
        }
    }

    fn attachments(parts: &[MessagePart<'_>]) -> Self {
        let mut all =
            (parts.iter().enumerate()).filter(|(_, part)| kind(part) == Some(Kind::Attachment));
        let files: Vec<Attachment> = (all.by_ref().take(SHOWN_ENTRIES))
            .map(|(number, part)| Attachment {
                name: cut(part.attachment_name().unwrap_or("(no name)"), NAME).to_owned(),
                kind: media_type(part).map_or_else(
                    || "unknown type".to_owned(),
                    |kind| cut(&kind, NAME).to_owned(),
                ),
                size: size(part.len()),
                number,
            })
            .collect();
        Self::Attachments {
            files,
            left_out: all.count(),
        }
    }
}

impl Shown {
    /// The parts of this kind, one after the other.
    fn joined(parts: &[MessagePart<'_>], wanted: Kind) -> Self {
        let mut shown = Self {
            text: String::new(),
            length: 0,
        };
        for part in parts.iter().filter(|part| kind(part) == Some(wanted)) {
            let (PartType::Text(text) | PartType::Html(text)) = &part.body else {
                continue;
            };
            let is_whole = shown.text.len() == shown.length;
            shown.length += text.len();
            let left = SHOWN_BYTES.saturating_sub(shown.text.len());
            if is_whole {
                shown.text.push_str(cut(&mime::restored(text), left));
            }
        }
        shown
    }

    pub(super) fn size(&self) -> String {
        size(self.text.len())
    }

    pub(super) fn whole_size(&self) -> String {
        size(self.length)
    }

    pub(super) fn is_cut(&self) -> bool {
        self.length > SHOWN_BYTES
    }
}

#[cfg(test)]
mod tests {
    use askama::Template;

    use super::*;

    #[derive(Template)]
    #[template(path = "message.html")]
    struct Alone {
        view: MessageView,
    }

    fn html(bytes: &[u8], tab: &str) -> String {
        let message = ArrivedMessage {
            id: "m1".to_owned(),
            mailbox: "ada@x.test".to_owned(),
            envelope_from: String::new(),
            envelope_to: Vec::new(),
            received_at: chrono::DateTime::UNIX_EPOCH,
            size: bytes.len(),
            subject: None,
            read: true,
        };
        let view = MessageView::new(&message, bytes, tab, "");
        Alone { view }.to_string()
    }

    #[test]
    fn parts_are_decoded_and_escaped() {
        let mail = "From: =?utf-8?q?Gr=C3=BCn?= <g@x.test>\r\nX-Own: <script>1</script>\r\nSubject: s\r\n\
             MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
             --b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n1 =3C 2 =C3=A4\r\n\
             --b\r\nContent-Type: text/html\r\n\r\n<img src=x onerror=alert(1)>\r\n\
             --b\r\nContent-Type: text/html\r\nContent-Disposition: attachment; filename=\"<i>.html\"\r\n\r\n<b>kept out</b>\r\n--b--\r\n";
        for (tab, expected) in [
            ("headers", "<dt>From</dt><dd>Grün &lt;g@x.test&gt;</dd>"),
            (
                "headers",
                "<dt>X-Own</dt><dd>&lt;script&gt;1&lt;/script&gt;</dd>",
            ),
            ("text", "<pre>1 &lt; 2 ä"),
            ("html", "<pre>&lt;img src=x onerror=alert(1)&gt;"),
            (
                "attachments",
                "<a href=\"/messages/m1/parts/3\">&lt;i&gt;.html</a> <small>text/html · 15 bytes",
            ),
            // HTML comes first.
            (
                "",
                "<iframe sandbox=\"allow-popups allow-popups-to-escape-sandbox\" src=\"/messages/m1/html\"",
            ),
            ("source", "kept out"),
            ("text", "?tab=attachments\">Attachments (1)</a>"),
            ("text", "?tab=text\" aria-current=\"page\">Text</a>"),
            ("\"><script>", "?tab=html\" aria-current=\"page\">HTML</a>"),
        ] {
            let page = html(mail.as_bytes(), tab);
            assert!(page.contains(expected), "{expected} in {page}");
            assert!(!page.contains("<img") && !page.contains("<script"));
            assert_eq!(page.contains("kept out"), tab == "source");
        }
    }

    #[test]
    fn a_message_without_html_has_no_such_tab() {
        let page = html(b"Subject: s\r\n\r\nHi\r\n", "html");
        assert!(page.contains("<pre>Hi"), "{page}");
        assert!(!page.contains("tab=html") && !page.contains("<iframe"));
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let mail = format!(
            "Content-Type: text/plain; charset=utf-8\r\n\r\na{}",
            "ä".repeat(SHOWN_BYTES)
        );
        for tab in ["text", "source"] {
            let page = html(mail.as_bytes(), tab);
            assert!(page.len() < SHOWN_BYTES + 5000);
            assert!(page.contains("The first 262.1 kB of 524."), "{tab}");
        }
    }

    #[test]
    fn many_parts_and_headers_are_cut_too() {
        let part = "--b\r\nContent-Type: text/plain\r\n\r\n".to_owned() + &"x".repeat(100) + "\r\n";
        let file = "--b\r\nContent-Disposition: attachment; filename=a\r\n\r\nx\r\n";
        let mail = format!(
            "X: {}\r\n{}Content-Type: multipart/mixed; boundary=b\r\n\r\n{}{}--b--\r\n",
            "y".repeat(1_000_000),
            "Z: z\r\n".repeat(5_000),
            part.repeat(5_000),
            file.repeat(5_000),
        );
        for (tab, expected) in [
            ("text", "The first "),
            ("headers", " more: see the source."),
            ("source", "The first "),
            ("attachments", "And 4500 more: download the message."),
        ] {
            let page = html(mail.as_bytes(), tab);
            assert!(page.len() < SHOWN_BYTES + 5_000, "{tab}: {}", page.len());
            assert!(page.contains(expected), "{tab}");
        }
    }

    #[test]
    fn bytes_that_are_no_message_do_no_harm() {
        for bytes in [
            &b""[..],
            b"\0\xff<i>\xfe",
            b"<i>no header here",
            b"a:\r\n\r\n<i>",
        ] {
            for tab in Tab::ALL {
                assert!(!html(bytes, tab.names().0).contains("<i>"), "{bytes:?}");
            }
        }
    }
}
