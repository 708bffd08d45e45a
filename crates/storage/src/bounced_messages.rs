//! The table `bounced_messages`: sent messages that have bounced permanently, for filtering and counting the log.

use sqlx::PgConnection;
use sqlx::types::Uuid;

use super::email_logs::{Kind, Window, columns};
use mailgate_types::ids::{AppId, LogId, Owner, lowest_uuid_at};
use mailgate_types::log_status::LogStatus;
use mailgate_types::past::Past;

/// Marks those of these messages that the log shows as sent, and counts them; each once, however often it bounces.
/// Their bounces no longer wait.
pub async fn mark(connection: &mut PgConnection, logs: &[LogId]) -> Result<(), sqlx::Error> {
    let logs: Vec<Uuid> = logs.iter().map(|log| log.0).collect();
    // The bounds let Postgres prune partitions.
    let (Some(lowest), Some(highest)) = (logs.iter().min(), logs.iter().max()) else {
        return Ok(());
    };
    sqlx::query!(
        "WITH sent AS MATERIALIZED (
             SELECT log.id, app_id, subscriber_id, plugin, sent_at
             FROM email_logs AS log
             WHERE log.id = ANY($1) AND log.id >= $2 AND log.id <= $3 AND status = 'sent'
         ), marked AS (
             INSERT INTO bounced_messages (log_id, app_id, subscriber_id, plugin)
             SELECT sent.id, app_id, apps.subscriber_id, plugin
             FROM sent JOIN apps ON apps.id = app_id
             ORDER BY sent.id
             ON CONFLICT DO NOTHING
             RETURNING log_id
         ), counted AS (
             INSERT INTO bounce_counter_changes (app_id, hour, plugin, messages)
             SELECT app_id, date_bin('1 hour', sent_at, 'epoch') AS hour, plugin, count(*)
             FROM sent JOIN marked ON marked.log_id = sent.id
             GROUP BY app_id, hour, plugin
         ), waiting AS (
             SELECT credential_id, key FROM bounces
             WHERE log_id = ANY(ARRAY(SELECT id FROM sent)) AND awaits_sent
             ORDER BY credential_id, key
             FOR UPDATE
         )
         UPDATE bounces SET awaits_sent = false FROM waiting
         WHERE bounces.credential_id = waiting.credential_id AND bounces.key = waiting.key",
        &logs,
        lowest,
        highest,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Up to `limit` messages that had bounced before the log showed them as sent, and which it now shows as sent. Those
/// that it shows as failed no longer wait.
pub async fn sent_meanwhile(
    connection: &mut PgConnection,
    limit: i64,
) -> Result<Vec<LogId>, sqlx::Error> {
    // The newest first, so that those that wait for long don't block others. A scalar subquery is evaluated row by row,
    // whereas a join may read the whole log.
    let ids = sqlx::query_scalar!(
        r#"WITH waiting AS MATERIALIZED (
               SELECT log_id, (SELECT status FROM email_logs AS log WHERE log.id = log_id) AS status
               FROM (SELECT DISTINCT log_id FROM bounces WHERE awaits_sent
                     ORDER BY log_id DESC LIMIT $1) AS newest
           ), failed AS (
               SELECT credential_id, key FROM bounces
               WHERE awaits_sent
                     AND log_id = ANY(ARRAY(SELECT log_id FROM waiting WHERE status = 'failed_perm'))
               ORDER BY credential_id, key
               FOR UPDATE SKIP LOCKED
           ), cleared AS (
               UPDATE bounces SET awaits_sent = false FROM failed
               WHERE bounces.credential_id = failed.credential_id AND bounces.key = failed.key
           )
           SELECT log_id AS "log_id!" FROM waiting WHERE status = 'sent'"#,
        limit,
    )
    .fetch_all(connection)
    .await?;
    Ok(ids.into_iter().map(LogId).collect())
}

fn plugins(kinds: &[Kind]) -> Vec<&'static str> {
    kinds
        .iter()
        .filter(|(_, status)| *status == LogStatus::Sent)
        .map(|(plugin, _)| plugin.as_str())
        .collect()
}

