//! The page of a message, which marks it as read.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::rows::InboxPage;
use super::view::MessageView;
use super::{STYLE, UPDATE, not_found, subject, unreadable};
use crate::inbox::Inbox;
use crate::switches::Switches;
use mailgate_server::page::Page;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    /// The words that the list is searched for.
    #[serde(default)]
    q: String,
    #[serde(default)]
    tab: String,
}

pub(super) async fn page(
    State(inbox): State<Inbox>,
    State(switches): State<Switches>,
    Path(id): Path<String>,
    Query(asked): Query<Asked>,
) -> Response {
    let Some(message) = inbox.find(&id) else {
        return not_found();
    };
    let bytes = match inbox.raw(&id).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return not_found(),
        Err(error) => return unreadable(&error),
    };
    if !message.read
        && let Err(error) = inbox.mark_read(&id).await
    {
        return unreadable(&error);
    }
    let mut content = match InboxPage::list(&inbox, &switches, &asked.q, Some(id)).await {
        Ok(content) => content,
        Err(error) => return unreadable(&error),
    };
    let words = content.words.clone();
    // A message may be large, and parsing it takes a while.
    let shown = tokio::task::spawn_blocking(move || {
        content.preview = Some(MessageView::new(&message, &bytes, &asked.tab, &words));
        Page::new(StatusCode::OK, subject(&message), content)
            .live_by_script(UPDATE)
            .laid_out(STYLE)
            .with_forms()
            .with_frames()
            .into_response()
    });
    shown
        .await
        .unwrap_or_else(|error| unreadable(&error.into()))
}
