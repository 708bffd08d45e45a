//! Whether Postgres archives its write-ahead log, which backups need.

use sqlx::PgConnection;

/// For how many seconds Postgres should have archived a segment: since it last did, while archiving fails; otherwise since
/// twice `archive_timeout` after that, or after its start. `None` if none is archived, or only once it is full.
pub async fn overdue_seconds(connection: &mut PgConnection) -> Result<Option<f64>, sqlx::Error> {
    let overdue = sqlx::query_scalar!(
        "SELECT CASE
                    WHEN last_failed_time > coalesce(last_archived_time, '-infinity') THEN since
                    WHEN timeout > 0 THEN greatest(0, since - 2 * timeout)
                END AS overdue
         FROM pg_stat_archiver
              CROSS JOIN LATERAL (
                  SELECT extract(epoch FROM clock_timestamp()
                             - greatest(last_archived_time, stats_reset, pg_postmaster_start_time()))::float8 AS since,
                         (SELECT setting::float8 FROM pg_settings WHERE name = 'archive_timeout') AS timeout
              ) AS archived
         WHERE current_setting('archive_mode') IN ('on', 'always')",
    )
    .fetch_optional(connection)
    .await?;
    Ok(overdue.flatten())
}
