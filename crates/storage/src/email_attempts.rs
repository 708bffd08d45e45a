//! The table `email_attempts`: the attempts of messages that were not sent at the first one.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::LogId;
use mailgate_types::log_status::LogStatus;

/// An attempt to submit a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedAttempt {
    /// Counts from 1.
    pub number: i32,
    /// When it began.
    pub at: DateTime<Utc>,
    /// How long it took, in milliseconds; `None` if it wasn't recorded.
    pub duration_ms: Option<i64>,
    /// Its outcome.
    pub status: LogStatus,
    /// Why it failed.
    pub error_message: Option<String>,
}

/// A message's attempts, in order.
pub async fn of_log(
    connection: &mut PgConnection,
    id: LogId,
) -> Result<Vec<LoggedAttempt>, sqlx::Error> {
    sqlx::query_as!(
        LoggedAttempt,
        r#"SELECT number, at, duration_ms, status AS "status: LogStatus", error_message
           FROM email_attempts WHERE log_id = $1 ORDER BY number"#,
        id.0,
    )
    .fetch_all(connection)
    .await
}

/// The number for the attempt that in fact ended a message, if others have been recorded meanwhile: it replaces the end
/// that they recorded, or follows them. `None` if there are none.
pub async fn number_of_end(
    connection: &mut PgConnection,
    id: LogId,
) -> Result<Option<i32>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT number + (status <> 'failed_perm')::integer AS "number!"
           FROM email_attempts WHERE log_id = $1 ORDER BY number DESC LIMIT 1"#,
        id.0,
    )
    .fetch_optional(connection)
    .await
}
