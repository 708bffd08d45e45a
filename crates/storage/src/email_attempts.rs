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
    /// How long it took, in milliseconds.
    pub duration_ms: i64,
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
    let rows = sqlx::query!(
        "SELECT number, at, duration_ms, status, error_message
         FROM email_attempts WHERE log_id = $1 ORDER BY number",
        id.0,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(LoggedAttempt {
                number: row.number,
                at: row.at,
                duration_ms: row.duration_ms,
                status: (row.status.parse())
                    .map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
                error_message: row.error_message,
            })
        })
        .collect()
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
