//! Refuses requests of other websites that point their own name here: they could read the mail, and the sign-in links
//! in it.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use mailgate_server::own_hosts::OwnHosts;

/// Passes only requests for the sandbox's own names.
pub(super) async fn guard(State(own): State<OwnHosts>, request: Request, next: Next) -> Response {
    if own.include(request.uri(), request.headers()) {
        return next.run(request).await;
    }
    let words = "The sandbox answers to localhost, 127.0.0.1 and the name in http.base_url alone. \
                 Open it by one of these, or set http.base_url to the name that you use.\n";
    (StatusCode::MISDIRECTED_REQUEST, words).into_response()
}
