//! The app that a send key authenticates.

use std::collections::HashMap;

use sqlx::PgConnection;

use mailgate_types::ids::{AppId, AppVersion};
use mailgate_types::subscription::SubscriptionStatus;

/// The app of a send key, as of the query.
#[derive(Debug, Clone)]
pub struct SendingApp {
    /// The app.
    pub id: AppId,
    /// The contract's `app_id`.
    pub slug: String,
    /// `pk_…`
    pub pushable_key: String,
    /// Whether a send must name its end user.
    pub multiuser: bool,
    /// Whether messages to recipients that have bounced are refused.
    pub suppress_bounced: bool,
    /// The subscription of the app's subscriber.
    pub subscription_status: Option<SubscriptionStatus>,
    /// The version of the app's data, to detect later changes.
    pub version: Option<AppVersion>,
}

/// The apps of these send keys, each given by its possible lookup digests.
pub async fn find_by_send_keys(
    connection: &mut PgConnection,
    keys: &[Vec<Vec<u8>>],
) -> Result<Vec<Option<SendingApp>>, sqlx::Error> {
    let digests: Vec<Vec<u8>> = keys.iter().flatten().cloned().collect();
    let rows = sqlx::query!(
        "SELECT send_key_digest, apps.id, slug, pushable_key, multiuser, suppress_bounced,
                subscription_status,
                (SELECT version FROM app_versions WHERE app_id = apps.id) AS version
         FROM apps JOIN subscribers ON subscribers.id = subscriber_id
         WHERE send_key_digest = ANY($1)",
        &digests,
    )
    .fetch_all(connection)
    .await?;
    let apps: HashMap<Vec<u8>, SendingApp> = rows
        .into_iter()
        .map(|row| {
            let app = SendingApp {
                id: AppId(row.id),
                slug: row.slug,
                pushable_key: row.pushable_key,
                multiuser: row.multiuser,
                suppress_bounced: row.suppress_bounced,
                subscription_status: row
                    .subscription_status
                    .and_then(|status| status.parse().ok()),
                version: row.version.map(AppVersion),
            };
            (row.send_key_digest, app)
        })
        .collect();
    Ok(keys
        .iter()
        .map(|digests| digests.iter().find_map(|digest| apps.get(digest)).cloned())
        .collect())
}

/// The subscription status behind an app: `None` when the app is gone, `Some(None)` when its
/// subscriber has no subscription.
pub async fn subscription_status(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<Option<SubscriptionStatus>>, sqlx::Error> {
    let row = sqlx::query_scalar!(
        "SELECT subscription_status
         FROM apps JOIN subscribers ON subscribers.id = subscriber_id
         WHERE apps.id = $1",
        app.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|status| status.and_then(|status| status.parse().ok())))
}
