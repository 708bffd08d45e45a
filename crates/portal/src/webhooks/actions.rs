//! Actions on a webhook configuration: pause, resume, test, delete.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::form::config;
use crate::PortalState;
use crate::page::frame::{Frame, Section};
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::{page, see};
use mailgate_domain::webhooks::{TestError, WebhookConfigChange};

/// The confirmation page for deleting it.
#[derive(Template)]
#[template(path = "delete_webhook.html")]
struct DeletePage {
    frame: Frame,
    path: String,
}

/// Pauses it: it receives no new events until it is resumed.
pub(crate) async fn pause(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
) -> Result<Response, PortalProblem> {
    switch(&session, &state, &id, false).await
}

/// Resumes it.
pub(crate) async fn resume(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
) -> Result<Response, PortalProblem> {
    switch(&session, &state, &id, true).await
}

async fn switch(
    session: &Session,
    state: &PortalState,
    id: &str,
    is_active: bool,
) -> Result<Response, PortalProblem> {
    let (app, id, known) = config(state, session, id).await?;
    let change = WebhookConfigChange {
        is_active: Some(is_active),
        ..WebhookConfigChange::default()
    };
    let changed = state
        .webhooks
        .change_configuration(app, id, &change, session.author());
    changed.await?.ok_or_else(PortalProblem::not_found)?;
    let done = if is_active { "resumed" } else { "paused" };
    Ok(see(&format!("{}?done={done}", known.path)))
}

/// Sends a test event now; its result is among the deliveries.
pub(crate) async fn test(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
) -> Result<Response, PortalProblem> {
    let (app, id, known) = config(&state, &session, &id).await?;
    let found = state.webhooks.configuration(app, id).await?;
    let found = found.ok_or_else(PortalProblem::not_found)?;
    let author = session.author();
    // Frees the session's slot: the receiver takes its time, and no query runs meanwhile.
    drop(session);
    let tested = state.webhooks.test(&found, author).await;
    let (_, attempt) = tested.map_err(|error| match error {
        TestError::UnderWay => PortalProblem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "test_under_way",
            "Another test is in progress",
            "An app can have one test event in progress. Wait a few seconds, and try again.",
        )
        .leading("Back to the webhook", known.path.clone()),
        TestError::Database(error) => PortalProblem::database(&error),
        error @ TestError::Secret => PortalProblem::internal(&error),
    })?;
    let done = if attempt.success {
        "test-passed"
    } else {
        "test-failed"
    };
    Ok(see(&format!("{}?done={done}", known.path)))
}

/// Shows the confirmation page for deleting.
pub(crate) async fn confirm_delete(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
) -> Result<Response, PortalProblem> {
    let (_, _, known) = config(&state, &session, &id).await?;
    let (section, title) = (Section::Webhooks, "Delete this webhook?");
    let body = DeletePage {
        frame: Frame::load(&state, &session.subscriber, section, title, None).await,
        path: known.path,
    };
    Ok(page(StatusCode::OK, &body))
}

/// Deletes it.
pub(crate) async fn delete(
    session: Session,
    State(state): State<PortalState>,
    Path(id): Path<String>,
) -> Result<Response, PortalProblem> {
    let (app, id, _) = config(&state, &session, &id).await?;
    let deleted = state
        .webhooks
        .delete_configuration(app, id, session.author());
    if !deleted.await? {
        return Err(PortalProblem::not_found());
    }
    Ok(see("/portal/webhooks?done=deleted"))
}
