//! The table `email_attempts`: the attempts of messages that were not sent at the first one.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

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

/// Adds attempts of messages that end or wait by further statements of the caller's transaction.
pub async fn insert(
    connection: &mut PgConnection,
    attempts: &[(LogId, &LoggedAttempt)],
) -> Result<(), sqlx::Error> {
    let logs: Vec<Uuid> = attempts.iter().map(|(log, _)| log.0).collect();
    let attempts = || attempts.iter().map(|(_, attempt)| attempt);
    let numbers: Vec<i32> = attempts().map(|attempt| attempt.number).collect();
    let moments: Vec<DateTime<Utc>> = attempts().map(|attempt| attempt.at).collect();
    let durations: Vec<Option<i64>> = attempts().map(|attempt| attempt.duration_ms).collect();
    let statuses: Vec<&str> = attempts().map(|attempt| attempt.status.as_str()).collect();
    let errors: Vec<Option<&str>> = attempts()
        .map(|attempt| attempt.error_message.as_deref())
        .collect();
    sqlx::query!(
        "INSERT INTO email_attempts (log_id, number, at, duration_ms, status, error_message)
         SELECT * FROM unnest($1::uuid[], $2::integer[], $3::timestamptz[], $4::bigint[], $5::text[],
                              $6::text[])",
        &logs,
        &numbers,
        &moments,
        &durations as &[Option<i64>],
        &statuses as &[&str],
        &errors as &[Option<&str>],
    )
    .execute(connection)
    .await?;
    Ok(())
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
