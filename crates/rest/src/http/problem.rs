//! Errors as RFC 9457 `application/problem+json`.

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use mailgate_domain::accounts::credential_has_ended;
use mailgate_server::failure::Failure;
use mailgate_types::ids::LogId;

/// `Retry-After` in seconds when the gateway is short of a resource.
const RETRY_SECONDS: u16 = 5;

/// `Retry-After` in seconds for a caller whose mail is queued: the time until the first retry.
const QUOTA_SECONDS: u16 = 60;

/// Maximum length, in characters, of the logged names of invalid fields.
const FIELDS: usize = 200;

/// An invalid field.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FieldError {
    /// Its name: `to`, `cc[1]`, `headers.X-Tag`, `attachments[0].content`.
    #[schema(value_type = String)]
    pub(crate) field: Cow<'static, str>,
    /// The rule it breaks.
    pub(crate) detail: String,
}

impl FieldError {
    pub(crate) fn new(field: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            detail: detail.into(),
        }
    }
}

/// Reads a value, if given, and records an error.
pub(crate) fn take<T, E: Display>(
    errors: &mut Vec<FieldError>,
    field: &'static str,
    text: Option<String>,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Option<T> {
    match read(&text?) {
        Ok(value) => Some(value),
        Err(error) => {
            errors.push(FieldError::new(field, error.to_string()));
            None
        }
    }
}

/// A failed request. The middleware that knows the request's ID renders it.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    errors: Vec<FieldError>,
    log_id: Option<LogId>,
    replayed: bool,
    /// Only for the log.
    cause: Option<String>,
}

/// What went wrong (RFC 9457).
#[derive(Serialize, ToSchema)]
pub(crate) struct ProblemBody {
    /// `about:blank`: `code` is more specific.
    r#type: String,
    /// The status as text.
    title: String,
    /// The HTTP status.
    status: u16,
    /// The error, for people.
    detail: String,
    /// The error, for programs: a stable code.
    #[schema(example = "invalid_request")]
    code: String,
    /// The same as in `X-Request-Id`.
    request_id: String,
    /// The invalid fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<FieldError>,
    /// The message's log row, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    log_id: Option<String>,
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        Self::database(&error)
    }
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            errors: Vec::new(),
            log_id: None,
            replayed: false,
            cause: None,
        }
    }

    /// The same response was already returned under the same idempotency key.
    pub(crate) fn replayed(self) -> Self {
        Self {
            replayed: true,
            ..self
        }
    }

    /// 422 with each invalid field.
    pub(crate) fn fields(errors: Vec<FieldError>) -> Self {
        let detail = errors
            .iter()
            .map(|error| format!("{} {}", error.field, error.detail))
            .collect::<Vec<_>>()
            .join("; ");
        Self {
            errors,
            ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_request", detail)
        }
    }

    /// Names the fields concerned.
    pub(crate) fn naming(self, errors: Vec<FieldError>) -> Self {
        Self { errors, ..self }
    }

    /// Too many of the caller's requests are in progress.
    pub(crate) fn too_many_requests(detail: &'static str) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail)
    }

    /// The operator has suspended the subscriber's account.
    pub(crate) fn suspended(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYMENT_REQUIRED, "subscriber_suspended", detail)
    }

    /// 503; the database error goes to the log.
    pub(crate) fn database(error: &sqlx::Error) -> Self {
        if credential_has_ended(error) {
            return Self::new(
                StatusCode::UNAUTHORIZED,
                "invalid_api_secret",
                "The API secret was renewed, deleted or has expired in the meantime. Nothing was changed.",
            );
        }
        Self::unavailable().because(format!("database query failed: {error}"))
    }

    /// 500; the cause goes to the log.
    pub(crate) fn internal(error: &dyn std::error::Error) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            "Something went wrong on our side. If it persists, quote the request_id.",
        )
        .because(error.to_string())
    }

    /// Further details for the log.
    pub(crate) fn because(self, cause: impl Into<String>) -> Self {
        Self {
            cause: Some(cause.into()),
            ..self
        }
    }

    /// The error code.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// The error's text for the log.
    pub(crate) fn failure(&self) -> Failure {
        let fields: Vec<&str> = self.errors.iter().map(|error| &*error.field).collect();
        Failure {
            code: self.code.to_owned(),
            fields: fields.join(" ").chars().take(FIELDS).collect(),
            cause: self.cause.clone(),
        }
    }

    /// 503: the database is unavailable; the caller sees no details.
    pub(crate) fn unavailable() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            "The gateway can't reach its database at the moment. Nothing was sent; try again shortly.",
        )
    }

    pub(crate) fn with_log_id(self, log_id: LogId) -> Self {
        Self {
            log_id: Some(log_id),
            ..self
        }
    }

    /// The challenge of a 401 (RFC 9110 §11.6.1). No registered scheme puts its key in a header of its own, so this one
    /// names the header.
    fn challenge(&self) -> Option<&'static str> {
        match self.code {
            "invalid_api_secret" => Some(r#"ApiKey realm="mailgate", header="X-Api-Secret""#),
            "invalid_send_key" => Some(r#"ApiKey realm="mailgate", header="X-Send-Key""#),
            "invalid_operator_token" => {
                Some(r#"ApiKey realm="mailgate", header="X-Operator-Token""#)
            }
            _ => None,
        }
    }

    pub(crate) fn render(&self, request_id: &str) -> Response {
        let rendered = ProblemBody {
            r#type: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail.clone(),
            code: self.code.to_owned(),
            request_id: request_id.to_owned(),
            errors: self.errors.clone(),
            log_id: self.log_id.map(|id| id.to_string()),
        };
        // Only strings and numbers: serialization can't fail.
        let body = serde_json::to_vec(&rendered).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if self.code == "waiting_quota_full" {
            headers.insert(RETRY_AFTER, HeaderValue::from(QUOTA_SECONDS));
        }
        if matches!(
            self.code,
            "idempotency_key_in_flight"
                | "unavailable"
                | "overloaded"
                | "payprov_unavailable"
                | "reactivation_in_flight"
                | "too_many_connections"
                | "too_many_requests"
                | "stopping"
        ) {
            headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
        }
        if let Some(challenge) = self.challenge() {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if self.code == "unsupported_encoding" {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        if self.replayed {
            headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
        }
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Whole seconds, rounded up, so that nobody retries too early.
pub(crate) fn whole_seconds(wait: Duration) -> u128 {
    wait.as_millis().div_ceil(1_000).max(1)
}
