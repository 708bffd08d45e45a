//! The calls, and what they are answered instead of the usual.

use serde_json::json;

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    Create,
    Attach,
    Session,
    Upload,
    Send,
    SendMail,
    SentItems,
    Look,
    Delete,
    Delta,
    JunkDelta,
    Whole,
    Token,
    Account,
}

/// What is answered instead of the usual.
#[derive(Debug, Clone)]
pub struct Fault {
    pub(super) status: u16,
    pub(super) retry_after: Option<String>,
    pub(super) body: String,
    /// The call does its work all the same.
    pub(super) done: bool,
    pub(super) hangs: bool,
}

impl Fault {
    /// An answer with this body.
    pub fn answer(status: u16, body: &str) -> Self {
        Self {
            status,
            retry_after: None,
            body: body.to_owned(),
            done: false,
            hangs: false,
        }
    }

    /// An error as Graph tells it.
    pub fn error(status: u16, code: &str) -> Self {
        Self::answer(status, &error_body(code))
    }

    /// Says nothing.
    pub fn hang() -> Self {
        Self {
            hangs: true,
            ..Self::answer(500, "")
        }
    }

    /// The work is done, whatever is answered.
    pub fn done(self) -> Self {
        Self { done: true, ..self }
    }

    pub fn retry_after(self, value: &str) -> Self {
        Self {
            retry_after: Some(value.to_owned()),
            ..self
        }
    }
}

pub(super) fn error_body(code: &str) -> String {
    json!({
        "error": {
            "code": code,
            "message": "What the provider says.",
            "innerError": {
                "date": "2026-01-02T03:04:05",
                "request-id": "6f1b6a5e-0000-4000-8000-000000000000",
                "client-request-id": "6f1b6a5e-0000-4000-8000-000000000000"
            }
        }
    })
    .to_string()
}