/// The number of bounced messages of these kinds in a window; only sent ones bounce.
pub async fn count(
    connection: &mut PgConnection,
    window: Window<'_>,
    kinds: &[Kind],
) -> Result<i64, sqlx::Error> {
    let plugins = plugins(kinds);
    let (from, to) = window.ids();
    let owner = window.owner.id();
    macro_rules! counted {
        ($owner:literal, $but:literal) => {
            sqlx::query_scalar!(
                r#"SELECT count(*) AS "count!" FROM bounced_messages
                   WHERE "#
                    + $owner
                    + " = $1 AND plugin = ANY($2) AND log_id >= $3 AND log_id < $4 "
                    + $but,
                owner,
                &plugins as &[&str],
                from,
                to,
            )
            .fetch_one(connection)
            .await
        };
    }
    match window.owner {
        Owner::App(_) => counted!("app_id", ""),
        Owner::Subscriber(_) => counted!(
            "subscriber_id",
            "AND EXISTS (SELECT FROM apps WHERE apps.id = app_id)"
        ),
    }
}

/// Up to `limit` bounced messages of these kinds in a window, newest first, without the first `skip`.
pub async fn find(
    connection: &mut PgConnection,
    window: Window<'_>,
    kinds: &[Kind],
    skip: i64,
    limit: i64,
) -> Result<Vec<LogId>, sqlx::Error> {
    let plugins = plugins(kinds);
    let (from, to) = window.ids();
    let owner = window.owner.id();
    macro_rules! found {
        ($owner:literal, $but:literal) => {
            sqlx::query_scalar!(
                "SELECT found.log_id
                 FROM unnest($2::text[]) AS kind (plugin)
                      CROSS JOIN LATERAL (
                          SELECT log_id FROM bounced_messages AS bounced
                          WHERE "
                    + $owner
                    + " = $1 AND bounced.plugin = kind.plugin
                            AND log_id >= $3 AND log_id < $4 "
                    + $but
                    + "
                          ORDER BY log_id DESC LIMIT $5::bigint + $6::bigint
                      ) AS found
                 ORDER BY found.log_id DESC OFFSET $5 LIMIT $6",
                owner,
                &plugins as &[&str],
                from,
                to,
                skip,
                limit,
            )
            .fetch_all(connection)
            .await?
        };
    }
    let ids = match window.owner {
        Owner::App(_) => found!("app_id", ""),
        Owner::Subscriber(_) => found!(
            "subscriber_id",
            "AND EXISTS (SELECT FROM apps WHERE apps.id = app_id)"
        ),
    };
    Ok(ids.into_iter().map(LogId).collect())
}

/// As [`find`], for rows of the log that have not bounced.
pub async fn find_others(
    connection: &mut PgConnection,
    window: Window<'_>,
    kinds: &[Kind],
    skip: i64,
    limit: i64,
) -> Result<Vec<LogId>, sqlx::Error> {
    let (plugins, statuses) = columns(kinds);
    let (from, to) = window.ids();
    let owner = window.owner.id();
    // A scalar subquery is evaluated only for rows that are read.
    macro_rules! found {
        ($owner:literal, $but:literal $(, $deleted:expr)?) => {
            sqlx::query_scalar!(
                "SELECT found.id
                 FROM unnest($2::text[], $3::text[]) AS kind (plugin, status)
                      CROSS JOIN LATERAL (
                          SELECT id FROM email_logs AS log
                          WHERE " + $owner + " = $1 AND log.plugin = kind.plugin
                            AND log.status = kind.status AND id >= $4 AND id < $5 " + $but + "
                            AND (SELECT log_id FROM bounced_messages WHERE log_id = log.id) IS NULL
                          ORDER BY id DESC LIMIT $6::bigint + $7::bigint
                      ) AS found
                 ORDER BY found.id DESC OFFSET $6 LIMIT $7",
                owner,
                &plugins as &[&str],
                &statuses as &[&str],
                from,
                to,
                skip,
                limit
                $(, $deleted)?
            )
            .fetch_all(connection)
            .await?
        };
    }
    let ids = match window.owner {
        Owner::App(_) => found!("app_id", ""),
        Owner::Subscriber(_) => {
            found!("subscriber_id", "AND app_id <> ALL($8)", &window.deleted())
        }
    };
    Ok(ids.into_iter().map(LogId).collect())
}

/// Removes up to `limit` rows of a deleted app; returns how many.
pub async fn remove_of(
    connection: &mut PgConnection,
    app: AppId,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM bounced_messages WHERE ctid = ANY(ARRAY(
             SELECT ctid FROM bounced_messages WHERE app_id = $1 LIMIT $2))",
        app.0,
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}

/// Removes up to `limit` messages from before `past`; returns how many.
pub async fn remove_before(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM bounced_messages WHERE ctid = ANY(ARRAY(
             SELECT ctid FROM bounced_messages WHERE log_id < $1 ORDER BY log_id LIMIT $2))",
        lowest_uuid_at(past.moment()),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}
