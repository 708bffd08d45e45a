//! The table `mailboxes`: choosing one for a send, connecting one, and its tokens. How one ends is in
//! [`end`].

pub mod count;
pub mod due;
pub mod end;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::types::ids::{AppId, CredentialId, UserKey};
use crate::types::plugin::Plugin;

/// A connected mailbox, its tokens sealed.
#[derive(Debug, Clone)]
pub struct Mailbox {
    /// Its id.
    pub id: CredentialId,
    /// Its end user.
    pub user_key: UserKey,
    /// The provider.
    pub plugin: Plugin,
    /// Its address, as the provider spells it.
    pub email: String,
    /// What its user has granted.
    pub scopes: Arc<[String]>,
    /// The refresh token, sealed.
    pub refresh_token_sealed: Option<Vec<u8>>,
    /// The access token, sealed.
    pub access_token_sealed: Option<Vec<u8>>,
    /// When the access token lapses.
    pub access_token_expires_at: Option<DateTime<Utc>>,
    /// Goes up with each new access token.
    pub token_generation: i64,
    /// The provider wants no more of it before then.
    pub parked_until: Option<DateTime<Utc>>,
}

/// A row as it lies there.
struct Row {
    id: Uuid,
    user_key: Uuid,
    plugin: String,
    email: String,
    scopes: Vec<String>,
    refresh_token_sealed: Option<Vec<u8>>,
    access_token_sealed: Option<Vec<u8>>,
    access_token_expires_at: Option<DateTime<Utc>>,
    token_generation: i64,
    parked_until: Option<DateTime<Utc>>,
}

impl TryFrom<Row> for Mailbox {
    type Error = sqlx::Error;

    fn try_from(row: Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: CredentialId(row.id),
            user_key: UserKey(row.user_key),
            plugin: row
                .plugin
                .parse()
                .map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            email: row.email,
            scopes: row.scopes.into(),
            refresh_token_sealed: row.refresh_token_sealed,
            access_token_sealed: row.access_token_sealed,
            access_token_expires_at: row.access_token_expires_at,
            token_generation: row.token_generation,
            parked_until: row.parked_until,
        })
    }
}

/// Which of an app's mailboxes is wanted. Of several, it is
/// the one connected first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// The app.
    pub app: AppId,
    /// The end user: the app's own name for the user, or the user's key.
    pub user: Option<String>,
    /// The kind of provider.
    pub plugin: Option<Plugin>,
    /// The address in lower case.
    pub address_lookup: Option<String>,
}

/// The active mailboxes that are wanted, in their order.
///
/// # Errors
///
/// What the database said.
pub async fn find_wanted(
    connection: &mut PgConnection,
    wanted: &[Wanted],
) -> Result<Vec<Option<Mailbox>>, sqlx::Error> {
    let mut found: Vec<Option<Mailbox>> = vec![None; wanted.len()];
    let (by_address, others): (Vec<usize>, Vec<usize>) =
        (0..wanted.len()).partition(|place| wanted[*place].address_lookup.is_some());
    let (of_users, of_apps): (Vec<usize>, Vec<usize>) = others
        .into_iter()
        .partition(|place| wanted[*place].user.is_some());
    // Each has an index of its own, which one statement for all could not use.
    if !by_address.is_empty() {
        let rows = find_by_addresses(connection, &of(wanted, &by_address)).await?;
        put(rows, &by_address, &mut found)?;
    }
    if !of_users.is_empty() {
        let rows = find_of_users(connection, &of(wanted, &of_users)).await?;
        put(rows, &of_users, &mut found)?;
    }
    if !of_apps.is_empty() {
        let rows = find_of_apps(connection, &of(wanted, &of_apps)).await?;
        put(rows, &of_apps, &mut found)?;
    }
    Ok(found)
}

fn of<'a>(wanted: &'a [Wanted], places: &[usize]) -> Vec<&'a Wanted> {
    places.iter().map(|place| &wanted[*place]).collect()
}

fn put(
    rows: Vec<FoundRow>,
    places: &[usize],
    found: &mut [Option<Mailbox>],
) -> Result<(), sqlx::Error> {
    for row in rows {
        let number = usize::try_from(row.place - 1).ok();
        let place = number.and_then(|number| found.get_mut(*places.get(number)?));
        if let Some(place) = place {
            *place = Some(Mailbox::try_from(Row {
                id: row.id,
                user_key: row.user_key,
                plugin: row.plugin,
                email: row.email,
                scopes: row.scopes,
                refresh_token_sealed: row.refresh_token_sealed,
                access_token_sealed: row.access_token_sealed,
                access_token_expires_at: row.access_token_expires_at,
                token_generation: row.token_generation,
                parked_until: row.parked_until,
            })?);
        }
    }
    Ok(())
}

