//! Keeps other sites' pages from pressing buttons here in the name of whoever looks at them.

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use mailgate_server::page::Page;
use mailgate_server::same_site::is_foreign;

/// Refuses what changes something and comes from another site's page.
pub(super) async fn guard(request: Request, next: Next) -> Response {
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    if changes && is_foreign(request.headers(), request.uri()) {
        return Page::new(
            StatusCode::FORBIDDEN,
            "This came from another site",
            "<p class=\"card\">A page of another site tried to change something here. Nothing was changed.</p>",
        )
        .into_response();
    }
    next.run(request).await
}
