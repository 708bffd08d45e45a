//! Received messages, newest first: the page, with a search, and the JSON.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::rows::InboxPage;
use super::{STYLE, UPDATE, unreadable};
use crate::inbox::{ArrivedMessage, Inbox};
use crate::switches::Switches;
use mailgate_server::page::Page;

/// How many messages `GET /messages` returns by default: all.
const LISTED: usize = 10_000;

/// The interval at which the page reloads without scripts, in seconds.
const REFRESH: u32 = 5;

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
pub(super) struct Asked {
    /// Words to search for.
    #[serde(default)]
    q: String,
    /// The message that is marked as the opened one.
    id: Option<String>,
}

pub(super) async fn page(
    State(inbox): State<Inbox>,
    State(switches): State<Switches>,
    Query(asked): Query<Asked>,
) -> Response {
    let chosen = asked.id.filter(|id| inbox.find(id).is_some());
    match InboxPage::list(&inbox, &switches, &asked.q, chosen).await {
        Ok(content) => Page::new(StatusCode::OK, "Sandbox inbox", content)
            .live(UPDATE, REFRESH)
            .laid_out(STYLE)
            .with_forms()
            .into_response(),
        Err(error) => unreadable(&error),
    }
}
