//! Actions on a waiting message: retry it now, or cancel it.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::message::read_id;
use crate::PortalState;
use crate::page::frame::{Frame, Section};
use crate::page::problem::PortalProblem;
use crate::page::session::Session;
use crate::page::{page, see};
use mailgate_domain::reports::FoundMessage;
use mailgate_domain::sending::Blocked;
use mailgate_domain::sending::queue::{QueueError, Scope};
use mailgate_types::ids::LogId;
use mailgate_types::log_status::LogStatus;

/// The confirmation page for an action that can't be undone.
#[derive(Template)]
#[template(path = "cancel_message.html")]
struct CancelPage {
    frame: Frame,
    id: LogId,
}

/// Makes its next attempt due.
pub(crate) async fn retry(
    session: Session,
    State(state): State<PortalState>,
    Path(log_id): Path<String>,
) -> Result<Response, PortalProblem> {
    let id = read_id(&log_id)?;
    let scope = Scope::Subscriber(session.id());
    let retried = state.queue.retry(scope, id, session.author()).await;
    retried.map_err(|error| unchanged(&error, id))?;
    Ok(see(&format!("/portal/messages/{id}?done=retried")))
}

/// Shows the confirmation page for cancelling.
pub(crate) async fn confirm_cancel(
    session: Session,
    State(state): State<PortalState>,
    Path(log_id): Path<String>,
) -> Result<Response, PortalProblem> {
    let id = read_id(&log_id)?;
    let found = state.reports.log(session.id(), id).await?;
    let found = found.ok_or_else(PortalProblem::not_found)?;
    if let FoundMessage::Logged(detail) = &found
        && state.queue.show(id).await?.is_none()
    {
        let ended = match detail.details.log.status {
            LogStatus::Sent => QueueError::Sent,
            _ => QueueError::Failed,
        };
        return Err(unchanged(&ended, id));
    }
    let to = match &found {
        FoundMessage::Logged(detail) => &detail.details.log.to_address,
        FoundMessage::Scheduled(message) => &message.to_address,
    };
    let title = format!("Cancel sending to {to}?");
    let frame = Frame::load(&state, &session.subscriber, Section::Messages, title, None).await;
    Ok(page(StatusCode::OK, &CancelPage { frame, id }))
}

/// Cancels it.
pub(crate) async fn cancel(
    session: Session,
    State(state): State<PortalState>,
    Path(log_id): Path<String>,
) -> Result<Response, PortalProblem> {
    let id = read_id(&log_id)?;
    let scope = Scope::Subscriber(session.id());
    let cancelled = state.queue.cancel(scope, id, session.author()).await;
    cancelled.map_err(|error| unchanged(&error, id))?;
    Ok(see(&format!("/portal/messages/{id}?done=cancelled")))
}

fn unchanged(error: &QueueError, id: LogId) -> PortalProblem {
    let (status, code) = match error {
        QueueError::NotFound => return PortalProblem::not_found(),
        QueueError::Database(error) => return PortalProblem::database(error),
        QueueError::Blocked(Blocked::ByOperator(_)) => {
            (StatusCode::PAYMENT_REQUIRED, "subscriber_suspended")
        }
        QueueError::Blocked(_) => (StatusCode::PAYMENT_REQUIRED, "subscription_blocked"),
        QueueError::InProgress => (StatusCode::CONFLICT, "message_in_progress"),
        QueueError::OutcomeUnknown => (StatusCode::CONFLICT, "outcome_unknown"),
        QueueError::Scheduled => (StatusCode::CONFLICT, "message_scheduled"),
        QueueError::Sent => (StatusCode::CONFLICT, "message_sent"),
        QueueError::Failed => (StatusCode::CONFLICT, "message_failed"),
    };
    PortalProblem::new(
        status,
        code,
        "The message is unchanged",
        format!("{error}."),
    )
    .leading("Back to the message", format!("/portal/messages/{id}"))
}
