//! All paths of the REST interface.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use sqlx::PgPool;
use tower_http::catch_panic::CatchPanicLayer;

use super::problem::Problem;
use super::{health, request, send};
use crate::accounts::Accounts;
use crate::config::Limits;
use crate::mailboxes::Mailboxes;
use crate::sending::Sending;
use crate::types::clock::SharedClock;

/// What handlers work with.
#[derive(Debug, Clone)]
pub struct Doors {
    /// The database, to ask whether it is there.
    pub pool: PgPool,
    /// Who is calling.
    pub accounts: Accounts,
    /// Which mailbox.
    pub mailboxes: Mailboxes,
    /// The way of a message.
    pub sending: Sending,
    /// Bounds.
    pub limits: Arc<Limits>,
    /// The time.
    pub clock: SharedClock,
}

/// The router; `limit` bounds each request.
pub fn router(doors: Doors, limit: Duration) -> Router {
    Router::new()
        .route("/send", post(send::send))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(limit, request::frame))
        .with_state(doors)
}

async fn not_found() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "There is nothing at this path.",
    )
}

async fn method_not_allowed() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "This path takes another method.",
    )
}

/// A slip of ours must not leave a caller without an answer. The panic itself is logged by the hook.
fn panicked(_: Box<dyn std::any::Any + Send>) -> axum::response::Response {
    axum::response::IntoResponse::into_response(Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal_error",
        "Something went wrong in the gateway.",
    ))
}
