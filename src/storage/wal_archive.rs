//! Whether Postgres archives its write-ahead log, which backups need.

use sqlx::PgConnection;

/// For how many seconds the next archived segment has been due; `None` where none is archived, or only once it is full.
pub async fn overdue_seconds(connection: &mut PgConnection) -> Result<Option<f64>, sqlx::Error> {
    let overdue = sqlx::query_scalar!(
        "SELECT greatest(0, extract(epoch FROM clock_timestamp() - coalesce(last_archived_time, stats_reset))
                            - timeout.setting::integer)::float8 AS overdue
         FROM pg_stat_archiver CROSS JOIN pg_settings AS timeout
         WHERE timeout.name = 'archive_timeout' AND timeout.setting <> '0'
               AND current_setting('archive_mode') IN ('on', 'always')",
    )
    .fetch_optional(connection)
    .await?;
    Ok(overdue.flatten())
}
