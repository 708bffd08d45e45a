//! The API's error responses: `{"error": {"type", "code", "message", "param"}}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// A rejected request.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    param: Option<String>,
    message: String,
}

impl Refusal {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            code: None,
            param: None,
            message: message.into(),
        }
    }

    /// 400: an invalid request.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// 400: an invalid parameter.
    pub(super) fn parameter(param: &str, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code: Some(code),
            param: Some(param.to_owned()),
            ..Self::invalid(message)
        }
    }

    /// A missing object: 404 if it is in the path, 400 if it is in a parameter.
    pub(super) fn missing(status: StatusCode, kind: &str, param: &str, id: &str) -> Self {
        Self {
            status,
            ..Self::parameter(param, "resource_missing", format!("No such {kind}: '{id}'"))
        }
    }

    /// 401.
    pub(super) fn unauthorized() -> Self {
        let message = "Invalid API Key provided.";
        Self::new(StatusCode::UNAUTHORIZED, "invalid_request_error", message)
    }

    /// 402: the card was declined.
    pub(super) fn card(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code: Some(code),
            ..Self::new(StatusCode::PAYMENT_REQUIRED, "card_error", message)
        }
    }

    /// 400: the key was used for another request.
    pub(super) fn idempotency() -> Self {
        let message = "Keys for idempotent requests can only be used with the same parameters they were first used with.";
        Self::new(StatusCode::BAD_REQUEST, "idempotency_error", message)
    }

    /// 429.
    pub(super) fn rate_limited() -> Self {
        Self {
            code: Some("rate_limit"),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "invalid_request_error",
                "Request rate limit exceeded.",
            )
        }
    }

    /// 5xx.
    pub(super) fn broken(status: StatusCode) -> Self {
        Self::new(status, "api_error", "Sorry, something went wrong.")
    }

    /// 404: an unknown path.
    pub(super) fn unknown_path(method: &str, path: &str) -> Self {
        let message = format!("Unrecognized request URL ({method}: /v1/{path}).");
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
    }

    pub(super) fn body(&self) -> Value {
        let mut error = json!({ "type": self.kind, "message": self.message });
        if let Some(code) = self.code {
            error["code"] = code.into();
        }
        if let Some(param) = &self.param {
            error["param"] = param.as_str().into();
        }
        json!({ "error": error })
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(self.body())).into_response()
    }
}
