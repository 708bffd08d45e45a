//! What happens to a request instead of the usual.

use serde_json::{Value, json};

/// What happens to a request instead of the usual.
#[derive(Debug, Clone)]
pub enum Fault {
    /// This answer, and nothing is kept.
    Answer(u16, Vec<(&'static str, String)>, Value),
    /// The message is kept, and this is the answer.
    KeptBut(u16, Value),
    /// The same, and the message is found only when it is looked for a second time.
    KeptLaterBut(u16, Value),
    /// The connection breaks before the content has come in.
    BreakEarly,
    /// The connection breaks without an answer; nothing is kept.
    Break,
    /// The message is kept, and the connection breaks without an answer.
    KeptButBreak,
    /// Nothing is kept, and no answer comes.
    Silence,
}

/// An error as Gmail writes it.
pub fn error(code: u16, reason: &str, message: &str, status: &str) -> Value {
    json!({ "error": {
        "code": code,
        "message": message,
        "errors": [{ "message": message, "domain": "global", "reason": reason }],
        "status": status,
    } })
}

/// The next send is refused with such an error.
pub fn refusal(code: u16, reason: &str, message: &str) -> Fault {
    Fault::Answer(code, Vec::new(), error(code, reason, message, "STATUS"))
}
