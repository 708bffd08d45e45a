//! A request's body as an object of fields, read whole.

use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use super::problem::Problem;
use super::request::parse;
use super::whole_body::{json_body, optional_json_body};
use crate::AppState;

/// The body of an ordinary request: its fields, still to be validated. It is read after the caller has authenticated,
/// since extractors of the headers come before it.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<AppState> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let body = json_body(&parts.headers, body, state.limits.body_bytes).await?;
        parse(&body).map(Self)
    }
}

/// A body that may be omitted or `null`: all of its fields are optional.
pub(crate) struct OptionalJsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<AppState> for OptionalJsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let body = optional_json_body(&parts.headers, body, state.limits.body_bytes).await?;
        match body {
            Some(body) if body.trim_ascii() != b"null" => parse(&body).map(Self),
            _ => Ok(Self(T::default())),
        }
    }
}
