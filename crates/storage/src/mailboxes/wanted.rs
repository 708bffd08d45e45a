//! Chooses the mailbox that a message is sent from.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::Mailbox;
use mailgate_types::ids::{AppId, AppVersion, CredentialId};
use mailgate_types::plugin::Plugin;

/// Selects one of an app's mailboxes. Among several, the one whose own address is requested comes first, then one
/// connected through a connect session, then the one connected first. In a multiuser app no user can send as an alias
/// that is another user's own address, connected or not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// The app.
    pub app: AppId,
    /// The end user: the user's key, or else the app's own name for the user. A name that equals another user's key
    /// finds no user.
    pub user: Option<String>,
    /// The kind of provider.
    pub plugin: Option<Plugin>,
    /// The address in lower case: a mailbox's own, or a further one that it may send as.
    pub address_lookup: Option<String>,
    /// The mailboxes that the send key is restricted to; `None`: all of the app's.
    pub only: Option<Arc<[CredentialId]>>,
}

impl Wanted {
    /// The mailboxes as one string, since arrays of arrays are rectangular in Postgres.
    fn only_text(&self) -> Option<String> {
        let ids: Vec<String> = self
            .only
            .as_ref()?
            .iter()
            .map(|id| id.0.to_string())
            .collect();
        Some(ids.join(","))
    }
}

/// The mailbox that a message is sent from.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The mailbox.
    pub mailbox: Mailbox,
    /// The sender's address as the provider spells it: the requested one, or else the mailbox's own.
    pub address: String,
    /// The version of the app's data that the choice is based on.
    pub version: Option<AppVersion>,
}

/// The active mailbox for each of these, in order.
pub async fn find_wanted(
    connection: &mut PgConnection,
    wanted: &[Wanted],
) -> Result<Vec<Option<Chosen>>, sqlx::Error> {
    let mut found: Vec<Option<Chosen>> = vec![None; wanted.len()];
    let (by_address, others): (Vec<usize>, Vec<usize>) =
        (0..wanted.len()).partition(|place| wanted[*place].address_lookup.is_some());
    let (of_users, of_apps): (Vec<usize>, Vec<usize>) = others
        .into_iter()
        .partition(|place| wanted[*place].user.is_some());
    // Each kind has an index of its own, which a single statement could not use.
    if !by_address.is_empty() {
        let rows = find_by_addresses(connection, &of(wanted, &by_address)).await?;
        put(rows, &by_address, &mut found);
    }
    if !of_users.is_empty() {
        let rows = find_of_users(connection, &of(wanted, &of_users)).await?;
        put(rows, &of_users, &mut found);
    }
    if !of_apps.is_empty() {
        let rows = find_of_apps(connection, &of(wanted, &of_apps)).await?;
        put(rows, &of_apps, &mut found);
    }
    Ok(found)
}

fn of<'a>(wanted: &'a [Wanted], places: &[usize]) -> Vec<&'a Wanted> {
    places.iter().map(|place| &wanted[*place]).collect()
}

fn put(rows: Vec<FoundRow>, places: &[usize], found: &mut [Option<Chosen>]) {
    for row in rows {
        let number = usize::try_from(row.place - 1).ok();
        let place = number.and_then(|number| found.get_mut(*places.get(number)?));
        if let Some(place) = place {
            *place = Some(Chosen {
                mailbox: mailbox_of!(row),
                address: row.address,
                version: row.version.map(AppVersion),
            });
        }
    }
}

