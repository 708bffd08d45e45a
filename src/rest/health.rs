//! Whether the process lives, and whether it can do its work.

use axum::extract::State;
use axum::http::StatusCode;

use super::Doors;
use super::problem::Problem;
use crate::storage::pool;

/// `GET /healthz`: the process answers.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: the database answers, and its tables are there.
pub(super) async fn readyz(State(doors): State<Doors>) -> Result<&'static str, Problem> {
    match pool::is_ready(&doors.pool).await {
        Ok(true) => Ok("ready\n"),
        Ok(false) => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "not_migrated",
            "The database's tables are older than this program.",
        )),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            Err(Problem::unavailable())
        }
    }
}
