//! Counts mailboxes.

use sqlx::PgConnection;

use mailgate_types::ids::SubscriberId;
use mailgate_types::plugin::Plugin;

/// A subscriber's active mailboxes by provider; providers without any are left out.
pub async fn count_active(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<Vec<(Plugin, i64)>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT plugin, count(*) AS "count!"
           FROM mailboxes
           WHERE status = 'active'
             AND app_id = ANY(ARRAY(SELECT id FROM apps WHERE subscriber_id = $1))
           GROUP BY plugin"#,
        subscriber.0,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|row| {
            let plugin = row.plugin.parse();
            let plugin = plugin.map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
            Ok((plugin, row.count))
        })
        .collect()
}
