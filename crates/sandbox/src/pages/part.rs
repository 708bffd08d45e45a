//! Parts of a message as separate documents: its HTML for a sandboxed frame, and its parts as downloads.

use std::fmt::Write as _;

use axum::extract::{Path, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use mail_parser::{Message, MessagePart, MimeHeaders as _, PartType};

use super::{not_found, stored, unreadable};
use crate::inbox::Inbox;
use crate::mime;

/// No scripts, no forms, nothing from other hosts. Links open in a new tab.
const POLICY: &str = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src 'self' data:; \
    style-src 'unsafe-inline'; font-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

/// The media type of downloads.
const BYTES: &str = "application/octet-stream";

/// Image types shown in a frame; not SVG, which is a document.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Makes links open in a new tab.
const LINKS: &str = "<base target=\"_blank\">";

/// The first HTML part of the message, with its own images inlined.
pub(super) async fn html(State(inbox): State<Inbox>, Path(id): Path<String>) -> Response {
    let address = format!("/messages/{id}/parts");
    let read = move |_: &mime::Readable<'_>, message: &Message<'_>| {
        let headers = [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            (CACHE_CONTROL, "no-store"),
        ];
        Some((headers, document(message, &address)?).into_response())
    };
    answer(&inbox, &id, read).await
}

/// A part by its index in the message.
pub(super) async fn download(
    State(inbox): State<Inbox>,
    Path((id, number)): Path<(String, usize)>,
) -> Response {
    let read = move |readable: &mime::Readable<'_>, message: &Message<'_>| {
        let part = message.parts.get(number)?;
        if matches!(part.body, PartType::Multipart(_)) {
            return None;
        }
        let disposition = format!("attachment; filename*=UTF-8''{}", file_name(part));
        let headers = stored(image_type(part).unwrap_or(BYTES), &disposition);
        Some((headers, readable.contents(part)).into_response())
    };
    answer(&inbox, &id, read).await
}

/// Reads and parses a message off the async threads, since it may be large.
async fn answer(
    inbox: &Inbox,
    id: &str,
    read: impl FnOnce(&mime::Readable<'_>, &Message<'_>) -> Option<Response> + Send + 'static,
) -> Response {
    let bytes = match inbox.raw(id).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return not_found(),
        Err(error) => return unreadable(&error),
    };
    let answer = tokio::task::spawn_blocking(move || {
        let readable = mime::Readable::new(&bytes);
        let message = readable.parse()?;
        read(&readable, &message)
    });
    match answer.await {
        Ok(answer) => answer.unwrap_or_else(not_found),
        Err(error) => unreadable(&error.into()),
    }
}

/// Whether it is an attachment, not shown inline.
pub(super) fn is_attachment(part: &MessagePart<'_>) -> bool {
    part.content_disposition()
        .is_some_and(mail_parser::ContentType::is_attachment)
}

/// Its media type in lower case; `None` if it isn't known.
pub(super) fn media_type(part: &MessagePart<'_>) -> Option<String> {
    let said = part.content_type()?;
    let (kind, subtype) = (said.ctype(), said.subtype());
    let whole = subtype.map_or_else(|| kind.to_owned(), |subtype| format!("{kind}/{subtype}"));
    Some(mime::restored(&whole).to_lowercase())
}

fn document(message: &Message<'_>, address: &str) -> Option<String> {
    let mut shown = message.parts.iter().filter(|part| !is_attachment(part));
    let mut html = shown.find_map(|part| match &part.body {
        PartType::Html(html) => Some(mime::restored(html)),
        _ => None,
    })?;
    // RFC 2392: other parts by their Content-ID.
    for (number, part) in message.parts.iter().enumerate() {
        if let Some(id) = part.content_id().filter(|id| !id.is_empty()) {
            html = html.replace(&format!("cid:{id}"), &format!("{address}/{number}"));
        }
    }
    // Before the doctype it would change the page's rendering mode.
    let start = html.len() - html.trim_start().len();
    let doctype = html.get(start..start + 9).unwrap_or_default();
    let place = if doctype.eq_ignore_ascii_case("<!doctype") {
        html.find('>').map_or(start, |end| end + 1)
    } else {
        start
    };
    html.insert_str(place, LINKS);
    Some(html)
}

/// The type of an image that browsers show in a frame. Other declared types are ignored.
fn image_type(part: &MessagePart<'_>) -> Option<&'static str> {
    let said = media_type(part)?;
    IMAGES.into_iter().find(|image| *image == said)
}

/// RFC 8187.
fn file_name(part: &MessagePart<'_>) -> String {
    let name = part.attachment_name().unwrap_or("attachment");
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String can't fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
