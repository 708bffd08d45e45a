//! Deletes messages: for programs by `DELETE`, for people by forms.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};

use super::{not_found, unreadable};
use crate::inbox::Inbox;

pub(super) async fn all(State(inbox): State<Inbox>) -> Response {
    match inbox.clear().await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => unreadable(&error),
    }
}

pub(super) async fn all_by_form(State(inbox): State<Inbox>) -> Response {
    match inbox.clear().await {
        Ok(()) => Redirect::to("/").into_response(),
        Err(error) => unreadable(&error),
    }
}

pub(super) async fn one(State(inbox): State<Inbox>, Path(id): Path<String>) -> Response {
    match inbox.remove(&id).await {
        Ok(true) => StatusCode::NO_CONTENT.into_response(),
        Ok(false) => not_found(),
        Err(error) => unreadable(&error),
    }
}

/// Pressing the button twice is harmless.
pub(super) async fn one_by_form(State(inbox): State<Inbox>, Path(id): Path<String>) -> Response {
    match inbox.remove(&id).await {
        Ok(_) => Redirect::to("/").into_response(),
        Err(error) => unreadable(&error),
    }
}
