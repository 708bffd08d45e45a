//! The table `email_counters`: messages by app, hour, plugin and status.

use std::collections::BTreeMap;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use crate::types::ids::AppId;
use crate::types::log_status::LogStatus;
use crate::types::plugin::Plugin;

/// What is to be added to the counters, summed up. Sorted, so that two who write never wait for each
/// other in a circle.
#[derive(Debug, Default)]
pub struct Sums {
    by_key: BTreeMap<(Uuid, DateTime<Utc>, &'static str, &'static str), i64>,
}

impl Sums {
    /// Counts a message `by` more (or, where negative, less) times. `at` is the moment of its first
    /// attempt.
    pub fn add(
        &mut self,
        app: AppId,
        at: DateTime<Utc>,
        plugin: Plugin,
        status: LogStatus,
        by: i64,
    ) {
        let hour = at.duration_trunc(TimeDelta::hours(1)).unwrap_or(at);
        *self
            .by_key
            .entry((app.0, hour, plugin.as_str(), status.as_str()))
            .or_default() += by;
    }
}

/// Adds to the counters.
///
/// # Errors
///
/// What the database said.
pub async fn add(connection: &mut PgConnection, sums: &Sums) -> Result<(), sqlx::Error> {
    let (mut apps, mut hours, mut plugins, mut statuses, mut messages) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for ((app, hour, plugin, status), sum) in &sums.by_key {
        if *sum != 0 {
            apps.push(*app);
            hours.push(*hour);
            plugins.push((*plugin).to_owned());
            statuses.push((*status).to_owned());
            messages.push(*sum);
        }
    }
    if apps.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO email_counters AS counter (app_id, hour, plugin, status, messages)
         SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::bigint[])
         ON CONFLICT (app_id, hour, plugin, status)
         DO UPDATE SET messages = counter.messages + EXCLUDED.messages",
        &apps,
        &hours,
        &plugins,
        &statuses,
        &messages,
    )
    .execute(connection)
    .await?;
    Ok(())
}
