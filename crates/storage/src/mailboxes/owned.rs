//! A subscriber's mailboxes over all apps, by app and address, with their sending status.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::Disconnected;
use mailgate_types::ids::{AppId, CredentialId, LogId, SubscriberId, lowest_uuid_at};
use mailgate_types::log_status::LogStatus;
use mailgate_types::plugin::Plugin;

/// A failed message of the mailbox.
#[derive(Debug, Clone)]
pub struct FailedMessage {
    /// The provider's text, or the gateway's.
    pub text: String,
    /// The message's log row.
    pub log: LogId,
    /// Whether it is tried again.
    pub status: LogStatus,
}

/// A mailbox.
#[derive(Debug, Clone)]
pub struct OwnedMailbox {
    /// Its id.
    pub id: CredentialId,
    /// The app that it is connected to.
    pub app: AppId,
    /// The app's slug.
    pub slug: String,
    /// The app's name.
    pub app_name: String,
    /// The app's `pk_…`.
    pub pushable_key: String,
    /// The app's own name for the user.
    pub user_id: Option<String>,
    /// Its address.
    pub email: String,
    /// Further addresses that it may send as.
    pub aliases: Vec<String>,
    /// The provider.
    pub plugin: Plugin,
    /// When and why it was disconnected; `None` while it is connected.
    pub disconnected: Option<Disconnected>,
    /// The OAuth scopes that its user has granted.
    pub scopes: Vec<String>,
    /// When it was last connected.
    pub connected_at: DateTime<Utc>,
    /// When it last sent. Before the requested time, it is known to within an hour, and only for mailboxes that are
    /// checked for replies.
    pub last_sent_at: Option<DateTime<Utc>>,
    /// It has reached the provider's limit, until then.
    pub parked_until: Option<DateTime<Utc>>,
    /// Messages in the current 24 hours.
    pub sent_today: i64,
    /// The provider refuses to let it be read.
    pub reading_refused: Option<String>,
    /// The failures among its last messages, the newest first.
    pub failures: Vec<FailedMessage>,
}

/// A mailbox to choose.
#[derive(Debug, Clone)]
pub struct NamedMailbox {
    /// Its id.
    pub id: CredentialId,
    /// Its address.
    pub email: String,
    /// The app that it is connected to.
    pub app_name: String,
}

/// The names of these mailboxes, in the order of their addresses.
pub async fn names(
    connection: &mut PgConnection,
    ids: &[CredentialId],
) -> Result<Vec<NamedMailbox>, sqlx::Error> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    sqlx::query_as!(
        NamedMailbox,
        "SELECT mailboxes.id, email, name AS app_name FROM mailboxes JOIN apps ON apps.id = app_id
         WHERE mailboxes.id = ANY($1) ORDER BY email_lookup, name, mailboxes.id",
        &ids,
    )
    .fetch_all(connection)
    .await
}

/// The subscriber's mailbox with this address, or that may send as it: a connected one if there is one, of the app with
/// this slug or UUID if given.
pub async fn by_address(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    app: Option<&str>,
    lookup: &str,
) -> Result<Option<CredentialId>, sqlx::Error> {
    let found = sqlx::query_scalar!(
        r#"SELECT found.id AS "id!"
           FROM (SELECT id FROM apps
                 WHERE subscriber_id = $1 AND ($2::text IS NULL OR slug = $2 OR id::text = $2)) AS app
                CROSS JOIN LATERAL (
                    (SELECT id, status, connected_at, 0 AS place FROM mailboxes
                     WHERE app_id = app.id AND email_lookup = $3
                     ORDER BY status <> 'active', connected_at DESC, id LIMIT 1)
                    UNION ALL
                    (SELECT mailboxes.id, status, connected_at, 1 FROM mailbox_addresses
                            JOIN mailboxes ON mailboxes.id = credential_id
                     WHERE mailbox_addresses.app_id = app.id AND address_lookup = $3
                     ORDER BY status <> 'active', connected_at DESC, mailboxes.id LIMIT 1)
                ) AS found
           ORDER BY place, found.status <> 'active', found.connected_at DESC, found.id LIMIT 1"#,
        subscriber.0,
        app,
        lookup,
    )
    .fetch_optional(connection)
    .await?;
    Ok(found.map(CredentialId))
}

/// Where a page begins: after this mailbox.
#[derive(Debug, Clone)]
pub struct Place {
    app: Uuid,
    email_lookup: String,
    id: Uuid,
}

