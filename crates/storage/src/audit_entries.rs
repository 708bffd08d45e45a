//! The table `audit_entries`.

use std::collections::HashMap;
use std::net::IpAddr;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::types::Uuid;

use mailgate_types::audit::{AuditAction, AuditEntry, AuditSubject, Author};
use mailgate_types::ids::{AppId, AuditEntryId, SubscriberId, lowest_uuid_at};
use mailgate_types::past::Past;

/// Inserts entries by one statement; returns the subscriber of each. Their apps must still exist.
pub async fn insert(
    connection: &mut PgConnection,
    author: Author,
    entries: &[(AuditEntryId, AuditEntry)],
) -> Result<HashMap<AuditEntryId, SubscriberId>, sqlx::Error> {
    let ids: Vec<Uuid> = entries.iter().map(|(id, _)| id.0).collect();
    let entries = || entries.iter().map(|(_, entry)| entry);
    let subjects = entries().map(|entry| match entry.subject {
        AuditSubject::App(app) => (Some(app.0), None),
        AuditSubject::Subscriber(subscriber) => (None, Some(subscriber.0)),
        AuditSubject::Gateway => (None, None),
    });
    let (apps, subscribers): (Vec<Option<Uuid>>, Vec<Option<Uuid>>) = subjects.unzip();
    let actions: Vec<&str> = entries().map(|entry| entry.action.as_str()).collect();
    let targets: Vec<Option<&str>> = entries().map(|entry| entry.target.as_deref()).collect();
    let details: Vec<Value> = entries().map(|entry| entry.details.clone()).collect();
    let rows = sqlx::query!(
        "INSERT INTO audit_entries
             (id, subscriber_id, app_id, app_slug, action, actor, address, target, details,
              api_secret_id)
         SELECT given.id, coalesce(apps.subscriber_id, given.subscriber_id), given.app_id, slug,
                action, $7, $8, target, details, $9
         FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::jsonb[])
                  AS given (id, subscriber_id, app_id, action, target, details)
              LEFT JOIN apps ON apps.id = given.app_id
         RETURNING id, subscriber_id",
        &ids,
        &subscribers as &[Option<Uuid>],
        &apps as &[Option<Uuid>],
        &actions as &[&str],
        &targets as &[Option<&str>],
        &details,
        author.actor.as_str(),
        author.address.as_ref().map(IpAddr::to_string),
        author.api_secret().map(|id| id.0),
    )
    .fetch_all(connection)
    .await?;
    let rows = rows.into_iter().filter_map(|row| {
        let subscriber = SubscriberId(row.subscriber_id?);
        Some((AuditEntryId(row.id), subscriber))
    });
    Ok(rows.collect())
}

/// An entry as its subscriber sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEntry {
    /// Its id, which holds the time of the change.
    pub id: Uuid,
    /// The app, which may have been deleted.
    pub app_id: Option<Uuid>,
    /// Its slug.
    pub app_slug: Option<String>,
    /// The kind of change.
    pub action: String,
    /// Who made the change.
    pub actor: String,
    /// The additional API secret that made the change.
    pub api_secret_id: Option<Uuid>,
    /// The client's address.
    pub address: Option<String>,
    /// The mailbox or the webhook configuration.
    pub target: Option<String>,
    /// Further details.
    pub details: Value,
}

/// Selects a subscriber's entries.
#[derive(Debug, Clone, Copy)]
pub struct Range<'a> {
    /// Entries of one app only; `None` selects all of the subscriber's.
    pub app: Option<AppId>,
    /// The kinds of entries; each is indexed in time order.
    pub actions: &'a [AuditAction],
    /// The first id.
    pub from: Uuid,
    /// The id after the last.
    pub before: Uuid,
}

