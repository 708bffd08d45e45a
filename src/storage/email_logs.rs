//! The table `email_logs`.

mod place;
mod rows;

pub use place::{Kind, Window, count, find};
pub use rows::{Details, LogRow, details, list};

use sqlx::PgConnection;

use crate::types::ids::LogId;

/// How the log says a message ended.
#[derive(Debug, Clone)]
pub struct Ending {
    /// `sent`, `failed_temp` or `failed_perm`.
    pub status: String,
    /// The mailbox's address.
    pub from_address: String,
    /// The provider.
    pub plugin: String,
    /// The Message-ID header.
    pub message_id: Option<String>,
    /// Why it failed.
    pub error_message: Option<String>,
}

/// How a message ended; `None` while the log does not have it.
///
/// # Errors
///
/// What the database said.
pub async fn ending(
    connection: &mut PgConnection,
    id: LogId,
) -> Result<Option<Ending>, sqlx::Error> {
    sqlx::query_as!(
        Ending,
        "SELECT status, from_address, plugin, message_id, error_message
         FROM email_logs WHERE id = $1",
        id.0,
    )
    .fetch_optional(connection)
    .await
}
