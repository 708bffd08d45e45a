//! The table `apps`. Its queries for connecting mailboxes are in [`connecting`].
//!
//! Triggers: `apps_begin` (migration 0020) gives a new app its row of `app_versions`; `apps_change` (0020) and
//! `apps_suppression_change` (0024), deferred to the commit, raise the version when data that gateways cache changes.
//! When an app is deleted, `apps_withdraw_bounced` (0024) takes its bounces off its subscriber's counters, and
//! `app_webhooks_go` (0027) keeps the secret of its endpoint for the last deliveries (`signing_secrets`).

pub mod connecting;
mod deleted;
mod keys;
pub mod overview;
mod sending;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;
use sqlx::types::Uuid;

pub use deleted::{DeletedApps, announce_deleted, gone};
pub use keys::{
    SealedCredentials, StoredKeys, find_credentials, find_webhook_secrets, lock_keys,
    replace_pushable_key, replace_send_key, rotate_webhook_secret, send_key_times, stored_keys,
};
pub use sending::{Restrictions, SendingApp, find_by_send_keys, subscription};

use mailgate_types::ids::{AppId, CredentialId, SubscriberId};

/// A new row.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[derive(Debug)]
pub struct NewApp<'a> {
    /// Its id.
    pub id: AppId,
    /// The subscriber that owns it.
    pub subscriber_id: SubscriberId,
    /// The contract's `app_id`.
    pub slug: &'a str,
    /// The name that the subscriber gave it.
    pub name: &'a str,
    /// `pk_…`, in clear.
    pub pushable_key: &'a str,
    /// The send key, sealed.
    pub send_key_sealed: &'a [u8],
    /// The send key's lookup digest.
    pub send_key_digest: &'a [u8],
    /// The webhook secret, sealed.
    pub webhook_secret_sealed: &'a [u8],
    /// A URL, or empty.
    pub logo_url: &'a str,
    /// Whether the app has several end users.
    pub multiuser: bool,
    /// Whether an end user may connect several mailboxes of one plugin.
    pub multilink: bool,
    /// Whether mailboxes can only be connected through connect sessions.
    pub require_connect_session: bool,
    /// Whether messages to recipients that have bounced are refused.
    pub suppress_bounced: bool,
    /// A URL, or empty.
    pub webhook_url: &'a str,
    /// A URL, or empty.
    pub callback_url: &'a str,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

/// Inserts an app; `false` when its slug is taken.
pub async fn insert(connection: &mut PgConnection, app: &NewApp<'_>) -> Result<bool, sqlx::Error> {
    let inserted = sqlx::query!(
        "INSERT INTO apps
             (id, subscriber_id, slug, name, pushable_key, send_key_sealed, send_key_digest,
              webhook_secret_sealed, logo_url, multiuser, multilink, require_connect_session,
              webhook_url, callback_url, created_at, suppress_bounced)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
         ON CONFLICT ON CONSTRAINT apps_slug_key DO NOTHING",
        app.id.0,
        app.subscriber_id.0,
        app.slug,
        app.name,
        app.pushable_key,
        app.send_key_sealed,
        app.send_key_digest,
        app.webhook_secret_sealed,
        app.logo_url,
        app.multiuser,
        app.multilink,
        app.require_connect_session,
        app.webhook_url,
        app.callback_url,
        app.created_at,
        app.suppress_bounced,
    )
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// An app as its subscriber sees it.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[derive(Debug, Clone)]
pub struct App {
    /// Its id.
    pub id: AppId,
    /// The contract's `app_id`.
    pub slug: String,
    /// The name that the subscriber gave it.
    pub name: String,
    /// `pk_…`
    pub pushable_key: String,
    /// A URL, or empty.
    pub logo_url: String,
    /// Whether the app has several end users.
    pub multiuser: bool,
    /// Whether an end user may connect several mailboxes of one plugin.
    pub multilink: bool,
    /// Whether mailboxes can only be connected through connect sessions.
    pub require_connect_session: bool,
    /// Whether messages to recipients that have bounced are refused.
    pub suppress_bounced: bool,
    /// A URL, or empty.
    pub webhook_url: String,
    /// A URL, or empty.
    pub callback_url: String,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// Its active mailboxes.
    pub users_count: i64,
}

/// A subscriber's apps, the oldest first.
pub async fn list(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    limit: Option<i64>,
    offset: i64,
) -> Result<Vec<App>, sqlx::Error> {
    sqlx::query_as!(
        App,
        r#"SELECT id, slug, name, pushable_key, logo_url, multiuser, multilink,
                  require_connect_session, suppress_bounced, webhook_url, callback_url, created_at,
                  (SELECT count(*) FROM mailboxes
                   WHERE app_id = apps.id AND status = 'active') AS "users_count!"
           FROM apps WHERE subscriber_id = $1
           ORDER BY created_at, id LIMIT $2 OFFSET $3"#,
        subscriber.0,
        limit,
        offset,
    )
    .fetch_all(connection)
    .await
}

/// An app to choose.
#[derive(Debug, Clone)]
pub struct NamedApp {
    /// Its id.
    pub id: AppId,
    /// The contract's `app_id`.
    pub slug: String,
    /// The name that the subscriber gave it.
    pub name: String,
    /// `pk_…`, in clear.
    pub pushable_key: String,
}

/// A subscriber's apps, the oldest first, `limit` at most, plus the one with this slug or pushable key.
pub async fn named(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    limit: i64,
    chosen: Option<&str>,
) -> Result<Vec<NamedApp>, sqlx::Error> {
    sqlx::query_as!(
        NamedApp,
        r#"SELECT id AS "id!", slug AS "slug!", name AS "name!",
                  pushable_key AS "pushable_key!"
           FROM ((SELECT id, slug, name, pushable_key, created_at FROM apps
                  WHERE subscriber_id = $1 ORDER BY created_at, id LIMIT $2)
                 UNION
                 SELECT id, slug, name, pushable_key, created_at FROM apps
                 WHERE subscriber_id = $1 AND (slug = $3 OR pushable_key = $3)) AS chosen
           ORDER BY created_at, id"#,
        subscriber.0,
        limit,
        chosen,
    )
    .fetch_all(connection)
    .await
}

/// Whether any of a subscriber's apps has a connected mailbox.
pub async fn has_mailbox(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT 1 FROM apps JOIN mailboxes ON mailboxes.app_id = apps.id
               WHERE apps.subscriber_id = $1 AND mailboxes.status = 'active'
           ) AS "exists!""#,
        subscriber.0,
    )
    .fetch_one(connection)
    .await
}