/// A subscriber's entries in a range, newest first, without the first `skip` of them.
pub async fn list(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    range: Range<'_>,
    skip: i64,
    limit: i64,
) -> Result<Vec<StoredEntry>, sqlx::Error> {
    let actions: Vec<&str> = range.actions.iter().map(|action| action.as_str()).collect();
    let ids = match range.app {
        Some(app) => {
            sqlx::query_scalar!(
                "SELECT found.id
                 FROM unnest($3::text[]) AS kind (action)
                      CROSS JOIN LATERAL (
                          SELECT id FROM audit_entries AS entry
                          WHERE subscriber_id = $1 AND app_id = $2 AND entry.action = kind.action
                            AND id >= $4 AND id < $5
                          ORDER BY id DESC LIMIT $6::bigint + $7::bigint
                      ) AS found
                 ORDER BY found.id DESC OFFSET $6 LIMIT $7",
                subscriber.0,
                app.0,
                &actions as &[&str],
                range.from,
                range.before,
                skip,
                limit,
            )
            .fetch_all(&mut *connection)
            .await?
        }
        None => {
            sqlx::query_scalar!(
                "SELECT found.id
                 FROM unnest($2::text[]) AS kind (action)
                      CROSS JOIN LATERAL (
                          SELECT id FROM audit_entries AS entry
                          WHERE subscriber_id = $1 AND entry.action = kind.action
                            AND id >= $3 AND id < $4
                          ORDER BY id DESC LIMIT $5::bigint + $6::bigint
                      ) AS found
                 ORDER BY found.id DESC OFFSET $5 LIMIT $6",
                subscriber.0,
                &actions as &[&str],
                range.from,
                range.before,
                skip,
                limit,
            )
            .fetch_all(&mut *connection)
            .await?
        }
    };
    sqlx::query_as!(
        StoredEntry,
        "SELECT id, app_id, app_slug, action, actor, api_secret_id, address, target, details
         FROM audit_entries WHERE id = ANY($1) ORDER BY id DESC",
        &ids,
    )
    .fetch_all(connection)
    .await
}

/// An object of entries that still exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditObject {
    /// Its UUID.
    pub id: Uuid,
    /// An app's or a send key's name, a mailbox's address, a webhook configuration's URL, or a message's recipient.
    pub name: String,
    /// The slug of its app.
    pub slug: String,
}

/// The subscriber's apps, mailboxes, webhook configurations, additional send keys and logged messages among these.
pub async fn objects(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    ids: &[Uuid],
) -> Result<Vec<AuditObject>, sqlx::Error> {
    sqlx::query_as!(
        AuditObject,
        r#"SELECT found.id AS "id!", found.name AS "name!", slug AS "slug!"
           FROM (
               SELECT id, id AS app_id, name FROM apps WHERE id = ANY($2)
               UNION ALL SELECT id, app_id, email FROM mailboxes WHERE id = ANY($2)
               UNION ALL SELECT id, app_id, url FROM webhook_configs WHERE id = ANY($2)
               UNION ALL SELECT id, app_id, name FROM send_keys WHERE id = ANY($2)
               UNION ALL SELECT id, app_id, to_address FROM email_logs WHERE id = ANY($2)
           ) AS found JOIN apps ON apps.id = found.app_id
           WHERE apps.subscriber_id = $1"#,
        subscriber.0,
        ids,
    )
    .fetch_all(connection)
    .await
}

/// The subscriber's deleted app that had this slug most recently.
pub async fn find_deleted_app(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    slug: &str,
) -> Result<Option<AppId>, sqlx::Error> {
    let found = sqlx::query_scalar!(
        "SELECT app_id FROM audit_entries
         WHERE subscriber_id = $1 AND app_slug = $2 AND action = 'app.deleted'
         ORDER BY id DESC LIMIT 1",
        subscriber.0,
        slug,
    )
    .fetch_optional(connection)
    .await?;
    Ok(found.flatten().map(AppId))
}

/// Removes up to `limit` entries from before `past`; returns how many there were.
pub async fn remove_before(
    connection: &mut PgConnection,
    past: Past,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM audit_entries
         WHERE id IN (SELECT id FROM audit_entries WHERE id < $1 ORDER BY id LIMIT $2)",
        lowest_uuid_at(past.moment()),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}

/// Removes up to `limit` entries of a deleted subscriber, except the one that records the deletion; returns how many
/// there were.
pub async fn remove_of(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let removed = sqlx::query!(
        "DELETE FROM audit_entries
         WHERE id IN (SELECT id FROM audit_entries
                      WHERE subscriber_id = $1 AND action <> $2 LIMIT $3)",
        subscriber.0,
        AuditAction::SubscriberDeleted.as_str(),
        limit,
    )
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}

/// The number of a subscriber's entries of an action since then, `most` at most.
pub async fn count(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    action: AuditAction,
    since: DateTime<Utc>,
    most: i64,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM (
               SELECT FROM audit_entries
               WHERE subscriber_id = $1 AND action = $4 AND id >= $2
               LIMIT $3
           ) AS created"#,
        subscriber.0,
        lowest_uuid_at(since),
        most,
        action.as_str(),
    )
    .fetch_one(connection)
    .await
}
