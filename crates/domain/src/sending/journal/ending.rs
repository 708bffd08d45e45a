//! The end of a message, as the journal writes it.

use serde_json::Value;

use mailgate_storage::spool::Closing;
use mailgate_types::event::Emission;

/// The final state of a message and the event to emit.
#[derive(Debug, Clone)]
pub struct Ending {
    /// The update of the log.
    pub closing: Closing,
    /// The event for the app's endpoints.
    pub emission: Emission,
    /// The idempotency key, and the answer to store under it.
    pub answer: Option<(String, Value)>,
    /// A key to free: nothing was sent, and its caller got no answer.
    pub freed_key: Option<String>,
}