/// A subscriber's app by its pushable key.
pub async fn find_owned(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    pushable_key: &str,
) -> Result<Option<App>, sqlx::Error> {
    sqlx::query_as!(
        App,
        r#"SELECT id, slug, name, pushable_key, logo_url, multiuser, multilink,
                  require_connect_session, suppress_bounced, webhook_url, callback_url, created_at,
                  (SELECT count(*) FROM mailboxes
                   WHERE app_id = apps.id AND status = 'active') AS "users_count!"
           FROM apps WHERE subscriber_id = $1 AND pushable_key = $2"#,
        subscriber.0,
        pushable_key,
    )
    .fetch_optional(connection)
    .await
}

/// A subscriber's app with this id, or else the one with this slug or pushable key.
pub async fn find_owned_by_name(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    id: Option<AppId>,
    name: &str,
) -> Result<Option<App>, sqlx::Error> {
    sqlx::query_as!(
        App,
        r#"SELECT id, slug, name, pushable_key, logo_url, multiuser, multilink,
                  require_connect_session, suppress_bounced, webhook_url, callback_url, created_at,
                  (SELECT count(*) FROM mailboxes
                   WHERE app_id = apps.id AND status = 'active') AS "users_count!"
           FROM apps WHERE subscriber_id = $1 AND (id = $2 OR slug = $3 OR pushable_key = $3)
           ORDER BY (id = $2) IS TRUE DESC LIMIT 1"#,
        subscriber.0,
        id.map(|id| id.0),
        name,
    )
    .fetch_optional(connection)
    .await
}

/// Changes to an app; `None` leaves a field as it is.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Change {
    /// Its name; the slug stays.
    pub name: Option<String>,
    /// A URL, or empty.
    pub logo_url: Option<String>,
    /// Whether the app has several end users.
    pub multiuser: Option<bool>,
    /// Whether an end user may connect several mailboxes of one plugin.
    pub multilink: Option<bool>,
    /// Whether mailboxes can only be connected through connect sessions.
    pub require_connect_session: Option<bool>,
    /// Whether messages to recipients that have bounced are refused.
    pub suppress_bounced: Option<bool>,
    /// A URL, or empty.
    pub webhook_url: Option<String>,
    /// A URL, or empty.
    pub callback_url: Option<String>,
}

/// Locks an app's row until the transaction ends, so that no mailbox is connected meanwhile, and returns its name;
/// `None` if the app was deleted.
pub async fn lock(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar!("SELECT name FROM apps WHERE id = $1 FOR UPDATE", app.0)
        .fetch_optional(connection)
        .await
}

