//! A message's content as escaped HTML: decoded headers, text, HTML source, attachments.

use std::fmt::Write as _;

use mail_parser::{
    HeaderName, HeaderValue, Message, MessageParser, MessagePart, MimeHeaders as _, PartType,
};

use mailgate_server::page::escaped;

/// How many bytes of one part are shown.
const SHOWN_BYTES: usize = 256 * 1024;

/// Content of the page for a message's bytes.
pub(super) fn html(bytes: &[u8]) -> String {
    let mut page = String::new();
    // A first reading takes every header as text, to decode it; a second one takes them for what they are.
    // (Only a parser told of at least one header heeds its default for the others.)
    if let Some(message) = MessageParser::new()
        .header_text(HeaderName::Subject)
        .default_header_text()
        .parse_headers(bytes)
    {
        headers(&mut page, &message);
    }
    let Some(message) = MessageParser::default().parse(bytes) else {
        page.push_str("<p class=\"card\">This can't be read as a message.</p>");
        return page;
    };
    for part in &message.parts {
        match &part.body {
            PartType::Text(text) if !is_attachment(part) => section(&mut page, "Text", text),
            PartType::Html(text) if !is_attachment(part) => section(&mut page, "HTML source", text),
            PartType::Multipart(_) => {}
            _ => attachment(&mut page, part),
        }
    }
    page
}

fn headers(page: &mut String, message: &Message<'_>) {
    page.push_str("<h2>Headers</h2><div class=\"card\"><dl>");
    for header in message.headers() {
        let value = match &header.value {
            HeaderValue::Text(text) => text.to_string(),
            HeaderValue::TextList(texts) => texts.join(", "),
            _ => String::new(),
        };
        let name = match &header.name {
            HeaderName::Other(name) => name.as_ref(),
            known => known.as_str(),
        };
        // Writing to a String can't fail, here and below.
        let _ = write!(
            page,
            "<dt>{}</dt><dd>{}</dd>",
            escaped(name),
            escaped(&value)
        );
    }
    page.push_str("</dl></div>");
}

fn is_attachment(part: &MessagePart<'_>) -> bool {
    part.content_disposition()
        .is_some_and(mail_parser::ContentType::is_attachment)
}

fn section(page: &mut String, title: &str, text: &str) {
    let shown = &text[..text.floor_char_boundary(SHOWN_BYTES)];
    let _ = write!(
        page,
        "<h2>{title}</h2><div class=\"card\"><pre>{}</pre></div>",
        escaped(shown)
    );
    if shown.len() < text.len() {
        let _ = write!(
            page,
            "<p class=\"soft\">The first {} of {} bytes.</p>",
            shown.len(),
            text.len()
        );
    }
}

fn attachment(page: &mut String, part: &MessagePart<'_>) {
    let kind = part.content_type().map_or_else(
        || "unknown type".to_owned(),
        |kind| match kind.subtype() {
            Some(subtype) => format!("{}/{subtype}", kind.ctype()),
            None => kind.ctype().to_owned(),
        },
    );
    let _ = write!(
        page,
        "<h2>Attachment</h2><div class=\"card\">{}<br><small>{} · {} bytes</small></div>",
        escaped(part.attachment_name().unwrap_or("(no name)")),
        escaped(&kind),
        part.len()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

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
