//! Messages whose structure is their content: a signature is over the bytes of a part, an invitation is an alternative
//! of the text. Exchange rebuilds a message from a draft's text and its files, and supports only `multipart/mixed`,
//! `alternative` and `related`: recipients would get anything else as separate files.

use mail_parser::{ContentType, Message, MessagePart, MimeHeaders, PartType};

/// The media type of a part that would be lost; `None` if the message can be rebuilt.
pub(super) fn indivisible(message: &Message<'_>) -> Option<String> {
    let parts = || message.parts.iter().enumerate();
    let own = parts().find(|(number, part)| is_indivisible(part, *number == 0));
    let lost = own
        .map(|(_, part)| part)
        .or_else(|| parts().find_map(|(_, part)| lost_child(message, part)));
    lost.map(media_type)
}

fn is_indivisible(part: &MessagePart<'_>, is_whole: bool) -> bool {
    let (kind, subtype) = words(part);
    let is_file = is_file(part) && !is_whole;
    match (kind.as_str(), subtype.as_str()) {
        ("multipart", "mixed" | "alternative" | "related") => false,
        ("multipart", _) => true,
        // Also as application/x-pkcs7-mime (RFC 8551 App. C).
        ("application", "pkcs7-mime" | "x-pkcs7-mime" | "pgp-encrypted") | ("text", "calendar") => {
            !is_file
        }
        _ => false,
    }
}

/// A child that would lose its position in an alternative or beside a root.
fn lost_child<'a>(message: &'a Message<'a>, part: &MessagePart<'_>) -> Option<&'a MessagePart<'a>> {
    let PartType::Multipart(children) = &part.body else {
        return None;
    };
    let mut children = children.iter().filter_map(|number| message.part(*number));
    match words(part).1.as_str() {
        "alternative" => children.find(|child| {
            let (kind, subtype) = words(child);
            kind == "text" && !matches!(subtype.as_str(), "plain" | "html") && !is_file(child)
        }),
        // RFC 2387 §3.2: the first part is the root, the only one that a reader shows.
        "related" => {
            (children.next()).filter(|root| !matches!(words(root).0.as_str(), "text" | "multipart"))
        }
        _ => None,
    }
}

fn is_file(part: &MessagePart<'_>) -> bool {
    part.content_disposition()
        .is_some_and(ContentType::is_attachment)
}

/// Type and subtype in lower case; `text/plain` if there is none (RFC 2045 §5.2).
fn words(part: &MessagePart<'_>) -> (String, String) {
    let given = part.content_type();
    given.map_or(("text".to_owned(), "plain".to_owned()), |given| {
        let subtype = given.subtype().unwrap_or_default();
        (
            given.ctype().to_ascii_lowercase(),
            subtype.to_ascii_lowercase(),
        )
    })
}

/// For the error, which shows only characters that a media type may have (RFC 6838 §4.2).
fn media_type(part: &MessagePart<'_>) -> String {
    let (kind, subtype) = words(part);
    let shown = format!("{kind}/{subtype}");
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/.+-_".contains(letter);
    shown
        .chars()
        .filter(|letter| is_plain(*letter))
        .take(100)
        .collect()
}
