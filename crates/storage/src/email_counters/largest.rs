//! The subscribers with the most messages, for the metrics.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::SubscriberId;

/// Subscribers with their messages, the most first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Largest {
    /// Those with the most sent messages.
    pub sent: Vec<(SubscriberId, i64)>,
    /// Those with the most permanently failed messages.
    pub failed: Vec<(SubscriberId, i64)>,
}

/// The `most` subscribers with the most messages in hours that begin after `since`, as far as folded.
pub async fn largest(
    connection: &mut PgConnection,
    since: DateTime<Utc>,
    most: u8,
) -> Result<Largest, sqlx::Error> {
    // By the index of the times, so that the cost depends on these hours alone.
    let rows = sqlx::query!(
        r#"WITH counted AS MATERIALIZED (
               SELECT owner_id, sum(plugin_a_sent + plugin_b_sent)::bigint AS sent,
                      sum(plugin_a_failed_perm + plugin_b_failed_perm)::bigint AS failed
               FROM email_counters JOIN subscribers ON subscribers.id = owner_id
               WHERE unit = 'hour' AND start > $1
               GROUP BY owner_id
           )
           (SELECT owner_id AS "id!", sent AS "messages!", true AS "are_sent!" FROM counted
            WHERE sent > 0 ORDER BY sent DESC, owner_id LIMIT $2)
           UNION ALL
           (SELECT owner_id, failed, false FROM counted
            WHERE failed > 0 ORDER BY failed DESC, owner_id LIMIT $2)"#,
        since,
        i64::from(most),
    )
    .fetch_all(connection)
    .await?;
    let of = |are_sent: bool| {
        let rows = rows.iter().filter(|row| row.are_sent == are_sent);
        rows.map(|row| (SubscriberId(row.id), row.messages))
            .collect()
    };
    Ok(Largest {
        sent: of(true),
        failed: of(false),
    })
}
