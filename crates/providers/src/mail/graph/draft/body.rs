//! The body of a draft: the displayed texts.

use std::collections::HashSet;

use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::{Message, MessagePart, MimeHeaders, PartType};
use serde_json::{Value, json};

use super::super::transfer_encoding::octets;

/// The parts that become the body: the displayed ones, and the text alternatives of displayed HTML.
pub(super) fn bodies(message: &Message<'_>) -> HashSet<u32> {
    let is_text = |number: &&u32| {
        message
            .part(**number)
            .is_some_and(|part| matches!(part.body, PartType::Text(_) | PartType::Html(_)))
    };
    message
        .html_body
        .iter()
        .chain(&message.text_body)
        .filter(is_text)
        .copied()
        .collect()
}

/// HTML if any part is HTML, with the others converted to it; else text.
pub(super) fn body(message: &Message<'_>) -> Value {
    let has_html = message
        .html_body
        .iter()
        .filter_map(|number| message.part(*number))
        .any(MessagePart::is_text_html);
    let (content_type, pieces): (_, Vec<_>) = if has_html {
        let pieces = (0..message.html_body.len()).filter_map(|number| message.body_html(number));
        ("html", pieces.collect())
    } else {
        let pieces = (0..message.text_body.len()).filter_map(|number| message.body_text(number));
        ("text", pieces.collect())
    };
    json!({ "contentType": content_type, "content": pieces.join("\r\n") })
}

/// Decodes text, as other programs do, if its character set has an unusual name, is unknown, or is ASCII although the
/// text isn't.
pub(super) fn settle_charset(mime: &[u8], part: &mut MessagePart<'_>) {
    let Some(octets) = octets(mime, part).filter(|octets| !octets.is_ascii()) else {
        return;
    };
    let charset = (part.content_type())
        .and_then(|kind| kind.attribute("charset"))
        .unwrap_or_default()
        .to_ascii_lowercase();
    let decoder = match charset.as_str() {
        "cp949" | "ms949" | "windows-949" | "uhc" => charset_decoder(b"euc-kr"),
        "cp932" | "ms932" | "windows-31j" => charset_decoder(b"shift_jis"),
        "" | "us-ascii" | "ascii" | "ansi_x3.4-1968" | "iso646-us" | "646" => None,
        // The parser has used it.
        known if charset_decoder(known.as_bytes()).is_some() => return,
        _ => None,
    };
    let text = match (decoder, String::from_utf8(octets)) {
        (Some(decoder), octets) => {
            decoder(&octets.map_or_else(std::string::FromUtf8Error::into_bytes, String::into_bytes))
        }
        (None, Ok(text)) => text,
        (None, Err(error)) => match charset_decoder(b"windows-1252") {
            Some(decoder) => decoder(error.as_bytes()),
            None => return,
        },
    };
    part.body = match part.body {
        PartType::Html(_) => PartType::Html(text.into()),
        _ => PartType::Text(text.into()),
    };
}
