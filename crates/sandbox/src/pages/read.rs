//! Marks all messages as read, by a form.

use axum::Form;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::{back, unreadable};
use crate::inbox::Inbox;

#[derive(Debug, Deserialize)]
pub(super) struct Fields {
    /// The message whose page it was sent from.
    back: Option<String>,
}

pub(super) async fn all_by_form(State(inbox): State<Inbox>, Form(form): Form<Fields>) -> Response {
    match inbox.mark_all_read().await {
        Ok(()) => back(&inbox, form.back.as_deref()).into_response(),
        Err(error) => unreadable(&error),
    }
}
