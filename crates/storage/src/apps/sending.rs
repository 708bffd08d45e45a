//! The app that a send key authenticates, and the key's restrictions.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::subscribers::limits;
use mailgate_types::ids::{AppId, AppVersion, CredentialId, SendKeyId, SubscriberId};
use mailgate_types::networks::Networks;
use mailgate_types::subscription::Subscription;

/// The app of a send key, as of the query.
#[derive(Debug, Clone)]
pub struct SendingApp {
    /// The app.
    pub id: AppId,
    /// Its subscriber, which never changes.
    pub subscriber: SubscriberId,
    /// The rate of each of the subscriber's keys, if the subscriber has its own.
    pub requests_per_second: Option<NonZeroU32>,
    /// The contract's `app_id`.
    pub slug: String,
    /// `pk_…`
    pub pushable_key: String,
    /// Whether a send must name its end user.
    pub multiuser: bool,
    /// Whether messages to recipients that have bounced are refused.
    pub suppress_bounced: bool,
    /// The subscription of the app's subscriber.
    pub subscription: Subscription,
    /// The version of the app's data, to detect later changes.
    pub version: Option<AppVersion>,
    /// The key's restrictions; `None` for the app's main key.
    pub restrictions: Option<Arc<Restrictions>>,
}

/// The restrictions of an additional send key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restrictions {
    /// The key.
    pub id: SendKeyId,
    /// When it stops working.
    pub expires_at: Option<DateTime<Utc>>,
    /// Where it may be used from.
    pub allowed: Networks,
    /// The mailboxes that it may send from; `None`: all of them.
    pub mailboxes: Option<Arc<[CredentialId]>>,
}

/// The apps of these send keys, each given by its possible lookup digests; none of a deleted subscriber.
pub async fn find_by_send_keys(
    connection: &mut PgConnection,
    keys: &[Vec<Vec<u8>>],
) -> Result<Vec<Option<SendingApp>>, sqlx::Error> {
    let digests: Vec<Vec<u8>> = keys.iter().flatten().cloned().collect();
    let rows = sqlx::query!(
        r#"SELECT digest AS "digest!", apps.id, subscriber_id, slug, pushable_key, multiuser, suppress_bounced,
                subscription_status, grace_ends_at, suspended_at, suspension_reason,
                max_requests_per_second,
                (SELECT version FROM app_versions WHERE app_id = apps.id) AS version,
                key_id, expires_at, allowed_addresses, credential_ids
         FROM (
             SELECT send_key_digest AS digest, id AS app_id, NULL::uuid AS key_id,
                    NULL::timestamptz AS expires_at, NULL::text[] AS allowed_addresses,
                    NULL::uuid[] AS credential_ids
             FROM apps WHERE send_key_digest = ANY($1)
             UNION ALL
             SELECT digest, app_id, id, expires_at, allowed_addresses, credential_ids
             FROM send_keys WHERE digest = ANY($1)
         ) AS found
         JOIN apps ON apps.id = found.app_id
         JOIN subscribers ON subscribers.id = subscriber_id
         WHERE deletion_due_at IS NULL"#,
        &digests,
    )
    .fetch_all(connection)
    .await?;
    let apps: HashMap<Vec<u8>, SendingApp> = rows
        .into_iter()
        .filter_map(|row| {
            let restrictions = row.key_id.map(|id| {
                let ids = row.credential_ids.unwrap_or_default();
                let mailboxes: Vec<_> = ids.into_iter().map(CredentialId).collect();
                Some(Arc::new(Restrictions {
                    id: SendKeyId(id),
                    expires_at: row.expires_at,
                    // A key with unreadable restrictions is invalid.
                    allowed: Networks::parse(&row.allowed_addresses.unwrap_or_default()).ok()?,
                    mailboxes: (!mailboxes.is_empty()).then(|| mailboxes.into()),
                }))
            });
            let restrictions = match restrictions {
                None => None,
                Some(restrictions) => Some(restrictions?),
            };
            let app = SendingApp {
                id: AppId(row.id),
                subscriber: SubscriberId(row.subscriber_id),
                requests_per_second: limits::rate(row.max_requests_per_second),
                slug: row.slug,
                pushable_key: row.pushable_key,
                multiuser: row.multiuser,
                suppress_bounced: row.suppress_bounced,
                subscription: Subscription {
                    status: (row.subscription_status).and_then(|status| status.parse().ok()),
                    grace_ends_at: row.grace_ends_at,
                    suspension: suspension(row.suspended_at, row.suspension_reason),
                },
                version: row.version.map(AppVersion),
                restrictions,
            };
            Some((row.digest, app))
        })
        .collect();
    Ok(keys
        .iter()
        .map(|digests| digests.iter().find_map(|digest| apps.get(digest)).cloned())
        .collect())
}

/// The reason for which the mail of a deleted subscriber waits.
const DELETED: &str = "it is deleted";

/// The subscription of an app: `None` if the app was deleted. A deleted subscriber's counts as suspended, so that
/// queued mail is still there after a restore.
pub async fn subscription(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<Subscription>, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT subscription_status, grace_ends_at, coalesce(suspended_at, deletion_due_at) AS suspended_at,
                CASE WHEN deletion_due_at IS NULL THEN suspension_reason ELSE $2 END AS suspension_reason
         FROM apps JOIN subscribers ON subscribers.id = subscriber_id
         WHERE apps.id = $1",
        app.0,
        DELETED,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| Subscription {
        status: (row.subscription_status).and_then(|status| status.parse().ok()),
        grace_ends_at: row.grace_ends_at,
        suspension: suspension(row.suspended_at, row.suspension_reason),
    }))
}

fn suspension(since: Option<DateTime<Utc>>, reason: Option<String>) -> Option<Arc<str>> {
    since.map(|_| reason.unwrap_or_default().into())
}
