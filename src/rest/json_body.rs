//! A request's body as an object of fields, read whole.

use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use super::AppState;
use super::problem::Problem;
use super::request::parse;
use super::whole_body::json_body;

/// The body of an ordinary request: its fields, which are still to be validated. It is read after the caller has shown
/// who it is, since extractors of the header come before it.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<AppState> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let body = json_body(&parts.headers, body, state.limits.body_bytes).await?;
        parse(&body).map(Self)
    }
}
