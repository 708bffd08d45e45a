//! Mailboxes with work due: a check for replies, or a refresh of an unused token. The claim of a check is identified by
//! the `replies_due_at` that it sets: a process that finds another value there has been overtaken, by another check or
//! a new connection, and changes nothing.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::Mailbox;
use mailgate_types::ids::{AppId, CredentialId, SubscriberId};
use mailgate_types::plugin::Plugin;

/// The candidates among which a claim lets subscribers take turns: this many that have been due the longest, and this
/// many that have just become due. However many of one subscriber are due, others' are candidates as soon as they
/// become due.
pub(super) const FAIR_AMONG: i64 = 500;

/// A mailbox to be checked for replies.
#[derive(Debug, Clone)]
pub struct ReplyLook {
    /// The app that it belongs to.
    pub app: AppId,
    /// The mailbox.
    pub mailbox: Mailbox,
    /// Further addresses that it sends as, in lower case.
    pub aliases: Vec<String>,
    /// When a message was last sent from it, to within about an hour.
    pub last_sent_at: Option<DateTime<Utc>>,
    /// Where the check begins.
    pub cursor: Option<String>,
    /// The app was last notified that it isn't read.
    pub is_degraded: bool,
    /// Identifies the claim.
    pub lease_until: DateTime<Utc>,
}

/// Records that messages were sent from these mailboxes, so that they are checked for replies. Returns those whose rows
/// are locked at the moment, for which nothing is recorded: waiting here would hold up all others.
pub async fn note_sent(
    connection: &mut PgConnection,
    ids: &[CredentialId],
    now: DateTime<Utc>,
) -> Result<Vec<CredentialId>, sqlx::Error> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let locked = sqlx::query_scalar!(
        "WITH free AS MATERIALIZED (
             SELECT id FROM mailboxes WHERE id = ANY($1) AND status = 'active'
             FOR UPDATE SKIP LOCKED
         ), noted AS (
             UPDATE mailboxes
             SET last_sent_at = $2, replies_due_at = coalesce(replies_due_at, $2)
             FROM free WHERE mailboxes.id = free.id
         )
         SELECT id FROM mailboxes
         WHERE id = ANY($1) AND status = 'active' AND id NOT IN (SELECT id FROM free)",
        &ids,
        now,
    )
    .fetch_all(connection)
    .await?;
    Ok(locked.into_iter().map(CredentialId).collect())
}

/// Claims up to `limit` mailboxes whose check for replies is due, until `lease_until`; subscribers take turns. None of a
/// deleted subscriber.
pub async fn claim_reply_looks(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    lease_until: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<ReplyLook>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"WITH due AS MATERIALIZED (
             (SELECT id, app_id, replies_due_at AS due_at FROM mailboxes
              WHERE status = 'active' AND replies_due_at <= $1
              ORDER BY replies_due_at LIMIT $4)
             UNION
             (SELECT id, app_id, replies_due_at FROM mailboxes
              WHERE status = 'active' AND replies_due_at <= $1
              ORDER BY replies_due_at DESC LIMIT $4)
         ), turns AS MATERIALIZED (
             SELECT due.id, due_at,
                    row_number() OVER (PARTITION BY subscriber_id ORDER BY due_at) AS turn
             FROM due
                  JOIN apps ON apps.id = due.app_id
                  JOIN subscribers ON subscribers.id = subscriber_id
             WHERE deletion_due_at IS NULL
         )
         UPDATE mailboxes SET replies_due_at = $2
         WHERE id IN (
             SELECT mailboxes.id FROM turns JOIN mailboxes ON mailboxes.id = turns.id
             WHERE status = 'active' AND replies_due_at <= $1
             ORDER BY turn, due_at
             LIMIT $3
             FOR UPDATE OF mailboxes SKIP LOCKED
         )
         RETURNING id, app_id, user_key, plugin AS "plugin: Plugin", email, scopes, refresh_token_sealed,
                   access_token_sealed, access_token_expires_at, token_generation, parked_until,
                   last_sent_at, replies_cursor, reading_refused_at, is_degraded,
                   replies_due_at AS "lease_until!",
                   ARRAY(SELECT address_lookup FROM mailbox_addresses
                         WHERE credential_id = mailboxes.id) AS "aliases!""#,
        now,
        lease_until,
        limit,
        FAIR_AMONG,
    )
    .fetch_all(connection)
    .await?;
    let looks = rows.into_iter().map(|row| ReplyLook {
        app: AppId(row.app_id),
        mailbox: mailbox_of!(row),
        aliases: row.aliases,
        last_sent_at: row.last_sent_at,
        cursor: row.replies_cursor,
        is_degraded: row.is_degraded,
        lease_until: row.lease_until,
    });
    Ok(looks.collect())
}

