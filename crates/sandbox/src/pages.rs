//! The sandbox's pages and API over its inbox: what arrived, as HTML for people and as JSON for tests.
//!
//! Message bytes never reach a browser as a page: they are escaped, or sent as `message/rfc822`.

mod message;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

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

use super::inbox::{ArrivedMessage, Inbox};
use mailgate_server::page::{Page, escaped};

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

async fn list_page(State(inbox): State<Inbox>) -> Response {
    let messages = inbox.list(SHOWN);
    let mut body = String::from("<p><a href=\"/payprov\">Payments</a></p>");
    if messages.is_empty() {
        body.push_str(
            "<p class=\"card\">Nothing has arrived yet. Send a message through a mailbox connected to this sandbox, \
             to any recipient: it stays here and goes no further. It appears on this page by itself.</p>",
        );
    } else {
        let count = inbox.count();
        let noun = if count == 1 { "message" } else { "messages" };
        // Writing to a String can't fail, here and below.
        let _ = write!(body, "<p class=\"soft\">{count} {noun}, newest first");
        if count > messages.len() {
            let _ = write!(body, "; the newest {} are shown", messages.len());
        }
        body.push_str(".</p><ul>");
        for message in &messages {
            body.push_str(&list_item(message));
        }
        body.push_str("</ul>");
    }
    body.push_str(
        "<h2>Recipients that fail on purpose</h2><div class=\"card\"><p>Whatever the domain, a recipient beginning with one of \
         these makes the sandbox answer:</p><dl>",
    );
    for (recipient, effect) in FAULTS {
        let _ = write!(body, "<dt><code>{recipient}</code></dt><dd>{effect}</dd>");
    }
    body.push_str("</dl></div>");
    Page::new(StatusCode::OK, "Sandbox inbox", &body)
        .live(REFRESH)
        .into_response()
}

fn list_item(message: &ArrivedMessage) -> String {
    let subject = message.subject.as_deref().unwrap_or_default().trim();
    let subject = if subject.is_empty() {
        "(no subject)"
    } else {
        subject
    };
    format!(
        "<li class=\"card\"><a href=\"/messages/{id}\">{subject}</a><br>{from} → {to}<br><small>{time} · {size} bytes</small></li>",
        id = escaped(&message.id),
        subject = escaped(subject),
        from = escaped(sender(message)),
        to = escaped(&message.envelope_to.join(", ")),
        time = received_at(message),
        size = message.size,
    )
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
    let content = match tokio::task::spawn_blocking(move || message::html(&bytes)).await {
        Ok(content) => content,
        Err(error) => return unreadable(&error.into()),
    };
    let body = format!(
        "<p><a href=\"/\">All messages</a> · <a href=\"/messages/{id}/raw\">The exact bytes</a></p>\
         <h2>Envelope</h2><div class=\"card\"><dl><dt>Mailbox</dt><dd>{mailbox}</dd><dt>From</dt><dd>{from}</dd><dt>To</dt><dd>{to}</dd>\
         <dt>Arrived</dt><dd>{time}</dd><dt>Size</dt><dd>{size} bytes</dd></dl></div>{content}",
        id = escaped(&message.id),
        mailbox = escaped(&message.mailbox),
        from = escaped(sender(&message)),
        to = escaped(&message.envelope_to.join(", ")),
        time = received_at(&message),
        size = message.size,
    );
    Page::new(StatusCode::OK, "Message", &body).into_response()
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
    Page::new(
StatusCode::NOT_FOUND,
"No such message",
"<p class=\"card\">It may have been cleared, or made room for newer ones. <a href=\"/\">See what is there</a>.</p>",
)
    .into_response()
}

fn unreadable(error: &std::io::Error) -> Response {
    tracing::error!(%error, "the sandbox inbox's folder failed");
    Page::new(
StatusCode::INTERNAL_SERVER_ERROR,
"The inbox can't be read",
"<p class=\"card\">The folder of the sandbox inbox failed; see mailgate's log for the reason.</p>",
)
    .into_response()
}