/// As [`lock`], all apps of a subscriber, in the order of their ids.
pub async fn lock_all_of(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<Vec<(AppId, String)>, sqlx::Error> {
    let rows = sqlx::query!(
        "SELECT id, name FROM apps WHERE subscriber_id = $1 ORDER BY id FOR UPDATE",
        subscriber.0,
    )
    .fetch_all(connection)
    .await?;
    let apps = rows.into_iter().map(|row| (AppId(row.id), row.name));
    Ok(apps.collect())
}

/// As [`keep`], the app of a mailbox.
pub async fn keep_of(
    connection: &mut PgConnection,
    mailbox: CredentialId,
) -> Result<bool, sqlx::Error> {
    let kept = sqlx::query_scalar!(
        "SELECT id FROM apps WHERE id = (SELECT app_id FROM mailboxes WHERE id = $1) FOR KEY SHARE",
        mailbox.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(kept.is_some())
}

/// Keeps an app from being deleted until the caller's transaction ends; `false` if it was already deleted.
pub async fn keep(connection: &mut PgConnection, app: AppId) -> Result<bool, sqlx::Error> {
    let kept = sqlx::query_scalar!("SELECT id FROM apps WHERE id = $1 FOR KEY SHARE", app.0)
        .fetch_optional(connection)
        .await?;
    Ok(kept.is_some())
}

/// As [`lock`], returning every field that can change.
pub async fn lock_fields(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<Change>, sqlx::Error> {
    sqlx::query_as!(
        Change,
        r#"SELECT name AS "name?", logo_url AS "logo_url?", multiuser AS "multiuser?",
                  multilink AS "multilink?",
                  require_connect_session AS "require_connect_session?",
                  suppress_bounced AS "suppress_bounced?",
                  webhook_url AS "webhook_url?", callback_url AS "callback_url?"
           FROM apps WHERE id = $1 FOR UPDATE"#,
        app.0,
    )
    .fetch_optional(connection)
    .await
}

/// The subscriber's app with this id, or else the one with this slug.
pub async fn find_referred(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    id: Option<AppId>,
    slug: &str,
) -> Result<Option<AppId>, sqlx::Error> {
    let found = sqlx::query_scalar!(
        "SELECT id FROM apps
         WHERE subscriber_id = $1 AND (id = $2 OR slug = $3)
         ORDER BY (id = $2) IS TRUE DESC LIMIT 1",
        subscriber.0,
        id.map(|id| id.0),
        slug,
    )
    .fetch_optional(connection)
    .await?;
    Ok(found.map(AppId))
}

/// Any subscriber's app with this UUID, or else the one with this slug.
pub async fn find_anybodys(
    connection: &mut PgConnection,
    reference: &str,
) -> Result<Option<AppId>, sqlx::Error> {
    let found = sqlx::query_scalar!(
        "SELECT id FROM apps WHERE id = $1 OR slug = $2
         ORDER BY (id = $1) IS TRUE DESC LIMIT 1",
        reference.parse::<Uuid>().ok(),
        reference,
    )
    .fetch_optional(connection)
    .await?;
    Ok(found.map(AppId))
}

/// The number of a subscriber's apps. While the caller holds the subscriber's lock, it can't change.
pub async fn count(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM apps WHERE subscriber_id = $1"#,
        subscriber.0,
    )
    .fetch_one(connection)
    .await
}

/// Changes an app.
pub async fn update(
    connection: &mut PgConnection,
    app: AppId,
    change: &Change,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE apps
         SET name = coalesce($2, name), logo_url = coalesce($3, logo_url),
             multiuser = coalesce($4, multiuser), multilink = coalesce($5, multilink),
             webhook_url = coalesce($6, webhook_url), callback_url = coalesce($7, callback_url),
             require_connect_session = coalesce($8, require_connect_session),
             suppress_bounced = coalesce($9, suppress_bounced)
         WHERE id = $1",
        app.0,
        change.name,
        change.logo_url,
        change.multiuser,
        change.multilink,
        change.webhook_url,
        change.callback_url,
        change.require_connect_session,
        change.suppress_bounced,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Deletes an app with its users and mailboxes; `false` if it was already deleted.
pub async fn delete(connection: &mut PgConnection, app: AppId) -> Result<bool, sqlx::Error> {
    // Keys before `app_versions`, which a change of a key writes last: the cascade would use the opposite order.
    lock(connection, app).await?;
    sqlx::query!("DELETE FROM send_keys WHERE app_id = $1", app.0)
        .execute(&mut *connection)
        .await?;
    let deleted = sqlx::query!("DELETE FROM apps WHERE id = $1", app.0)
        .execute(connection)
        .await?;
    Ok(deleted.rows_affected() == 1)
}
