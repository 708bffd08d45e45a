//! What the frame of all requests passes to the pages and takes from them: the request's id, and why it failed.

/// The request's id, which its answer has in `X-Request-Id` and the log has too: an extension of the request.
#[derive(Debug, Clone)]
pub struct RequestId(pub String);

/// Why a request failed, for the log: an extension of the answer.
#[derive(Debug, Clone, Default)]
pub struct Failure {
    /// The code that the caller sees.
    pub code: String,
    /// The names of the fields that were wrong.
    pub fields: String,
    /// What is for the operator alone.
    pub cause: Option<String>,
}