/// The place of one of the subscriber's mailboxes in the list.
pub async fn place(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    id: CredentialId,
) -> Result<Option<Place>, sqlx::Error> {
    sqlx::query_as!(
        Place,
        "SELECT app_id AS app, email_lookup, mailboxes.id
         FROM mailboxes JOIN apps ON apps.id = app_id
         WHERE mailboxes.id = $1 AND subscriber_id = $2",
        id.0,
        subscriber.0,
    )
    .fetch_optional(connection)
    .await
}

/// Selects mailboxes; all without a condition.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'a> {
    /// Of the app with this slug.
    pub slug: Option<&'a str>,
    /// Connected or disconnected ones.
    pub connected: Option<bool>,
    /// Those with this in their address, in any case, or as their user's ID.
    pub words: Option<&'a str>,
}

/// The number of connected and of disconnected mailboxes, each at most `most`; the selection's own state is ignored.
pub async fn counts(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    selection: Selection<'_>,
    most: i64,
) -> Result<(i64, i64), sqlx::Error> {
    let counts = sqlx::query!(
        r#"SELECT (SELECT count(*) FROM (
                       SELECT FROM apps JOIN mailboxes ON app_id = apps.id
                       WHERE subscriber_id = $1 AND ($2::text IS NULL OR slug = $2) AND status = 'active'
                             AND ($3::text IS NULL OR position(lower($3) IN email_lookup) > 0
                                  OR user_key = ANY(ARRAY(SELECT user_key FROM end_users
                                                          WHERE app_id = apps.id AND user_id = $3)))
                       LIMIT $4) AS few) AS "connected!",
                  (SELECT count(*) FROM (
                       SELECT FROM apps JOIN mailboxes ON app_id = apps.id
                       WHERE subscriber_id = $1 AND ($2::text IS NULL OR slug = $2) AND status <> 'active'
                             AND ($3::text IS NULL OR position(lower($3) IN email_lookup) > 0
                                  OR user_key = ANY(ARRAY(SELECT user_key FROM end_users
                                                          WHERE app_id = apps.id AND user_id = $3)))
                       LIMIT $4) AS few) AS "disconnected!""#,
        subscriber.0,
        selection.slug,
        selection.words,
        most,
    )
    .fetch_one(connection)
    .await?;
    Ok((counts.connected, counts.disconnected))
}

/// A page of the subscriber's selected mailboxes after a position.
pub async fn page(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    selection: Selection<'_>,
    after: Option<&Place>,
    limit: i64,
) -> Result<Vec<CredentialId>, sqlx::Error> {
    let Selection {
        slug,
        connected,
        words,
    } = selection;
    let app = after.map(|place| place.app);
    let address = after.map(|place| place.email_lookup.as_str());
    let id = after.map(|place| place.id);
    let ids = if connected == Some(false) {
        // A separate statement, for an index that holds those only.
        sqlx::query_scalar!(
            "SELECT listed.id
             FROM (SELECT id, CASE WHEN id = $3 THEN $4::text ELSE '' END AS from_address,
                          CASE WHEN id = $3 THEN $5::uuid ELSE id END AS from_id
                   FROM apps
                   WHERE subscriber_id = $1 AND ($2::text IS NULL OR slug = $2)
                         AND ($3::uuid IS NULL OR id >= $3)) AS app
                  CROSS JOIN LATERAL (
                      SELECT id, email_lookup FROM mailboxes
                      WHERE app_id = app.id AND status <> 'active'
                            AND ($7::text IS NULL OR position(lower($7) IN email_lookup) > 0
                                 OR user_key = ANY(ARRAY(SELECT user_key FROM end_users
                                                         WHERE app_id = app.id AND user_id = $7)))
                            AND (email_lookup, id) > (app.from_address, app.from_id)
                      ORDER BY email_lookup, id LIMIT $6
                  ) AS listed
             ORDER BY app.id, email_lookup, listed.id LIMIT $6",
            subscriber.0,
            slug,
            app,
            address,
            id,
            limit,
            words,
        )
        .fetch_all(connection)
        .await?
    } else {
        sqlx::query_scalar!(
            "SELECT listed.id
             FROM (SELECT id, CASE WHEN id = $3 THEN $4::text ELSE '' END AS from_address,
                          CASE WHEN id = $3 THEN $5::uuid ELSE id END AS from_id
                   FROM apps
                   WHERE subscriber_id = $1 AND ($2::text IS NULL OR slug = $2)
                         AND ($3::uuid IS NULL OR id >= $3)) AS app
                  CROSS JOIN LATERAL (
                      SELECT id, email_lookup FROM mailboxes
                      WHERE app_id = app.id AND ($7::boolean IS NULL OR status = 'active')
                            AND ($8::text IS NULL OR position(lower($8) IN email_lookup) > 0
                                 OR user_key = ANY(ARRAY(SELECT user_key FROM end_users
                                                         WHERE app_id = app.id AND user_id = $8)))
                            AND (email_lookup, id) > (app.from_address, app.from_id)
                      ORDER BY email_lookup, id LIMIT $6
                  ) AS listed
             ORDER BY app.id, email_lookup, listed.id LIMIT $6",
            subscriber.0,
            slug,
            app,
            address,
            id,
            limit,
            connected,
            words,
        )
        .fetch_all(connection)
        .await?
    };
    Ok(ids.into_iter().map(CredentialId).collect())
}

