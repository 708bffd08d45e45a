//! The sandbox's pages and API for its inbox: received messages, as HTML for people and as JSON for tests.
//!
//! A message's content is escaped, served for a sandboxed frame without scripts, or offered as a download.

mod delete;
mod list;
mod message;
mod part;
mod read;
mod rows;
mod switch;
#[cfg(test)]
mod tests;
mod view;

use std::io;

use axum::Router;
use axum::extract::{FromRef, Path, State};
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use url::form_urlencoded::byte_serialize;

use super::card::Card;
use super::inbox::{ArrivedMessage, Inbox};
use super::same_site;
use super::switches::Switches;
use mailgate_server::page::Page;

/// The style of the inbox's pages, over the usual one.
const STYLE: &str = include_str!("pages/inbox.css");

/// The script that keeps the list up to date.
const UPDATE: &str = include_str!("pages/update.js");

/// Longest subject, sender or recipient on a page, in bytes.
const NAME: usize = 1_000;

/// Recipients that are named.
const NAMED: usize = 20;

/// What the pages show.
#[derive(Debug, Clone, FromRef)]
struct Site {
    inbox: Inbox,
    switches: Switches,
}

/// `GET /?q=`, `GET` and `DELETE /messages`, `GET` and `DELETE /messages/{id}`, `GET /messages/{id}/raw`, `/html` and
/// `/parts/{number}`; `GET`, `PUT` and `DELETE /switches`; `POST /messages/delete`, `/messages/read`,
/// `/messages/{id}/delete` and `/switches` for the pages' forms.
pub fn router(inbox: Inbox, switches: Switches) -> Router {
    Router::new()
        .route("/", get(list::page))
        .route("/messages", get(list::json).delete(delete::all))
        .route("/messages/delete", post(delete::all_by_form))
        .route("/messages/read", post(read::all_by_form))
        .route("/messages/{id}", get(message::page).delete(delete::one))
        .route("/messages/{id}/delete", post(delete::one_by_form))
        .route("/messages/{id}/raw", get(raw))
        .route("/messages/{id}/html", get(part::html))
        .route("/messages/{id}/parts/{number}", get(part::download))
        .route(
            "/switches",
            get(switch::json)
                .put(switch::set)
                .delete(switch::off)
                .post(switch::set_by_form),
        )
        .layer(from_fn(same_site::guard))
        .with_state(Site { inbox, switches })
}

/// The page to return to after a form: that of a message that is still there, or the list.
fn back(inbox: &Inbox, id: Option<&str>) -> Redirect {
    match id.filter(|id| inbox.find(id).is_some()) {
        Some(id) => Redirect::to(&format!("/messages/{id}")),
        None => Redirect::to("/"),
    }
}

async fn raw(State(inbox): State<Inbox>, Path(id): Path<String>) -> Response {
    match inbox.raw(&id).await {
        Ok(Some(bytes)) => (
            stored("message/rfc822", "attachment; filename=\"message.eml\""),
            bytes,
        )
            .into_response(),
        Ok(None) => not_found(),
        Err(error) => unreadable(&error),
    }
}

/// The headers for a sender's bytes, which browsers must not treat as our own page.
fn stored<'a>(media_type: &'a str, disposition: &'a str) -> [(HeaderName, &'a str); 5] {
    [
        (CONTENT_TYPE, media_type),
        (CONTENT_DISPOSITION, disposition),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (CACHE_CONTROL, "no-store"),
    ]
}

fn subject(message: &ArrivedMessage) -> &str {
    match message.subject.as_deref().map(str::trim) {
        None | Some("") => "(no subject)",
        Some(subject) => cut(subject, NAME),
    }
}

fn sender(message: &ArrivedMessage) -> &str {
    // RFC 5321 §4.5.5: the null reverse-path.
    if message.envelope_from.is_empty() {
        "<>"
    } else {
        cut(&message.envelope_from, NAME)
    }
}

/// The beginning of a text: at most this many bytes.
fn cut(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}

/// A value for a query.
fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

/// The first recipients, and the number of the others.
fn named(recipients: &[String]) -> String {
    let first: Vec<&str> = (recipients.iter().take(NAMED))
        .map(|recipient| cut(recipient, NAME))
        .collect();
    let first = first.join(", ");
    match recipients.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The whole time, to the second.
fn received_at(message: &ArrivedMessage) -> String {
    (message.received_at)
        .format("%-d %b %Y %H:%M:%S UTC")
        .to_string()
}

/// A size for people.
fn size(bytes: usize) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{}.{} kB", bytes / 1_000, bytes % 1_000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

fn not_found() -> Response {
    let content = Card::new("It may have been deleted, or made room for newer ones.")
        .with_link("/", "See all messages");
    Page::new(StatusCode::NOT_FOUND, "No such message", content).into_response()
}

fn unreadable(error: &io::Error) -> Response {
    tracing::error!(%error, "the sandbox inbox's folder failed");
    let content =
        Card::new("The folder of the sandbox inbox failed; see mailgate's log for the reason.");
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    Page::new(status, "The inbox can't be read", content).into_response()
}