/// Stores where the next check for replies begins; `None` starts by time, as the first check does.
pub async fn store_reply_cursor(
    connection: &mut PgConnection,
    look: &ReplyLook,
    cursor: Option<&str>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE mailboxes SET replies_cursor = $3 WHERE id = $1 AND replies_due_at = $2",
        look.mailbox.id.0,
        look.lease_until,
        cursor,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records whether the mailbox is read, or the text of the provider's refusal.
pub async fn note_reading(
    connection: &mut PgConnection,
    look: &ReplyLook,
    refused: Option<&str>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE mailboxes
         SET reading_refused = $3,
             reading_refused_at = CASE WHEN $3::text IS NOT NULL THEN coalesce(reading_refused_at, $4) END
         WHERE id = $1 AND replies_due_at = $2 AND status = 'active'",
        look.mailbox.id.0,
        look.lease_until,
        refused,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records that the app is notified whether the mailbox is read; `false` if the last notification was the same, or
/// there was any since `told_before`.
pub async fn tell_reading(
    connection: &mut PgConnection,
    look: &ReplyLook,
    is_degraded: bool,
    now: DateTime<Utc>,
    told_before: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let told = sqlx::query!(
        "UPDATE mailboxes SET is_degraded = $3, reading_told_at = $4
         WHERE id = $1 AND replies_due_at = $2 AND status = 'active' AND is_degraded <> $3
               AND (reading_told_at IS NULL OR reading_told_at NOT BETWEEN $5 AND $4)",
        look.mailbox.id.0,
        look.lease_until,
        is_degraded,
        now,
        told_before,
    );
    Ok(told.execute(connection).await?.rows_affected() > 0)
}

/// Schedules the next check for replies; `None` waits for the next message, unless one was sent after the claim: then
/// the lease stays, and makes the mailbox due again.
pub async fn put_off_reply_look(
    connection: &mut PgConnection,
    look: &ReplyLook,
    due: Option<DateTime<Utc>>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE mailboxes SET replies_due_at = $3::timestamptz
         WHERE id = $1 AND replies_due_at = $2
               AND ($3::timestamptz IS NOT NULL OR last_sent_at IS NOT DISTINCT FROM $4)",
        look.mailbox.id.0,
        look.lease_until,
        due,
        look.last_sent_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Claims up to `limit` mailboxes whose token has gone unused for so long that it must be refreshed, and postpones
/// their next refresh to `again_at`, in case this one fails; subscribers take turns. None of a deleted subscriber.
pub async fn claim_idle_refreshes(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    again_at: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Mailbox>, sqlx::Error> {
    sqlx::query_as!(
        Mailbox,
        r#"WITH due AS MATERIALIZED (
               (SELECT id, app_id, refresh_due_at AS due_at FROM mailboxes
                WHERE status = 'active' AND refresh_due_at <= $1
                ORDER BY refresh_due_at LIMIT $4)
               UNION
               (SELECT id, app_id, refresh_due_at FROM mailboxes
                WHERE status = 'active' AND refresh_due_at <= $1
                ORDER BY refresh_due_at DESC LIMIT $4)
           ), turns AS MATERIALIZED (
               SELECT due.id, due_at,
                      row_number() OVER (PARTITION BY subscriber_id ORDER BY due_at) AS turn
               FROM due
                    JOIN apps ON apps.id = due.app_id
                    JOIN subscribers ON subscribers.id = subscriber_id
               WHERE deletion_due_at IS NULL
           )
           UPDATE mailboxes SET refresh_due_at = $2
           WHERE id IN (
               SELECT mailboxes.id FROM turns JOIN mailboxes ON mailboxes.id = turns.id
               WHERE status = 'active' AND refresh_due_at <= $1
               ORDER BY turn, due_at
               LIMIT $3
               FOR UPDATE OF mailboxes SKIP LOCKED
           )
           RETURNING id, user_key, plugin AS "plugin: Plugin", email, scopes, refresh_token_sealed, access_token_sealed,
                     access_token_expires_at, token_generation, parked_until, reading_refused_at"#,
        now,
        again_at,
        limit,
        FAIR_AMONG,
    )
    .fetch_all(connection)
    .await
}

/// Postpones all work due for a subscriber's mailboxes by this many hours, or with a negative number brings it forward
/// again, so that deleted subscribers don't hold up others.
pub async fn put_off(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    hours: i32,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE mailboxes
         SET replies_due_at = replies_due_at + make_interval(hours => $2),
             refresh_due_at = refresh_due_at + make_interval(hours => $2),
             addresses_due_at = addresses_due_at + make_interval(hours => $2)
         WHERE app_id IN (SELECT id FROM apps WHERE subscriber_id = $1) AND status = 'active'",
        subscriber.0,
        hours,
    )
    .execute(connection)
    .await?;
    Ok(())
}
