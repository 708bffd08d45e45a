//! Whether the process lives, and whether it can do its work.

use axum::extract::State;
use axum::http::StatusCode;

use super::Doors;
use super::problem::{Problem, ProblemBody};
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

/// The database answers, its tables are there, and the process is not about to end. The database is looked at once in
/// a second, and the last look counts: nobody who asks waits for it.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "Health",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 503, body = ProblemBody, content_type = "application/problem+json", description = "`unavailable`, `not_migrated` or `stopping`"),
    )
)]
pub(super) async fn readyz(State(doors): State<Doors>) -> Result<&'static str, Problem> {
    if doors.stopping.is_cancelled() {
        return Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "stopping",
            "This process is about to end; others take its place.",
        ));
    }
    match doors.readiness.last() {
        Ready::Yes => Ok("ready\n"),
        Ready::NotMigrated => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "not_migrated",
            "The database's tables are older than this program.",
        )),
        Ready::Unreachable => Err(Problem::unavailable()),
    }
}
