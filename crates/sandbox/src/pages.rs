//! The sandbox's pages and API over its inbox: what arrived, as HTML for people and as JSON for tests.
//!
//! Message bytes never reach a browser as a page: they are escaped, or sent as `message/rfc822`.

mod message;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use chrono::SecondsFormat;
use serde::Deserialize;

use self::message::MessagePage;
use super::card::Card;
use super::inbox::{ArrivedMessage, Inbox};
use mailgate_server::page::Page;

/// How many messages the list page shows.
const SHOWN: usize = 100;

/// How many messages `GET /messages` answers unless asked otherwise: all that are kept.
const LISTED: usize = 10_000;

/// Seconds between two loads of the list page where scripts are off.
const REFRESH: u32 = 5;

/// What a recipient's local part makes the sandbox do, for the list page.
const FAULTS: [(&str, &str); 6] = [
    ("tempfail@", "451, a temporary failure"),
    ("quota@", "452, the mailbox is full"),
    ("permfail@", "550, a permanent failure"),
    ("limit@", "554, the sending limit is reached"),
    ("drop@", "the connection is cut before the reply"),
    ("slow@", "accepted after 2 seconds"),
];

/// `GET /`, `GET` and `DELETE /messages`, `GET /messages/{id}`, `GET /messages/{id}/raw`.
pub fn router(inbox: Inbox) -> Router {
    Router::new()
        .route("/", get(list_page))
        .route("/messages", get(list).delete(clear))
        .route("/messages/{id}", get(message_page))
        .route("/messages/{id}/raw", get(raw))
        .with_state(inbox)
}

#[derive(Debug, Deserialize)]
struct Limit {
    limit: Option<usize>,
}

async fn list(State(inbox): State<Inbox>, Query(query): Query<Limit>) -> Response {
    let messages = inbox.list(query.limit.unwrap_or(LISTED));
    let messages: Vec<&ArrivedMessage> = messages.iter().map(AsRef::as_ref).collect();
    ([(CACHE_CONTROL, "no-store")], Json(messages)).into_response()
}

async fn clear(State(inbox): State<Inbox>) -> Response {
    match inbox.clear().await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => unreadable(&error),
    }
}

async fn raw(State(inbox): State<Inbox>, Path(id): Path<String>) -> Response {
    match inbox.raw(&id).await {
        Ok(Some(bytes)) => (
            [
                (CONTENT_TYPE, "message/rfc822"),
                (X_CONTENT_TYPE_OPTIONS, "nosniff"),
                (CONTENT_DISPOSITION, "attachment; filename=\"message.eml\""),
                (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
            ],
            bytes,
        )
            .into_response(),
        Ok(None) => not_found(),
        Err(error) => unreadable(&error),
    }
}

#[derive(Template)]
#[template(path = "inbox.html")]
struct InboxPage {
    /// The newest ones.
    messages: Vec<Arc<ArrivedMessage>>,
    /// Of all that are there.
    count: usize,
}

async fn list_page(State(inbox): State<Inbox>) -> Response {
    let content = InboxPage {
        messages: inbox.list(SHOWN),
        count: inbox.count(),
    };
    Page::new(StatusCode::OK, "Sandbox inbox", content)
        .live(REFRESH)
        .into_response()
}

async fn message_page(State(inbox): State<Inbox>, Path(id): Path<String>) -> Response {
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
        let content = MessagePage::new(&message, &bytes);
        Page::new(StatusCode::OK, "Message", content).into_response()
    });
    shown
        .await
        .unwrap_or_else(|error| unreadable(&error.into()))
}

fn subject(message: &ArrivedMessage) -> &str {
    match message.subject.as_deref().map(str::trim) {
        None | Some("") => "(no subject)",
        Some(subject) => subject,
    }
}

fn sender(message: &ArrivedMessage) -> &str {
    // RFC 5321 §4.5.5: the null reverse-path.
    if message.envelope_from.is_empty() {
        "<>"
    } else {
        &message.envelope_from
    }
}

fn received_at(message: &ArrivedMessage) -> String {
    message
        .received_at
        .to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn not_found() -> Response {
    let content = Card::new("It may have been cleared, or made room for newer ones.")
        .with_link("/", "See what is there");
    Page::new(StatusCode::NOT_FOUND, "No such message", content).into_response()
}

fn unreadable(error: &std::io::Error) -> Response {
    tracing::error!(%error, "the sandbox inbox's folder failed");
    let content =
        Card::new("The folder of the sandbox inbox failed; see mailgate's log for the reason.");
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    Page::new(status, "The inbox can't be read", content).into_response()
}
