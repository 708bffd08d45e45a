//! A subscriber's resources and activity, for the operator.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::{SubscriberId, moment_of};

/// A subscriber's resources and activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// Apps.
    pub apps: i64,
    /// Connected mailboxes.
    pub mailboxes: i64,
    /// Mailboxes that count towards the limit, including disconnected ones that are still stored.
    pub remembered_mailboxes: i64,
    /// End users of all apps, including those without a connected mailbox.
    pub end_users: i64,
    /// The last sign-in to the portal, as far back as the audit trail is kept.
    pub signed_in_at: Option<DateTime<Utc>>,
    /// Messages of the current hour and the 23 before it.
    pub day: Counted,
    /// Messages of the current day (UTC) and the 29 before it.
    pub month: Counted,
}

/// Messages by their outcome, those of deleted apps left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Sent.
    pub sent: i64,
    /// Failed permanently.
    pub failed: i64,
}

/// A subscriber's resources and activity at `now`.
pub async fn overview(
    connection: &mut PgConnection,
    id: SubscriberId,
    now: DateTime<Utc>,
) -> Result<Overview, sqlx::Error> {
    let held = sqlx::query!(
        r#"WITH own AS MATERIALIZED (SELECT id FROM apps WHERE subscriber_id = $1)
           SELECT (SELECT count(*) FROM own) AS "apps!",
                  count(*) FILTER (WHERE status = 'active') AS "mailboxes!",
                  count(*) AS "remembered_mailboxes!",
                  (SELECT count(*) FROM end_users
                   WHERE app_id IN (SELECT id FROM own)) AS "end_users!",
                  (SELECT id FROM audit_entries
                   WHERE subscriber_id = $1 AND action = 'portal.signed_in'
                   ORDER BY id DESC LIMIT 1) AS "sign_in?"
           FROM mailboxes WHERE app_id IN (SELECT id FROM own)"#,
        id.0,
    )
    .fetch_one(&mut *connection)
    .await?;
    let day = counted(&mut *connection, id, "hour", now - TimeDelta::hours(24));
    let day = day.await?;
    let month = counted(connection, id, "day", now - TimeDelta::days(30)).await?;
    Ok(Overview {
        apps: held.apps,
        mailboxes: held.mailboxes,
        remembered_mailboxes: held.remembered_mailboxes,
        end_users: held.end_users,
        signed_in_at: held.sign_in.map(moment_of),
        day,
        month,
    })
}

/// The messages in units that begin after `since`.
async fn counted(
    connection: &mut PgConnection,
    id: SubscriberId,
    unit: &str,
    since: DateTime<Utc>,
) -> Result<Counted, sqlx::Error> {
    sqlx::query_as!(
        Counted,
        r#"SELECT coalesce(sum(plugin_a_sent + plugin_b_sent), 0)::bigint AS "sent!",
                  coalesce(sum(plugin_a_failed_perm + plugin_b_failed_perm), 0)::bigint AS "failed!"
           FROM email_counters WHERE owner_id = $1 AND unit = $2 AND start > $3"#,
        id.0,
        unit,
        since,
    )
    .fetch_one(connection)
    .await
}