/// A row, and whose answer it is, from 1.
struct FoundRow {
    place: i64,
    id: Uuid,
    user_key: Uuid,
    plugin: String,
    email: String,
    scopes: Vec<String>,
    refresh_token_sealed: Option<Vec<u8>>,
    access_token_sealed: Option<Vec<u8>>,
    access_token_expires_at: Option<DateTime<Utc>>,
    token_generation: i64,
    parked_until: Option<DateTime<Utc>>,
}

async fn find_of_apps(
    connection: &mut PgConnection,
    wanted: &[&Wanted],
) -> Result<Vec<FoundRow>, sqlx::Error> {
    let apps: Vec<Uuid> = wanted.iter().map(|it| it.app.0).collect();
    let plugins: Vec<Option<&str>> = wanted
        .iter()
        .map(|it| it.plugin.map(Plugin::as_str))
        .collect();
    sqlx::query_as!(
        FoundRow,
        r#"SELECT asked.place AS "place!", mailbox.id, mailbox.user_key, mailbox.plugin,
                mailbox.email, mailbox.scopes, mailbox.refresh_token_sealed, mailbox.access_token_sealed,
                mailbox.access_token_expires_at, mailbox.token_generation, mailbox.parked_until
         FROM unnest($1::uuid[], $2::text[])
              WITH ORDINALITY AS asked (app_id, plugin, place)
         CROSS JOIN LATERAL (
             SELECT * FROM mailboxes
             WHERE app_id = asked.app_id AND status = 'active'
               AND (asked.plugin IS NULL OR plugin = asked.plugin)
             ORDER BY connected_at, id
             LIMIT 1
         ) AS mailbox"#,
        &apps,
        &plugins as &[Option<&str>],
    )
    .fetch_all(connection)
    .await
}

async fn find_by_addresses(
    connection: &mut PgConnection,
    wanted: &[&Wanted],
) -> Result<Vec<FoundRow>, sqlx::Error> {
    let apps: Vec<Uuid> = wanted.iter().map(|it| it.app.0).collect();
    let addresses: Vec<Option<&str>> = wanted
        .iter()
        .map(|it| it.address_lookup.as_deref())
        .collect();
    let users: Vec<Option<&str>> = wanted.iter().map(|it| it.user.as_deref()).collect();
    let user_keys: Vec<Option<Uuid>> = wanted
        .iter()
        .map(|it| it.user.as_deref().and_then(|user| user.parse().ok()))
        .collect();
    let plugins: Vec<Option<&str>> = wanted
        .iter()
        .map(|it| it.plugin.map(Plugin::as_str))
        .collect();
    sqlx::query_as!(
        FoundRow,
        r#"SELECT asked.place AS "place!", mailbox.id, mailbox.user_key, mailbox.plugin,
                mailbox.email, mailbox.scopes, mailbox.refresh_token_sealed, mailbox.access_token_sealed,
                mailbox.access_token_expires_at, mailbox.token_generation, mailbox.parked_until
         FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::uuid[])
              WITH ORDINALITY AS asked (app_id, email_lookup, plugin, user_id, user_key, place)
         CROSS JOIN LATERAL (
             SELECT * FROM mailboxes
             WHERE app_id = asked.app_id AND status = 'active'
               AND email_lookup = asked.email_lookup
               AND (asked.plugin IS NULL OR plugin = asked.plugin)
               AND (asked.user_id IS NULL OR user_key IN (
                 SELECT user_key FROM end_users
                 WHERE app_id = asked.app_id AND user_id = asked.user_id
                 UNION
                 SELECT user_key FROM end_users
                 WHERE app_id = asked.app_id AND user_key = asked.user_key
               ))
             ORDER BY connected_at, id
             LIMIT 1
         ) AS mailbox"#,
        &apps,
        &addresses as &[Option<&str>],
        &plugins as &[Option<&str>],
        &users as &[Option<&str>],
        &user_keys as &[Option<Uuid>],
    )
    .fetch_all(connection)
    .await
}

