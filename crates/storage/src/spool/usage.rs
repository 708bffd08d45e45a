//! The tables `spool_usage` and `spool_usage_changes`: the number and total size of each app's messages stored until
//! their next attempt. Triggers on the table `spool` (see [`super`]) write the changes. Quotas apply to the sum over all apps of a
//! subscriber.

use sqlx::PgConnection;

use mailgate_types::ids::{AppId, SubscriberId};

/// The stored messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Messages.
    pub messages: i64,
    /// Their total size in bytes.
    pub bytes: i64,
}

/// Takes the usage lock of an app's subscriber until the caller's transaction ends: as far as other writers take it too,
/// the usage read then still holds when the caller commits.
pub async fn lock(connection: &mut PgConnection, app: AppId) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT pg_advisory_xact_lock(hashtextextended(
             'spool_usage ' || coalesce((SELECT subscriber_id FROM apps WHERE id = $1), $1)::text, 0
         ))::text",
        app.0,
    )
    .fetch_one(connection)
    .await?;
    Ok(())
}

/// The usage and the own limits of an app's subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// Its usage.
    pub usage: Usage,
    /// Its own limit of messages, if the operator has set one.
    pub most_messages: Option<i64>,
    /// The same for bytes.
    pub most_bytes: Option<i64>,
}

/// The usage of all apps of an app's subscriber, including what the caller's own transaction has stored, and its own
/// limits.
pub async fn of(connection: &mut PgConnection, app: AppId) -> Result<Held, sqlx::Error> {
    let row = sqlx::query!(
        r#"WITH whose AS MATERIALIZED (
               SELECT subscribers.id, max_waiting_messages, max_waiting_bytes
               FROM apps JOIN subscribers ON subscribers.id = subscriber_id WHERE apps.id = $1
           ), own AS MATERIALIZED (
               SELECT id FROM apps WHERE subscriber_id = (SELECT id FROM whose)
           )
           SELECT coalesce(sum(messages), 0)::bigint AS "messages!",
                  coalesce(sum(bytes), 0)::bigint AS "bytes!",
                  (SELECT max_waiting_messages FROM whose) AS most_messages,
                  (SELECT max_waiting_bytes FROM whose) AS most_bytes
           FROM own CROSS JOIN LATERAL (
               SELECT messages, bytes FROM spool_usage WHERE app_id = own.id
               UNION ALL
               SELECT messages, bytes FROM spool_usage_changes WHERE app_id = own.id
           ) AS both_parts"#,
        app.0,
    )
    .fetch_one(connection)
    .await?;
    Ok(Held {
        usage: Usage {
            messages: row.messages,
            bytes: row.bytes,
        },
        most_messages: row.most_messages,
        most_bytes: row.most_bytes,
    })
}

/// The limits of each subscriber without its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// Messages.
    pub messages: i64,
    /// Their bytes.
    pub bytes: i64,
    /// The bytes that every subscriber may store, whatever its own limit: else its largest message could never be
    /// stored.
    pub least_bytes: i64,
}

/// Subscribers with their usage, the most first.
#[derive(Debug, Clone, PartialEq)]
pub struct Largest {
    /// Those with the most messages.
    pub messages: Vec<(SubscriberId, i64)>,
    /// Those that use the largest share of their quota, by messages or by bytes, whichever is larger: 1 means full.
    pub shares: Vec<(SubscriberId, f64)>,
}

/// The `number` subscribers with the most stored, as far as folded; `most` is the limit for those without their own.
pub async fn largest(
    connection: &mut PgConnection,
    most: &Most,
    number: u8,
) -> Result<Largest, sqlx::Error> {
    let rows = sqlx::query!(
        r#"WITH stored AS MATERIALIZED (
               SELECT subscribers.id, sum(messages)::bigint AS messages,
                      greatest(
                          sum(messages)::float8 / coalesce(max_waiting_messages, $1),
                          sum(bytes)::float8 / greatest(coalesce(max_waiting_bytes, $2), $3)
                      ) AS share
               FROM spool_usage JOIN apps ON apps.id = app_id
                    JOIN subscribers ON subscribers.id = subscriber_id
               GROUP BY subscribers.id
           )
           (SELECT id AS "id!", messages, NULL::float8 AS share FROM stored
            WHERE messages > 0 ORDER BY messages DESC, id LIMIT $4)
           UNION ALL
           (SELECT id, NULL, share FROM stored
            WHERE share > 0 ORDER BY share DESC, id LIMIT $4)"#,
        most.messages,
        most.bytes,
        most.least_bytes,
        i64::from(number),
    )
    .fetch_all(connection)
    .await?;
    let messages = (rows.iter()).filter_map(|row| Some((SubscriberId(row.id), row.messages?)));
    let shares = (rows.iter()).filter_map(|row| Some((SubscriberId(row.id), row.share?)));
    Ok(Largest {
        messages: messages.collect(),
        shares: shares.collect(),
    })
}

/// Folds up to `limit` changes into the usage of their apps, except those that another process is folding; returns
/// how many there were.
///
/// # Errors
///
/// The database's error; nothing is added then.
pub async fn fold(connection: &mut PgConnection, limit: i64) -> Result<i64, sqlx::Error> {
    // In app order, so that two processes can't deadlock.
    sqlx::query_scalar!(
        r#"WITH taken AS (
               DELETE FROM spool_usage_changes
               WHERE ctid = ANY(ARRAY(
                   SELECT ctid FROM spool_usage_changes LIMIT $1 FOR UPDATE SKIP LOCKED
               ))
               RETURNING *
           ), added AS (
               INSERT INTO spool_usage AS usage (app_id, messages, bytes)
               SELECT app_id, sum(messages), sum(bytes) FROM taken GROUP BY app_id ORDER BY app_id
               ON CONFLICT (app_id) DO UPDATE
               SET messages = usage.messages + EXCLUDED.messages,
                   bytes = usage.bytes + EXCLUDED.bytes
           )
           SELECT count(*) AS "count!" FROM taken"#,
        limit,
    )
    .fetch_one(connection)
    .await
}

/// Deletes apps that have nothing stored.
pub async fn forget_empty(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("DELETE FROM spool_usage WHERE messages = 0 AND bytes = 0")
        .execute(connection)
        .await?;
    Ok(())
}
