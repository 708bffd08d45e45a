//! Protects against cross-site request forgery: other sites' pages can't submit forms here for the user.

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::card::Card;
use mailgate_server::page::Page;
use mailgate_server::same_site::is_foreign;

/// Rejects state-changing requests from another site's page.
pub(crate) async fn guard(request: Request, next: Next) -> Response {
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    if changes && is_foreign(request.headers(), request.uri()) {
        let content = Card::new(
            "A page on another site tried to change something here. Nothing was changed.",
        );
        let title = "This request came from another site";
        return Page::new(StatusCode::FORBIDDEN, title, content).into_response();
    }
    next.run(request).await
}
