//! Extensions shared by the request middleware and the pages: the request's id, and why it failed.

/// The request's id, as in the log and the response's `X-Request-Id`; an extension of the request.
#[derive(Debug, Clone)]
pub struct RequestId(pub String);

/// Why a request failed, for the log; an extension of the response.
#[derive(Debug, Clone, Default)]
pub struct Failure {
    /// The error code in the response.
    pub code: String,
    /// The names of the invalid fields.
    pub fields: String,
    /// The cause, for the operator only.
    pub cause: Option<String>,
}
