//! Received messages, newest first: the page, with a search, and the JSON.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::unreadable;
use crate::inbox::{ArrivedMessage, Found, Inbox};
use mailgate_server::page::Page;

/// How many messages the page shows.
const SHOWN: usize = 100;

/// How many messages `GET /messages` returns by default: all.
const LISTED: usize = 10_000;

/// The interval at which the page reloads without scripts, in seconds.
pub(super) const REFRESH: u32 = 5;

/// The time limit of a search. It is repeated while its page is open.
const PATIENCE: Duration = Duration::from_millis(500);

/// The script that keeps the page up to date.
const UPDATE: &str = include_str!("update.js");

/// The faults triggered by a recipient's local part.
pub(super) const FAULTS: [(&str, &str); 6] = [
    ("tempfail@", "451, a temporary failure"),
    ("quota@", "452, the mailbox is full"),
    ("permfail@", "550, a permanent failure"),
    ("limit@", "554, the sending limit is reached"),
    ("drop@", "the connection is cut before the reply"),
    ("slow@", "accepted after 2 seconds"),
];

#[derive(Debug, Deserialize)]
pub(super) struct Limit {
    limit: Option<usize>,
}

pub(super) async fn json(State(inbox): State<Inbox>, Query(query): Query<Limit>) -> Response {
    let messages = inbox.list(query.limit.unwrap_or(LISTED));
    let messages: Vec<&ArrivedMessage> = messages.iter().map(AsRef::as_ref).collect();
    ([(CACHE_CONTROL, "no-store")], Json(messages)).into_response()
}

#[derive(Debug, Deserialize)]
pub(super) struct Words {
    /// Words to search for.
    #[serde(default)]
    q: String,
}

#[derive(Template)]
#[template(path = "inbox.html")]
struct InboxPage {
    words: String,
    found: Found,
    /// The number of all messages.
    count: usize,
}

impl InboxPage {
    fn messages(&self) -> &[Arc<ArrivedMessage>] {
        &self.found.messages
    }
}

pub(super) async fn page(State(inbox): State<Inbox>, Query(query): Query<Words>) -> Response {
    let words = query.q.trim().to_owned();
    let found = match inbox.search(&words, SHOWN, PATIENCE).await {
        Ok(found) => found,
        Err(error) => return unreadable(&error),
    };
    let content = InboxPage {
        words,
        found,
        count: inbox.count(),
    };
    Page::new(StatusCode::OK, "Sandbox inbox", content)
        .live(UPDATE, REFRESH)
        .with_forms()
        .into_response()
}
