//! Liveness and readiness.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

use super::AppState;
use crate::http::problem::Problem;
use mailgate_domain::certificates::Certificates;
use mailgate_domain::readiness::Ready;
use mailgate_server::client::arrival;
use mailgate_types::client_probe;

/// The process responds.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "Health",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(super) async fn healthz(State(state): State<AppState>, request: Request) -> Response {
    // `mailgate check` has the sealing keys, and may see which address this process takes for the client.
    let proof = request.headers().get(client_probe::HEADER);
    let now = state.clock.now();
    if proof
        .and_then(|proof| proof.to_str().ok())
        .is_some_and(|proof| client_probe::is_proof(&state.seal_keys, proof, now))
    {
        return Json(arrival(request.extensions(), request.headers())).into_response();
    }
    "ok\n".into_response()
}

/// Ready when the database responds and accepts writes, its tables are up to date, the log has partitions for today
/// and tomorrow, it has confirmed this process's lease within seconds, and the process isn't shutting down. The
/// database is checked once a second; the response is the latest result and never waits for the database. While a name
/// has no certificate from the ACME server yet, a line says so, but the process is ready: the server's challenges may
/// come through the same balancer.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "Health",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 503, description = "`unavailable`, `not_migrated` or `stopping`"),
    )
)]
pub(super) async fn readyz(State(state): State<AppState>) -> Result<String, Problem> {
    if state.stopping.is_cancelled() {
        return Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "stopping",
            "This process is shutting down; send requests to another one.",
        ));
    }
    match state.readiness.last() {
        Ready::Yes => {
            let missing = state.certificates.iter().flat_map(Certificates::missing);
            let lines = missing.map(|name| format!("no certificate yet for {name}\n"));
            Ok(std::iter::once("ready\n".to_owned()).chain(lines).collect())
        }
        Ready::NotMigrated => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "not_migrated",
            "The database's tables are older than this version of the gateway; migrate them first.",
        )),
        Ready::Unable(_) => Err(Problem::unavailable()),
    }
}
