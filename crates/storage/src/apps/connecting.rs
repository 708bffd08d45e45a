//! The table `apps`, as needed to connect mailboxes.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use mailgate_types::ids::AppId;

/// An app as its end users see it, and how its end users are distinguished.
#[derive(Debug, Clone)]
pub struct PublicApp {
    /// Its id.
    pub id: AppId,
    /// The name that the subscriber gave it.
    pub name: String,
    /// `pk_…`
    pub pushable_key: String,
    /// A URL, or empty.
    pub logo_url: String,
    /// Whether the app has several end users.
    pub multiuser: bool,
    /// Whether mailboxes can only be connected through connect sessions.
    pub require_connect_session: bool,
    /// Where end users go after connecting: a URL, or empty.
    pub callback_url: String,
    /// Connect sessions that were created earlier are revoked.
    pub connect_sessions_from: Option<DateTime<Utc>>,
    /// Whether the operator has suspended its subscriber.
    pub is_suspended: bool,
}

/// The app of a connect link with this pushable key, unless its subscriber is deleted.
pub async fn find_public(
    connection: &mut PgConnection,
    pushable_key: &str,
) -> Result<Option<PublicApp>, sqlx::Error> {
    sqlx::query_as!(
        PublicApp,
        r#"SELECT apps.id, name, pushable_key, logo_url, multiuser, require_connect_session, callback_url,
                  connect_sessions_from, suspended_at IS NOT NULL AS "is_suspended!"
           FROM apps JOIN subscribers ON subscribers.id = subscriber_id
           WHERE pushable_key = $1 AND deletion_due_at IS NULL"#,
        pushable_key,
    )
    .fetch_optional(connection)
    .await
}

/// The settings that decide the user of a new mailbox, and which other mailboxes that user may have.
#[derive(Debug, Clone)]
pub struct ConnectionRules {
    /// `pk_…`
    pub pushable_key: String,
    /// Whether the app has several end users.
    pub multiuser: bool,
    /// Whether an end user may connect several mailboxes of one plugin.
    pub multilink: bool,
    /// Whether mailboxes can only be connected through connect sessions.
    pub require_connect_session: bool,
    /// Connect sessions that were created earlier are revoked.
    pub connect_sessions_from: Option<DateTime<Utc>>,
}

/// Locks an app's row until the transaction ends, so that no other mailbox is connected meanwhile, and returns its
/// rules; `None` if the app was deleted.
pub async fn lock_for_connection(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<ConnectionRules>, sqlx::Error> {
    sqlx::query_as!(
        ConnectionRules,
        "SELECT pushable_key, multiuser, multilink, require_connect_session, connect_sessions_from
         FROM apps WHERE id = $1 FOR UPDATE",
        app.0,
    )
    .fetch_optional(connection)
    .await
}
