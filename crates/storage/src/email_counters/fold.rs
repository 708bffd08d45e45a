//! Folds changes into the counters, and removes counters that are no longer read.

use sqlx::{Executor as _, PgConnection};

use mailgate_types::ids::{AppId, Owner};
use mailgate_types::past::Past;

/// Every writer of `email_counters` holds this lock until the end of its transaction.
const LOCK: &str = "mailgate counters";

/// Waits for the lock on the counters, and holds it until the end of the transaction.
pub async fn lock(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("SELECT pg_advisory_xact_lock(hashtext($1)::bigint)", LOCK)
        .execute(connection)
        .await?;
    Ok(())
}

/// As [`lock`], but returns `false` if another transaction holds it.
pub async fn try_lock(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_xact_lock(hashtext($1)::bigint) AS "locked!""#,
        LOCK,
    )
    .fetch_one(connection)
    .await
}

/// Folds up to `limit` changes into the counters of their apps and subscribers, dropping those of deleted apps. Returns
/// how many there were. The caller holds the lock on the counters.
///
/// # Errors
///
/// The database's error; nothing is added then.
pub async fn fold(connection: &mut PgConnection, limit: i64) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"WITH taken AS (
               DELETE FROM email_counter_changes
               WHERE ctid = ANY(ARRAY(SELECT ctid FROM email_counter_changes LIMIT $1))
               RETURNING *
           ), added AS (
               INSERT INTO email_counters AS counter
                   (owner_id, unit, start,
                    plugin_a_sent, plugin_a_failed_temp, plugin_a_failed_perm,
                    plugin_b_sent, plugin_b_failed_temp, plugin_b_failed_perm)
               SELECT owner_id, unit, date_trunc(unit, hour, 'UTC'),
                      coalesce(sum(messages) FILTER (WHERE plugin = 'plugin_a' AND status = 'sent'), 0),
                      coalesce(sum(messages) FILTER (WHERE plugin = 'plugin_a' AND status = 'failed_temp'), 0),
                      coalesce(sum(messages) FILTER (WHERE plugin = 'plugin_a' AND status = 'failed_perm'), 0),
                      coalesce(sum(messages) FILTER (WHERE plugin = 'plugin_b' AND status = 'sent'), 0),
                      coalesce(sum(messages) FILTER (WHERE plugin = 'plugin_b' AND status = 'failed_temp'), 0),
                      coalesce(sum(messages) FILTER (WHERE plugin = 'plugin_b' AND status = 'failed_perm'), 0)
               FROM taken
                    JOIN apps ON apps.id = app_id
                    CROSS JOIN LATERAL (VALUES (apps.id), (apps.subscriber_id)) AS owner (owner_id)
                    CROSS JOIN (VALUES ('hour'), ('day'), ('month')) AS units (unit)
               GROUP BY 1, 2, 3
               ON CONFLICT (owner_id, unit, start) DO UPDATE
               SET plugin_a_sent = counter.plugin_a_sent + EXCLUDED.plugin_a_sent,
                   plugin_a_failed_temp = counter.plugin_a_failed_temp + EXCLUDED.plugin_a_failed_temp,
                   plugin_a_failed_perm = counter.plugin_a_failed_perm + EXCLUDED.plugin_a_failed_perm,
                   plugin_b_sent = counter.plugin_b_sent + EXCLUDED.plugin_b_sent,
                   plugin_b_failed_temp = counter.plugin_b_failed_temp + EXCLUDED.plugin_b_failed_temp,
                   plugin_b_failed_perm = counter.plugin_b_failed_perm + EXCLUDED.plugin_b_failed_perm
           )
           SELECT count(*) AS "count!" FROM taken"#,
        limit,
    )
    .fetch_one(connection)
    .await
}

/// As [`fold`], for messages that bounced.
///
/// # Errors
///
/// The database's error; nothing is added then.
pub async fn fold_bounced(connection: &mut PgConnection, limit: i64) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"WITH taken AS (
               DELETE FROM bounce_counter_changes
               WHERE ctid = ANY(ARRAY(SELECT ctid FROM bounce_counter_changes LIMIT $1))
               RETURNING *
           ), added AS (
               INSERT INTO email_counters AS counter
                   (owner_id, unit, start,
                    plugin_a_sent, plugin_a_failed_temp, plugin_a_failed_perm,
                    plugin_b_sent, plugin_b_failed_temp, plugin_b_failed_perm,
                    plugin_a_bounced, plugin_b_bounced)
               SELECT owner_id, unit, date_trunc(unit, hour, 'UTC'), 0, 0, 0, 0, 0, 0,
                      coalesce(sum(messages) FILTER (WHERE plugin = 'plugin_a'), 0),
                      coalesce(sum(messages) FILTER (WHERE plugin = 'plugin_b'), 0)
               FROM taken
                    JOIN apps ON apps.id = app_id
                    CROSS JOIN LATERAL (VALUES (apps.id), (apps.subscriber_id)) AS owner (owner_id)
                    CROSS JOIN (VALUES ('hour'), ('day'), ('month')) AS units (unit)
               GROUP BY 1, 2, 3
               ON CONFLICT (owner_id, unit, start) DO UPDATE
               SET plugin_a_bounced = counter.plugin_a_bounced + EXCLUDED.plugin_a_bounced,
                   plugin_b_bounced = counter.plugin_b_bounced + EXCLUDED.plugin_b_bounced
           )
           SELECT count(*) AS "count!" FROM taken"#,
        limit,
    )
    .fetch_one(connection)
    .await
}

/// Subtracts an app's messages from the counters of its subscriber, before the app is deleted. The caller holds the
/// lock on the counters. Those that bounced are subtracted by a trigger on the app's row.
pub async fn withdraw_app(connection: &mut PgConnection, app: AppId) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE email_counters AS counter
         SET plugin_a_sent = counter.plugin_a_sent - its.plugin_a_sent,
             plugin_a_failed_temp = counter.plugin_a_failed_temp - its.plugin_a_failed_temp,
             plugin_a_failed_perm = counter.plugin_a_failed_perm - its.plugin_a_failed_perm,
             plugin_b_sent = counter.plugin_b_sent - its.plugin_b_sent,
             plugin_b_failed_temp = counter.plugin_b_failed_temp - its.plugin_b_failed_temp,
             plugin_b_failed_perm = counter.plugin_b_failed_perm - its.plugin_b_failed_perm
         FROM email_counters AS its
         WHERE its.owner_id = $1 AND counter.unit = its.unit AND counter.start = its.start
           AND counter.owner_id = (SELECT subscriber_id FROM apps WHERE id = $1)",
        app.0,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes the counters of a deleted app or subscriber.
pub async fn remove(connection: &mut PgConnection, owner: Owner) -> Result<(), sqlx::Error> {
    sqlx::query!("DELETE FROM email_counters WHERE owner_id = $1", owner.id())
        .execute(connection)
        .await?;
    Ok(())
}

/// Removes up to `limit` counters of hours and days before `past`; returns how many there were.
pub async fn remove_old(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM email_counters
         WHERE ctid = ANY(ARRAY(SELECT ctid FROM email_counters
                                WHERE unit <> 'month' AND start < $1
                                LIMIT $2))",
        past.moment(),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}

/// Reclaims the space of folded changes, so that reading the table stays cheap. Can't run within a transaction.
pub async fn vacuum(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    connection.execute("VACUUM email_counter_changes").await?;
    connection.execute("VACUUM bounce_counter_changes").await?;
    Ok(())
}