async fn find_of_users(
    connection: &mut PgConnection,
    wanted: &[&Wanted],
) -> Result<Vec<FoundRow>, sqlx::Error> {
    let apps: Vec<Uuid> = wanted.iter().map(|it| it.app.0).collect();
    let users: Vec<Option<&str>> = wanted.iter().map(|it| it.user.as_deref()).collect();
    let user_keys: Vec<Option<Uuid>> = wanted
        .iter()
        .map(|it| it.user.as_deref().and_then(|user| user.parse().ok()))
        .collect();
    let plugins: Vec<Option<&str>> = wanted
        .iter()
        .map(|it| it.plugin.map(Plugin::as_str))
        .collect();
    sqlx::query_as!(
        FoundRow,
        r#"SELECT asked.place AS "place!", mailbox.id, mailbox.user_key, mailbox.plugin,
                mailbox.email, mailbox.scopes, mailbox.refresh_token_sealed, mailbox.access_token_sealed,
                mailbox.access_token_expires_at, mailbox.token_generation, mailbox.parked_until
         FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[])
              WITH ORDINALITY AS asked (app_id, user_id, user_key, plugin, place)
         CROSS JOIN LATERAL (
             SELECT mailboxes.* FROM (
                 SELECT user_key FROM end_users
                 WHERE app_id = asked.app_id AND user_id = asked.user_id
                 UNION
                 SELECT user_key FROM end_users
                 WHERE app_id = asked.app_id AND user_key = asked.user_key
             ) AS users JOIN mailboxes USING (user_key)
             WHERE status = 'active' AND (asked.plugin IS NULL OR plugin = asked.plugin)
             ORDER BY connected_at, id
             LIMIT 1
         ) AS mailbox"#,
        &apps,
        &users as &[Option<&str>],
        &user_keys as &[Option<Uuid>],
        &plugins as &[Option<&str>],
    )
    .fetch_all(connection)
    .await
}

/// A mailbox while it is active.
///
/// # Errors
///
/// What the database said.
pub async fn find_active(
    connection: &mut PgConnection,
    id: CredentialId,
) -> Result<Option<Mailbox>, sqlx::Error> {
    sqlx::query_as!(
        Row,
        "SELECT id, user_key, plugin, email, scopes, refresh_token_sealed,
                access_token_sealed, access_token_expires_at, token_generation, parked_until
         FROM mailboxes WHERE id = $1 AND status = 'active'",
        id.0,
    )
    .fetch_optional(connection)
    .await?
    .map(Mailbox::try_from)
    .transpose()
}

/// What a connection of a mailbox brings.
#[derive(Debug)]
pub struct Connection<'a> {
    /// The id it gets unless the address was connected before.
    pub id: CredentialId,
    /// The app.
    pub app: AppId,
    /// The end user.
    pub user_key: UserKey,
    /// The provider.
    pub plugin: Plugin,
    /// The address, as the provider spells it.
    pub email: &'a str,
    /// The address in lower case.
    pub email_lookup: &'a str,
    /// What was granted.
    pub scopes: &'a [String],
    /// When.
    pub now: DateTime<Utc>,
}

/// Connects a mailbox, or the same address again under its old id; one that is still active has been
/// connected all along. Its tokens follow by [`store_tokens`], since they are sealed for that id.
///
/// # Errors
///
/// What the database said.
pub async fn upsert(
    connection: &mut PgConnection,
    new: &Connection<'_>,
) -> Result<CredentialId, sqlx::Error> {
    let id = sqlx::query_scalar!(
        "INSERT INTO mailboxes
             (id, app_id, user_key, plugin, email, email_lookup, status, scopes, connected_at,
              replies_due_at)
         VALUES ($1, $2, $3, $4, $5, $6, 'active', $7, $8, $8)
         ON CONFLICT ON CONSTRAINT mailboxes_user_address_key DO UPDATE
         SET email = EXCLUDED.email, status = 'active', scopes = EXCLUDED.scopes,
             disconnect_reason = NULL, disconnected_at = NULL, refresh_lease_until = NULL,
             connected_at = CASE WHEN mailboxes.status = 'active' THEN mailboxes.connected_at
                                 ELSE EXCLUDED.connected_at END,
             replies_due_at = EXCLUDED.replies_due_at
         RETURNING id",
        new.id.0,
        new.app.0,
        new.user_key.0,
        new.plugin.as_str(),
        new.email,
        new.email_lookup,
        new.scopes,
        new.now,
    )
    .fetch_one(connection)
    .await?;
    Ok(CredentialId(id))
}

