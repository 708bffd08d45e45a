//! The parts of a message, and their places.

use mail_parser::{MimeHeaders as _, PartType};

use super::*;

/// The parts' types, with nested ones in brackets.
fn shape(message: &Message<'_>, part: usize) -> String {
    let part = &message.parts[part];
    let content_type = part.content_type().unwrap();
    let own = format!(
        "{}/{}",
        content_type.ctype(),
        content_type.subtype().unwrap()
    );
    match &part.body {
        PartType::Multipart(parts) => {
            let inner: Vec<String> = parts
                .iter()
                .map(|part| shape(message, usize::try_from(*part).unwrap()))
                .collect();
            format!("{own}[{}]", inner.join(" "))
        }
        _ => own,
    }
}

#[test]
fn text_alone() {
    let text = composed(fields(Some("Hello\nthere"), None));
    assert!(
        text.contains("Content-Type: text/plain; charset=utf-8\r\n"),
        "{text}"
    );
    assert!(
        text.contains("Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"),
        "{text}"
    );
    assert!(text.ends_with("\r\n\r\nHello\r\nthere\r\n"), "{text}");
}

#[test]
fn no_line_end_of_a_body_forges_anything() {
    let html = "<p>\r</p>";
    composed(fields(Some("x\r.\r\nMAIL FROM:<a@b>"), Some(html)));
    composed(fields(Some("ü\r.\r\nMAIL FROM:<a@b>"), Some(html)));
    composed(fields(Some("日本語\r.\r\n日本語"), Some(html)));
}

#[test]
fn parts_stand_in_their_places() {
    let inline = || file("logo.png", "image/png", b"png", Some("logo"));
    let attached = || file("a.pdf", "application/pdf", b"pdf", None);
    for (text, html, files, expected) in [
        (Some("t"), None, vec![], "text/plain"),
        (None, Some("h"), vec![], "text/html"),
        (
            Some("t"),
            Some("h"),
            vec![],
            "multipart/alternative[text/plain text/html]",
        ),
        (
            Some("t"),
            None,
            vec![attached()],
            "multipart/mixed[text/plain application/pdf]",
        ),
        (
            None,
            Some("h"),
            vec![inline()],
            "multipart/related[text/html image/png]",
        ),
        (
            Some("t"),
            Some("h"),
            vec![inline(), attached(), attached()],
            "multipart/mixed[multipart/alternative[text/plain multipart/related[text/html \
             image/png]] application/pdf application/pdf]",
        ),
        (
            Some("t"),
            None,
            vec![inline()],
            "multipart/mixed[text/plain image/png]",
        ),
    ] {
        let has_attachments = expected.starts_with("multipart/mixed");
        let prepared = prepare(Fields {
            attachments: files,
            ..fields(text, html)
        });
        assert_eq!(prepared.has_attachments, has_attachments);
        let bytes = bytes(&prepared);
        let message = parse(&bytes);
        assert_eq!(shape(&message, 0), expected);
        assert_eq!(
            message
                .body_text(0)
                .is_some_and(|body| body.trim_end() == "t"),
            text.is_some()
        );
        assert_eq!(
            message
                .body_html(0)
                .is_some_and(|body| body.trim_end() == "h"),
            html.is_some()
        );
        for part in &message.parts {
            if part.content_id().is_some() {
                assert_eq!(part.content_id(), Some("logo"));
                let disposition = part.content_disposition().unwrap().ctype();
                assert_eq!(disposition == "inline", html.is_some());
                assert_eq!(part.contents(), b"png");
            }
        }
    }
}

#[test]
fn a_file_is_encoded_into_a_piece_of_its_own() {
    let content: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let sent = file("a.bin", "application/octet-stream", &content, None);
    let fields = Fields {
        attachments: vec![sent],
        ..fields(Some("t"), None)
    };
    let least = fields.least_size();
    let prepared = prepare(fields);
    let size = prepared.message.size();
    assert!((least..least + least / 30).contains(&size), "{size}");
    let bytes = bytes(&prepared);
    assert_eq!(parse(&bytes).attachment(0).unwrap().contents(), content);
}
