//! The tables `refusals`, `refusal_counters` and `refusal_batches`: messages that were refused before a mailbox was chosen
//! for them.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::door::Door;
use mailgate_types::ids::{AppId, RefusalId, lowest_uuid_at};
use mailgate_types::past::Past;
use mailgate_types::refusal::RefusalReason;

/// A message that was refused.
#[derive(Debug, Clone)]
pub struct Refused {
    /// The app that sent it.
    pub app: AppId,
    /// Its id, which holds the time.
    pub id: RefusalId,
    /// Whether it arrived over HTTP or SMTP.
    pub door: Door,
    /// Why.
    pub reason: RefusalReason,
    /// The sender, as far as it could be read.
    pub from: Option<String>,
    /// The recipient, as far as it could be read.
    pub to: Option<String>,
}

/// The number of refused messages.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    /// The app.
    pub app: AppId,
    /// The start of the hour.
    pub hour: DateTime<Utc>,
    /// Why.
    pub reason: RefusalReason,
    /// The number of messages.
    pub messages: i64,
}

/// Records that a batch is being written, and deletes the record of its process's previous one. `false` if it was
/// already written, by a commit whose response was lost: it must not be added again then.
pub async fn begin_batch(
    connection: &mut PgConnection,
    batch: Uuid,
    previous: Option<Uuid>,
) -> Result<bool, sqlx::Error> {
    let begun = sqlx::query!(
        "WITH forgotten AS (
             DELETE FROM refusal_batches WHERE id = $2
         )
         INSERT INTO refusal_batches (id) VALUES ($1) ON CONFLICT DO NOTHING",
        batch,
        previous,
    )
    .execute(connection)
    .await?;
    Ok(begun.rows_affected() == 1)
}

/// Adds counts and the latest refusals, keeping the newest `kept` of each app. Refusals of deleted apps are dropped.
///
/// # Errors
///
/// The database's error; nothing is written then.
pub async fn add(
    connection: &mut PgConnection,
    counts: &[Count],
    last: &[Refused],
    kept: i64,
) -> Result<(), sqlx::Error> {
    let apps: Vec<Uuid> = counts.iter().map(|count| count.app.0).collect();
    let hours: Vec<DateTime<Utc>> = counts.iter().map(|count| count.hour).collect();
    let reasons: Vec<&str> = counts.iter().map(|count| count.reason.as_str()).collect();
    let messages: Vec<i64> = counts.iter().map(|count| count.messages).collect();
    // In the same order in every process, so that they can't deadlock.
    sqlx::query!(
        "INSERT INTO refusal_counters AS counter (app_id, hour, reason, messages)
         SELECT count.app_id, count.hour, count.reason, count.messages
         FROM unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::bigint[])
                  AS count (app_id, hour, reason, messages)
              JOIN apps ON apps.id = count.app_id
         ORDER BY count.app_id, count.hour, count.reason
         ON CONFLICT (app_id, hour, reason)
         DO UPDATE SET messages = counter.messages + EXCLUDED.messages",
        &apps,
        &hours,
        &reasons as &[&str],
        &messages,
    )
    .execute(&mut *connection)
    .await?;
    let apps: Vec<Uuid> = last.iter().map(|refused| refused.app.0).collect();
    let ids: Vec<Uuid> = last.iter().map(|refused| refused.id.0).collect();
    let doors: Vec<&str> = last.iter().map(|refused| refused.door.as_str()).collect();
    let reasons: Vec<&str> = last.iter().map(|refused| refused.reason.as_str()).collect();
    let from: Vec<Option<&str>> = last.iter().map(|refused| refused.from.as_deref()).collect();
    let to: Vec<Option<&str>> = last.iter().map(|refused| refused.to.as_deref()).collect();
    sqlx::query!(
        "INSERT INTO refusals (app_id, id, door, reason, from_address, to_address)
         SELECT last.*
         FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[])
                  AS last (app_id, id, door, reason, from_address, to_address)
              JOIN apps ON apps.id = last.app_id
         ON CONFLICT DO NOTHING",
        &apps,
        &ids,
        &doors as &[&str],
        &reasons as &[&str],
        &from as &[Option<&str>],
        &to as &[Option<&str>],
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "DELETE FROM refusals USING (
             SELECT app.id AS app_id,
                    (SELECT refusals.id FROM refusals WHERE app_id = app.id
                     ORDER BY refusals.id DESC OFFSET $2 LIMIT 1) AS newest
             FROM (SELECT DISTINCT id FROM unnest($1::uuid[]) AS id ORDER BY id) AS app
         ) AS surplus
         WHERE refusals.app_id = surplus.app_id AND refusals.id <= surplus.newest",
        &apps,
        kept,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// An app's refusals since a given time, newest first.
pub async fn list(
    connection: &mut PgConnection,
    app: AppId,
    since: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Refused>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT id, door, reason AS "reason: RefusalReason", from_address, to_address FROM refusals
           WHERE app_id = $1 AND id >= $2 ORDER BY id DESC LIMIT $3"#,
        app.0,
        lowest_uuid_at(since),
        limit,
    )
    .fetch_all(connection)
    .await?;
    let refused = rows.into_iter().map(|row| Refused {
        app,
        id: RefusalId(row.id),
        door: Door::named(&row.door).unwrap_or(Door::Rest),
        reason: row.reason,
        from: row.from_address,
        to: row.to_address,
    });
    Ok(refused.collect())
}

/// The number of an app's refusals since a given time, by hour and reason, newest hour first.
pub async fn counts(
    connection: &mut PgConnection,
    app: AppId,
    since: DateTime<Utc>,
) -> Result<Vec<Count>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT hour, reason AS "reason: RefusalReason", messages FROM refusal_counters
           WHERE app_id = $1 AND hour >= $2 ORDER BY hour DESC, reason"#,
        app.0,
        since,
    )
    .fetch_all(connection)
    .await?;
    let counts = rows.into_iter().map(|row| Count {
        app,
        hour: row.hour,
        reason: row.reason,
        messages: row.messages,
    });
    Ok(counts.collect())
}

/// Removes up to `limit` rows of each table from before `past`; returns how many.
pub async fn forget(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let last = sqlx::query!(
        "DELETE FROM refusals WHERE (app_id, id) IN
             (SELECT app_id, id FROM refusals WHERE id < $1 ORDER BY id LIMIT $2)",
        lowest_uuid_at(past.moment()),
        limit,
    )
    .execute(&mut *connection)
    .await?;
    let counts = sqlx::query!(
        "DELETE FROM refusal_counters WHERE (app_id, hour, reason) IN
             (SELECT app_id, hour, reason FROM refusal_counters
              WHERE hour < $1 ORDER BY hour LIMIT $2)",
        past.moment(),
        limit,
    )
    .execute(&mut *connection)
    .await?;
    let batches = sqlx::query!(
        "DELETE FROM refusal_batches WHERE id IN
             (SELECT id FROM refusal_batches WHERE id < $1 ORDER BY id LIMIT $2)",
        lowest_uuid_at(past.moment()),
        limit,
    )
    .execute(connection)
    .await?;
    Ok((last.rows_affected())
        .max(counts.rows_affected())
        .max(batches.rows_affected()))
}
