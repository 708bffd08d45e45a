//! Whether the process lives, and whether it can do its work.

use axum::extract::State;
use axum::http::StatusCode;

use super::AppState;
use super::problem::Problem;
use crate::storage::readiness::Ready;

/// The process answers.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "Health",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Ready when the database answers, its tables are up to date, and the process isn't shutting down. The database is
/// checked once a second; the answer is the latest result, and never waits for the database.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "Health",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 503, description = "`unavailable`, `not_migrated` or `stopping`"),
    )
)]
pub(super) async fn readyz(State(state): State<AppState>) -> Result<&'static str, Problem> {
    if state.stopping.is_cancelled() {
        return Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "stopping",
            "This process is shutting down; send requests to another one.",
        ));
    }
    match state.readiness.last() {
        Ready::Yes => Ok("ready\n"),
        Ready::NotMigrated => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "not_migrated",
            "The database's tables are older than this version of the gateway; migrate them first.",
        )),
        Ready::Unreachable => Err(Problem::unavailable()),
    }
}
