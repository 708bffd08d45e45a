//! The table `mailbox_addresses`: the addresses that a mailbox may send as besides its own, and when its provider is
//! next queried for them.
//!
//! The trigger `mailbox_addresses_change` (migration 0020), deferred to the commit, raises the version of the mailbox's
//! app.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::Mailbox;
use super::due::FAIR_AMONG;
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::{AppId, CredentialId};
use mailgate_types::plugin::Plugin;

/// A provider's answer about a mailbox's addresses.
#[derive(Debug)]
pub struct AddressReport<'a> {
    /// The addresses besides the mailbox's own; `None` keeps the known ones.
    pub addresses: Option<&'a [EmailAddress]>,
    /// The time of the query, from [`claim_due`]: nothing is written if there was a later query.
    pub asked_at: DateTime<Utc>,
    /// When to query again.
    pub due_at: DateTime<Utc>,
}

/// Stores a provider's answer about an active mailbox's addresses, in its order; `false` if the mailbox no longer
/// exists, or there was a later query.
pub async fn store(
    connection: &mut PgConnection,
    id: CredentialId,
    report: &AddressReport<'_>,
) -> Result<bool, sqlx::Error> {
    let addresses = report.addresses.unwrap_or_default();
    let spelled: Vec<&str> = addresses.iter().map(EmailAddress::as_str).collect();
    let lookups: Vec<String> = addresses.iter().map(EmailAddress::lookup_key).collect();
    let stored = sqlx::query!(
        "WITH mailbox AS (
             UPDATE mailboxes SET addresses_due_at = $6
             WHERE id = $1 AND status = 'active' AND addresses_asked_at = $5
             RETURNING id, app_id
         ), gone AS (
             DELETE FROM mailbox_addresses USING mailbox
             WHERE $4 AND credential_id = mailbox.id AND address_lookup <> ALL($3)
         ), kept AS (
             INSERT INTO mailbox_addresses (credential_id, app_id, address, address_lookup, place)
             SELECT mailbox.id, mailbox.app_id, told.address, told.address_lookup, told.place
             FROM mailbox CROSS JOIN unnest($2::text[], $3::text[])
                  WITH ORDINALITY AS told (address, address_lookup, place)
             ON CONFLICT (credential_id, address_lookup) DO UPDATE
             SET address = EXCLUDED.address, place = EXCLUDED.place
             WHERE (mailbox_addresses.address, mailbox_addresses.place)
                   IS DISTINCT FROM (EXCLUDED.address, EXCLUDED.place)
         )
         SELECT id FROM mailbox",
        id.0,
        &spelled as &[&str],
        &lookups,
        report.addresses.is_some(),
        report.asked_at,
        report.due_at,
    )
    .fetch_optional(connection)
    .await?;
    Ok(stored.is_some())
}

/// A mailbox whose addresses are to be queried.
#[derive(Debug, Clone)]
pub struct AddressLook {
    /// The mailbox.
    pub mailbox: Mailbox,
    /// The time of the query, as stored in the database.
    pub asked_at: DateTime<Utc>,
}

/// Claims up to `limit` mailboxes whose addresses are due, until `lease_until`; subscribers take turns. None of a deleted
/// subscriber.
pub async fn claim_due(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    lease_until: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<AddressLook>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"WITH due AS MATERIALIZED (
             (SELECT id, app_id, addresses_due_at AS due_at FROM mailboxes
              WHERE status = 'active' AND addresses_due_at <= $1
              ORDER BY addresses_due_at LIMIT $4)
             UNION
             (SELECT id, app_id, addresses_due_at FROM mailboxes
              WHERE status = 'active' AND addresses_due_at <= $1
              ORDER BY addresses_due_at DESC LIMIT $4)
         ), turns AS MATERIALIZED (
             SELECT due.id, due_at,
                    row_number() OVER (PARTITION BY subscriber_id ORDER BY due_at) AS turn
             FROM due
                  JOIN apps ON apps.id = due.app_id
                  JOIN subscribers ON subscribers.id = subscriber_id
             WHERE deletion_due_at IS NULL
         )
         UPDATE mailboxes SET addresses_due_at = $2, addresses_asked_at = $1
         WHERE id IN (
             SELECT mailboxes.id FROM turns JOIN mailboxes ON mailboxes.id = turns.id
             WHERE status = 'active' AND addresses_due_at <= $1
             ORDER BY turn, due_at
             LIMIT $3
             FOR UPDATE OF mailboxes SKIP LOCKED
         )
         RETURNING id, user_key, plugin AS "plugin: Plugin", email, scopes, refresh_token_sealed, access_token_sealed,
                   access_token_expires_at, token_generation, parked_until, reading_refused_at,
                   addresses_asked_at AS "asked_at!""#,
        now,
        lease_until,
        limit,
        FAIR_AMONG,
    )
    .fetch_all(connection)
    .await?;
    let looks = rows.into_iter().map(|row| AddressLook {
        mailbox: mailbox_of!(row),
        asked_at: row.asked_at,
    });
    Ok(looks.collect())
}

/// Makes the query of a mailbox's addresses due immediately, unless there was one after `asked_since`.
pub async fn bring_forward(
    connection: &mut PgConnection,
    id: CredentialId,
    now: DateTime<Utc>,
    asked_since: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE mailboxes SET addresses_due_at = $2
         WHERE id = $1 AND status = 'active' AND addresses_due_at > $2
           AND (addresses_asked_at IS NULL OR addresses_asked_at < $3)",
        id.0,
        now,
        asked_since,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether a mailbox may send as this address (in lower case) besides its own.
pub async fn has(
    connection: &mut PgConnection,
    id: CredentialId,
    address_lookup: &str,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT 1 FROM mailbox_addresses WHERE credential_id = $1 AND address_lookup = $2
           ) AS "exists!""#,
        id.0,
        address_lookup,
    )
    .fetch_one(connection)
    .await
}

/// Up to `limit` addresses that an app's active mailboxes may send as, in order of connection: of this end user
/// (the app's own name for the user, or the user's key) and plugin, if given.
pub async fn list(
    connection: &mut PgConnection,
    app: AppId,
    user: Option<&str>,
    plugin: Option<Plugin>,
    limit: i64,
) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT told.address AS "address!"
           FROM (
               SELECT mailboxes.* FROM mailboxes JOIN end_users USING (user_key)
               WHERE mailboxes.app_id = $1 AND status = 'active'
                 AND ($2::text IS NULL OR user_id = $2 OR user_key::text = $2)
                 AND ($3::text IS NULL OR plugin = $3)
               ORDER BY by_session DESC, connected_at, mailboxes.id
               LIMIT $4
           ) AS mailbox
           CROSS JOIN LATERAL (
               SELECT mailbox.email AS address, 0 AS place
               UNION ALL
               SELECT address, place FROM mailbox_addresses WHERE credential_id = mailbox.id
           ) AS told
           ORDER BY by_session DESC, connected_at, mailbox.id, told.place
           LIMIT $4"#,
        app.0,
        user,
        plugin.map(Plugin::as_str),
        limit,
    )
    .fetch_all(connection)
    .await
}
