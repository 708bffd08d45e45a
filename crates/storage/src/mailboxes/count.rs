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
        r#"SELECT plugin AS "plugin: Plugin", count(*) AS "count!"
           FROM mailboxes
           WHERE status = 'active'
             AND app_id = ANY(ARRAY(SELECT id FROM apps WHERE subscriber_id = $1))
           GROUP BY plugin"#,
        subscriber.0,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.plugin, row.count))
        .collect())
}

/// The mailboxes of one provider, over all apps.
#[derive(Debug, Clone, Copy)]
pub struct MailboxNumbers {
    /// The provider.
    pub plugin: Plugin,
    /// Connected ones, 100,000 at most.
    pub active: u32,
    /// Disconnected ones, 100,000 at most.
    pub disconnected: u32,
}

/// Counts all mailboxes, for the metrics. Each part uses an index and reads a bounded number of its entries.
pub async fn count_all(connection: &mut PgConnection) -> Result<[MailboxNumbers; 2], sqlx::Error> {
    // In index order, so that nothing else is scanned.
    let row = sqlx::query!(
        r#"SELECT (SELECT count(*) FROM (
                      SELECT FROM mailboxes WHERE status = 'active' AND plugin = 'plugin_a'
                      ORDER BY email_lookup LIMIT 100000
                  ) AS sample) AS "active_a!",
                  (SELECT count(*) FROM (
                      SELECT FROM mailboxes WHERE status = 'active' AND plugin = 'plugin_b'
                      ORDER BY email_lookup LIMIT 100000
                  ) AS sample) AS "active_b!",
                  (SELECT count(*) FROM (
                      SELECT FROM mailboxes WHERE status <> 'active' AND plugin = 'plugin_a'
                      ORDER BY disconnected_at LIMIT 100000
                  ) AS sample) AS "former_a!",
                  (SELECT count(*) FROM (
                      SELECT FROM mailboxes WHERE status <> 'active' AND plugin = 'plugin_b'
                      ORDER BY disconnected_at LIMIT 100000
                  ) AS sample) AS "former_b!""#,
    )
    .fetch_one(connection)
    .await?;
    let numbers = |plugin, active, disconnected| MailboxNumbers {
        plugin,
        active: u32::try_from(active).unwrap_or(u32::MAX),
        disconnected: u32::try_from(disconnected).unwrap_or(u32::MAX),
    };
    Ok([
        numbers(Plugin::A, row.active_a, row.former_a),
        numbers(Plugin::B, row.active_b, row.former_b),
    ])
}
