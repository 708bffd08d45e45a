//! The end of a message, as the journal writes it.

use serde_json::Value;

use crate::storage::spool::Closing;
use mailgate_types::event::Emission;

/// How a message ended, and who is told.
#[derive(Debug, Clone)]
pub struct Ending {
    /// What the log says.
    pub closing: Closing,
    /// What the app's endpoints are told.
    pub emission: Emission,
    /// What its caller is told: the idempotency key, and the answer under it.
    pub answer: Option<(String, Value)>,
    /// Nothing was sent, and its caller was told nothing: the idempotency key is free again.
    pub freed_key: Option<String>,
}