/// These mailboxes, in this order; another subscriber's are left out. Failures are searched for back to `since`.
pub async fn details(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    ids: &[CredentialId],
    since: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Vec<OwnedMailbox>, sqlx::Error> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        r#"SELECT mailboxes.id, mailboxes.app_id, slug, name, pushable_key, user_id, email, plugin AS "plugin: Plugin",
                  status, disconnect_reason, disconnected_at, scopes, connected_at,
                  greatest(last_sent_at, (
                      SELECT max(sent_at)
                      FROM (SELECT sent_at FROM email_logs
                            WHERE credential_id = mailboxes.id AND id >= $3
                            ORDER BY id DESC LIMIT 20) AS recent
                  )) AS last_sent_at,
                  CASE WHEN parked_until > $4 THEN parked_until END AS parked_until, reading_refused,
                  ARRAY(SELECT address FROM mailbox_addresses
                        WHERE credential_id = mailboxes.id ORDER BY place) AS "aliases!",
                  CASE WHEN day_began + interval '24 hours' > $4 THEN day_messages
                       ELSE 0 END AS "sent_today!",
                  failed.ids AS "failed_ids!", failed.texts AS "failed_texts!",
                  failed.waiting AS "failed_waiting!"
           FROM unnest($1::uuid[]) WITH ORDINALITY AS wanted (id, position)
                JOIN mailboxes ON mailboxes.id = wanted.id
                JOIN apps ON apps.id = mailboxes.app_id
                JOIN end_users USING (user_key)
                LEFT JOIN mailbox_pace ON mailbox_pace.credential_id = mailboxes.id
                CROSS JOIN LATERAL (
                    SELECT coalesce(array_agg(id ORDER BY id DESC), '{}') AS ids,
                           coalesce(array_agg(error_message ORDER BY id DESC), '{}') AS texts,
                           coalesce(array_agg(status = 'failed_temp' ORDER BY id DESC), '{}') AS waiting
                    FROM (SELECT id, status, error_message FROM email_logs
                          WHERE credential_id = mailboxes.id AND id >= $3
                          ORDER BY id DESC LIMIT 20) AS recent
                    WHERE status <> 'sent' AND error_message IS NOT NULL
                ) AS failed
           WHERE subscriber_id = $2
           ORDER BY position"#,
        &ids,
        subscriber.0,
        lowest_uuid_at(since),
        now,
    )
    .fetch_all(connection)
    .await?;
    let mailboxes = rows.into_iter().map(|row| OwnedMailbox {
        id: CredentialId(row.id),
        app: AppId(row.app_id),
        slug: row.slug,
        app_name: row.name,
        pushable_key: row.pushable_key,
        user_id: row.user_id,
        email: row.email,
        aliases: row.aliases,
        plugin: row.plugin,
        disconnected: (row.status != "active").then(|| Disconnected {
            reason: row.disconnect_reason.unwrap_or_default(),
            at: row.disconnected_at.unwrap_or(row.connected_at),
        }),
        scopes: row.scopes,
        connected_at: row.connected_at,
        last_sent_at: row.last_sent_at,
        parked_until: row.parked_until,
        reading_refused: row.reading_refused,
        sent_today: row.sent_today,
        failures: failures(row.failed_ids, row.failed_texts, row.failed_waiting),
    });
    Ok(mailboxes.collect())
}

/// Of three columns that are equally long.
fn failures(ids: Vec<Uuid>, texts: Vec<String>, waiting: Vec<bool>) -> Vec<FailedMessage> {
    let columns = ids.into_iter().zip(texts).zip(waiting);
    columns
        .map(|((id, text), is_waiting)| FailedMessage {
            text,
            log: LogId(id),
            status: if is_waiting {
                LogStatus::FailedTemp
            } else {
                LogStatus::FailedPerm
            },
        })
        .collect()
}
