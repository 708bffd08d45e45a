//! Reads the counters.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use super::{CountedFrom, Counts, Unit};
use mailgate_types::ids::Owner;
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// Consecutive whole hours, days or months.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The unit.
    pub unit: Unit,
    /// The start of the first one.
    pub from: DateTime<Utc>,
    /// The end of the last one.
    pub to: DateTime<Utc>,
}

/// The counters in these runs, without the changes that [`pending`] returns: one entry for each hour, day or month
/// that has a counter.
pub async fn counted(
    connection: &mut PgConnection,
    owner: Owner,
    runs: &[Run],
) -> Result<Vec<(Unit, CountedFrom)>, sqlx::Error> {
    let units: Vec<&str> = runs.iter().map(|run| run.unit.as_str()).collect();
    let from: Vec<DateTime<Utc>> = runs.iter().map(|run| run.from).collect();
    let to: Vec<DateTime<Utc>> = runs.iter().map(|run| run.to).collect();
    let rows = sqlx::query!(
        "SELECT counter.unit, start, plugin_a_sent, plugin_a_failed_temp, plugin_a_failed_perm,
                plugin_b_sent, plugin_b_failed_temp, plugin_b_failed_perm, plugin_a_bounced,
                plugin_b_bounced
         FROM unnest($2::text[], $3::timestamptz[], $4::timestamptz[]) AS run (unit, begins, ends)
              JOIN email_counters AS counter
              ON owner_id = $1 AND counter.unit = run.unit AND start >= begins AND start < ends",
        owner.id(),
        &units as &[&str],
        &from,
        &to,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|row| {
            let unit = [Unit::Hour, Unit::Day, Unit::Month]
                .into_iter()
                .find(|unit| unit.as_str() == row.unit)
                .ok_or(sqlx::Error::RowNotFound)?;
            let counts = Counts {
                messages: [
                    [
                        row.plugin_a_sent,
                        row.plugin_a_failed_temp,
                        row.plugin_a_failed_perm,
                    ],
                    [
                        row.plugin_b_sent,
                        row.plugin_b_failed_temp,
                        row.plugin_b_failed_perm,
                    ],
                ],
                bounced: [row.plugin_a_bounced, row.plugin_b_bounced],
            };
            Ok((unit, (row.start, counts)))
        })
        .collect()
}

/// The changes that are not folded yet, by hour.
pub async fn pending(
    connection: &mut PgConnection,
    owner: Owner,
) -> Result<Vec<CountedFrom>, sqlx::Error> {
    struct Row {
        hour: DateTime<Utc>,
        plugin: Plugin,
        status: Option<LogStatus>,
        messages: i64,
    }
    let owner_id: Uuid = owner.id();
    // Bounces have no status: they are of sent messages.
    macro_rules! changes {
        ($owned:literal) => {
            sqlx::query_as!(
                Row,
                r#"SELECT hour AS "hour!", plugin AS "plugin!: Plugin",
                          status AS "status: LogStatus", sum(messages)::bigint AS "messages!"
                   FROM (SELECT hour, plugin, status, messages
                         FROM email_counter_changes WHERE "# + $owned + "
                         UNION ALL
                         SELECT hour, plugin, NULL, messages
                         FROM bounce_counter_changes WHERE " + $owned + ") AS change
                   GROUP BY hour, plugin, status",
                owner_id,
            )
            .fetch_all(connection)
            .await?
        };
    }
    let rows = match owner {
        Owner::App(_) => changes!("app_id = $1"),
        Owner::Subscriber(_) => {
            changes!("app_id = ANY(ARRAY(SELECT id FROM apps WHERE subscriber_id = $1))")
        }
    };
    let mut pending: Vec<CountedFrom> = Vec::new();
    for row in rows {
        let position = pending.iter().position(|(hour, _)| *hour == row.hour);
        let position = position.unwrap_or_else(|| {
            pending.push((row.hour, Counts::default()));
            pending.len() - 1
        });
        let counts = &mut pending[position].1;
        match row.status {
            Some(status) => counts.add(row.plugin, status, row.messages),
            None => counts.add_bounced(row.plugin, row.messages),
        }
    }
    Ok(pending)
}