/// A row, and the 1-based position of the query it answers.
struct FoundRow {
    place: i64,
    id: Uuid,
    user_key: Uuid,
    plugin: Plugin,
    email: String,
    scopes: Vec<String>,
    refresh_token_sealed: Option<Vec<u8>>,
    access_token_sealed: Option<Vec<u8>>,
    access_token_expires_at: Option<DateTime<Utc>>,
    token_generation: i64,
    parked_until: Option<DateTime<Utc>>,
    reading_refused_at: Option<DateTime<Utc>>,
    address: String,
    version: Option<Uuid>,
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
    let only: Vec<Option<String>> = wanted.iter().map(|it| it.only_text()).collect();
    sqlx::query_as!(
        FoundRow,
        r#"SELECT asked.place AS "place!", mailbox.id, mailbox.user_key, mailbox.plugin AS "plugin: Plugin",
                mailbox.email, mailbox.scopes, mailbox.refresh_token_sealed, mailbox.access_token_sealed,
                mailbox.access_token_expires_at, mailbox.token_generation, mailbox.parked_until,
                mailbox.reading_refused_at, mailbox.email AS address,
                (SELECT version FROM app_versions WHERE app_id = asked.app_id) AS version
         FROM unnest($1::uuid[], $2::text[], $3::text[])
              WITH ORDINALITY AS asked (app_id, plugin, only_ids, place)
         CROSS JOIN LATERAL (
             SELECT * FROM mailboxes
             WHERE app_id = asked.app_id AND status = 'active'
               AND (asked.plugin IS NULL OR plugin = asked.plugin)
               AND (only_ids IS NULL OR id = ANY (string_to_array(only_ids, ',')::uuid[]))
             ORDER BY by_session DESC, connected_at, id
             LIMIT 1
         ) AS mailbox"#,
        &apps,
        &plugins as &[Option<&str>],
        &only as &[Option<String>],
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
    let only: Vec<Option<String>> = wanted.iter().map(|it| it.only_text()).collect();
    sqlx::query_as!(
        FoundRow,
        r#"SELECT asked.place AS "place!", mailbox.id AS "id!", mailbox.user_key AS "user_key!",
                mailbox.plugin AS "plugin!: Plugin", mailbox.email AS "email!", mailbox.scopes AS "scopes!",
                mailbox.refresh_token_sealed, mailbox.access_token_sealed,
                mailbox.access_token_expires_at, mailbox.token_generation AS "token_generation!",
                mailbox.parked_until, mailbox.reading_refused_at, mailbox.address AS "address!",
                (SELECT version FROM app_versions WHERE app_id = asked.app_id) AS version
         FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::text[])
              WITH ORDINALITY AS asked (app_id, email_lookup, plugin, user_id, user_key, only_ids,
                                        place)
         CROSS JOIN LATERAL (
             SELECT * FROM (
                 SELECT mailboxes.*, email AS address, true AS is_own
                 FROM mailboxes
                 WHERE app_id = asked.app_id AND status = 'active'
                   AND email_lookup = asked.email_lookup
                 UNION ALL
                 SELECT mailboxes.*, mailbox_addresses.address, false
                 FROM mailbox_addresses JOIN mailboxes ON mailboxes.id = credential_id
                 WHERE mailbox_addresses.app_id = asked.app_id
                   AND address_lookup = asked.email_lookup AND status = 'active'
                   AND mailboxes.app_id = asked.app_id
                   AND NOT EXISTS (
                     SELECT 1 FROM mailboxes AS own JOIN apps ON apps.id = own.app_id
                     WHERE own.app_id = asked.app_id AND own.email_lookup = asked.email_lookup
                       AND own.user_key <> mailboxes.user_key AND apps.multiuser
                   )
             ) AS candidates
             WHERE (asked.plugin IS NULL OR plugin = asked.plugin)
               AND (only_ids IS NULL OR id = ANY (string_to_array(only_ids, ',')::uuid[]))
               AND (asked.user_id IS NULL OR user_key IN (
                 SELECT user_key FROM end_users
                 WHERE app_id = asked.app_id AND user_id = asked.user_id
                   AND NOT EXISTS (SELECT 1 FROM end_users
                                   WHERE app_id = asked.app_id AND user_key = asked.user_key)
                 UNION
                 SELECT user_key FROM end_users
                 WHERE app_id = asked.app_id AND user_key = asked.user_key
               ))
             ORDER BY is_own DESC, by_session DESC, connected_at, id
             LIMIT 1
         ) AS mailbox"#,
        &apps,
        &addresses as &[Option<&str>],
        &plugins as &[Option<&str>],
        &users as &[Option<&str>],
        &user_keys as &[Option<Uuid>],
        &only as &[Option<String>],
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
    let only: Vec<Option<String>> = wanted.iter().map(|it| it.only_text()).collect();
    sqlx::query_as!(
        FoundRow,
        r#"SELECT asked.place AS "place!", mailbox.id, mailbox.user_key, mailbox.plugin AS "plugin: Plugin",
                mailbox.email, mailbox.scopes, mailbox.refresh_token_sealed, mailbox.access_token_sealed,
                mailbox.access_token_expires_at, mailbox.token_generation, mailbox.parked_until,
                mailbox.reading_refused_at, mailbox.email AS address,
                (SELECT version FROM app_versions WHERE app_id = asked.app_id) AS version
         FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::text[])
              WITH ORDINALITY AS asked (app_id, user_id, user_key, plugin, only_ids, place)
         CROSS JOIN LATERAL (
             SELECT mailboxes.* FROM (
                 SELECT user_key FROM end_users
                 WHERE app_id = asked.app_id AND user_id = asked.user_id
                   AND NOT EXISTS (SELECT 1 FROM end_users
                                   WHERE app_id = asked.app_id AND user_key = asked.user_key)
                 UNION
                 SELECT user_key FROM end_users
                 WHERE app_id = asked.app_id AND user_key = asked.user_key
             ) AS users JOIN mailboxes USING (user_key)
             WHERE status = 'active' AND (asked.plugin IS NULL OR plugin = asked.plugin)
               AND (only_ids IS NULL
                    OR mailboxes.id = ANY (string_to_array(only_ids, ',')::uuid[]))
             ORDER BY by_session DESC, connected_at, id
             LIMIT 1
         ) AS mailbox"#,
        &apps,
        &users as &[Option<&str>],
        &user_keys as &[Option<Uuid>],
        &plugins as &[Option<&str>],
        &only as &[Option<String>],
    )
    .fetch_all(connection)
    .await
}