/// Takes the right to refresh a mailbox's token until `lease_until`. `false` when somebody else holds
/// it, or the token is no longer of `generation`, or the mailbox no longer active.
///
/// # Errors
///
/// What the database said.
pub async fn claim_refresh(
    connection: &mut PgConnection,
    id: CredentialId,
    generation: i64,
    now: DateTime<Utc>,
    lease_until: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let claimed = sqlx::query!(
        "UPDATE mailboxes SET refresh_lease_until = $4
         WHERE id = $1 AND token_generation = $2 AND status = 'active'
           AND (refresh_lease_until IS NULL OR refresh_lease_until < $3)",
        id.0,
        generation,
        now,
        lease_until,
    )
    .execute(connection)
    .await?;
    Ok(claimed.rows_affected() == 1)
}

/// Gives the right to refresh back without a new token.
///
/// # Errors
///
/// What the database said.
pub async fn release_refresh(
    connection: &mut PgConnection,
    id: CredentialId,
    generation: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE mailboxes SET refresh_lease_until = NULL WHERE id = $1 AND token_generation = $2",
        id.0,
        generation,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores new tokens of an active mailbox, gives the right to refresh back, and answers the new
/// generation; `refresh_due_at` is when the next ones are got though nobody asks. Without `refresh_token_sealed` the old one stays. With `refreshed`, the generation that
/// was refreshed, only while that is still the stored one: `None` when the mailbox was connected anew
/// or ended, or somebody else's refresh came first.
///
/// # Errors
///
/// What the database said.
pub async fn store_tokens(
    connection: &mut PgConnection,
    id: CredentialId,
    refreshed: Option<i64>,
    access_token_sealed: &[u8],
    refresh_token_sealed: Option<&[u8]>,
    expires_at: DateTime<Utc>,
    refresh_due_at: DateTime<Utc>,
) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar!(
        "UPDATE mailboxes
         SET access_token_sealed = $3, refresh_token_sealed = coalesce($4, refresh_token_sealed),
             access_token_expires_at = $5, token_generation = token_generation + 1,
             refresh_lease_until = NULL, refresh_due_at = $6
         WHERE id = $1 AND status = 'active' AND ($2::bigint IS NULL OR token_generation = $2)
         RETURNING token_generation",
        id.0,
        refreshed,
        access_token_sealed,
        refresh_token_sealed,
        expires_at,
        refresh_due_at,
    )
    .fetch_optional(connection)
    .await
}

/// Lets nothing go out from a mailbox until then.
///
/// # Errors
///
/// What the database said.
pub async fn park(
    connection: &mut PgConnection,
    id: CredentialId,
    until: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE mailboxes SET parked_until = $2 WHERE id = $1",
        id.0,
        until,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// A mailbox as its app's subscriber sees it.
#[derive(Debug, Clone)]
pub struct ConnectedUser {
    /// The mailbox.
    pub id: CredentialId,
    /// Its end user.
    pub user_key: UserKey,
    /// The app's own name for the user.
    pub user_id: Option<String>,
    /// Its address.
    pub email: String,
    /// The provider.
    pub plugin: Plugin,
    /// `active` or `disconnected`.
    pub status: String,
    /// What its user has granted.
    pub scopes: Vec<String>,
    /// When it was connected, the last time.
    pub connected_at: DateTime<Utc>,
}

/// All mailboxes of an app, those connected first in front.
///
/// # Errors
///
/// What the database said.
pub async fn list(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Vec<ConnectedUser>, sqlx::Error> {
    let rows = sqlx::query!(
        "SELECT mailboxes.id, user_key, user_id, email, plugin, status, scopes, connected_at
         FROM mailboxes JOIN end_users USING (user_key)
         WHERE mailboxes.app_id = $1
         ORDER BY connected_at, mailboxes.id",
        app.0,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(ConnectedUser {
                id: CredentialId(row.id),
                user_key: UserKey(row.user_key),
                user_id: row.user_id,
                email: row.email,
                plugin: row
                    .plugin
                    .parse()
                    .map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
                status: row.status,
                scopes: row.scopes,
                connected_at: row.connected_at,
            })
        })
        .collect()
}

/// Whether mailboxes of users with a name of the app's own are connected.
///
/// # Errors
///
/// What the database said.
pub async fn has_named_users(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT 1 FROM mailboxes JOIN end_users USING (user_key)
               WHERE mailboxes.app_id = $1 AND status = 'active' AND user_id IS NOT NULL
           ) AS "exists!""#,
        app.0,
    )
    .fetch_one(connection)
    .await
}

/// Whether a user of the app has several mailboxes of one plugin.
///
/// # Errors
///
/// What the database said.
pub async fn has_several_links(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT 1 FROM mailboxes WHERE app_id = $1 AND status = 'active'
               GROUP BY user_key, plugin HAVING count(*) > 1
           ) AS "exists!""#,
        app.0,
    )
    .fetch_one(connection)
    .await
}
