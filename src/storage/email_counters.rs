//! The table `email_counters`: messages by app, hour, plugin and status. Those that end are counted by
//! [`super::journal`].

use sqlx::PgConnection;

use super::spool::Deferred;

/// Counts a message that waits for its next attempt `by` more (or, where negative, less) times, in the
/// hour of its first attempt.
///
/// # Errors
///
/// What the database said.
pub async fn count_deferred(
    connection: &mut PgConnection,
    message: &Deferred,
    by: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO email_counters AS counter (app_id, hour, plugin, status, messages)
         VALUES ($1, date_trunc('hour', $2::timestamptz, 'UTC'), $3, 'failed_temp', $4)
         ON CONFLICT (app_id, hour, plugin, status)
         DO UPDATE SET messages = counter.messages + EXCLUDED.messages",
        message.app.0,
        message.opened_at,
        message.plugin.as_str(),
        by,
    )
    .execute(connection)
    .await?;
    Ok(())
}
