//! Folds the counters of months that no report shows singly any more.

use sqlx::PgConnection;

use super::ALL_OLD_MONTHS;
use mailgate_types::past::Past;

/// Sums the counters of months that began before `past` in one row per owner, before all its other months: for some
/// owners, those of up to `limit` such counters. An app's are folded with its subscriber's, so that when the app is
/// deleted, its counts can be subtracted from the same months. Returns how many there were. The caller holds the lock
/// on the counters.
///
/// # Errors
///
/// The database's error; nothing is folded then.
pub async fn fold_months(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"WITH old AS (
               SELECT owner_id FROM email_counters
               WHERE unit = 'month' AND start > $1 AND start < $2 ORDER BY start LIMIT $3
           ), whole AS (
               SELECT DISTINCT coalesce(apps.subscriber_id, owner_id) AS id
               FROM old LEFT JOIN apps ON apps.id = owner_id
           ), owners AS (
               SELECT id FROM whole
               UNION SELECT apps.id FROM whole JOIN apps ON apps.subscriber_id = whole.id
           ), taken AS (
               DELETE FROM email_counters AS counter USING owners
               WHERE owner_id = owners.id AND unit = 'month' AND start > $1 AND start < $2
               RETURNING counter.*
           ), added AS (
               INSERT INTO email_counters AS counter
                   (owner_id, unit, start,
                    plugin_a_sent, plugin_a_failed_temp, plugin_a_failed_perm,
                    plugin_b_sent, plugin_b_failed_temp, plugin_b_failed_perm,
                    plugin_a_bounced, plugin_b_bounced)
               SELECT owner_id, 'month', $1::timestamptz,
                      sum(plugin_a_sent), sum(plugin_a_failed_temp), sum(plugin_a_failed_perm),
                      sum(plugin_b_sent), sum(plugin_b_failed_temp), sum(plugin_b_failed_perm),
                      sum(plugin_a_bounced), sum(plugin_b_bounced)
               FROM taken GROUP BY owner_id
               ON CONFLICT (owner_id, unit, start) DO UPDATE
               SET plugin_a_sent = counter.plugin_a_sent + EXCLUDED.plugin_a_sent,
                   plugin_a_failed_temp = counter.plugin_a_failed_temp + EXCLUDED.plugin_a_failed_temp,
                   plugin_a_failed_perm = counter.plugin_a_failed_perm + EXCLUDED.plugin_a_failed_perm,
                   plugin_b_sent = counter.plugin_b_sent + EXCLUDED.plugin_b_sent,
                   plugin_b_failed_temp = counter.plugin_b_failed_temp + EXCLUDED.plugin_b_failed_temp,
                   plugin_b_failed_perm = counter.plugin_b_failed_perm + EXCLUDED.plugin_b_failed_perm,
                   plugin_a_bounced = counter.plugin_a_bounced + EXCLUDED.plugin_a_bounced,
                   plugin_b_bounced = counter.plugin_b_bounced + EXCLUDED.plugin_b_bounced
           )
           SELECT count(*) AS "count!" FROM taken"#,
        ALL_OLD_MONTHS,
        past.moment(),
        limit,
    )
    .fetch_one(connection)
    .await
}
