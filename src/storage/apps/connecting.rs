//! The table `apps`, for end users who connect mailboxes.

use sqlx::PgConnection;

use mailgate_types::ids::AppId;

/// An app as its end users see it, and how they are told apart.
#[derive(Debug, Clone)]
pub struct PublicApp {
    /// Its id.
    pub id: AppId,
    /// As the subscriber calls it.
    pub name: String,
    /// `pk_…`
    pub pushable_key: String,
    /// An address, or empty.
    pub logo_url: String,
    /// Several end users.
    pub multiuser: bool,
    /// Mailboxes are connected by connect sessions alone.
    pub require_connect_session: bool,
    /// Where end users go after connecting: an address, or empty.
    pub callback_url: String,
}

/// The app that a connect link with this pushable key is of.
pub async fn find_public(
    connection: &mut PgConnection,
    pushable_key: &str,
) -> Result<Option<PublicApp>, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT id, name, pushable_key, logo_url, multiuser, require_connect_session, callback_url
         FROM apps WHERE pushable_key = $1",
        pushable_key,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| PublicApp {
        id: AppId(row.id),
        name: row.name,
        pushable_key: row.pushable_key,
        logo_url: row.logo_url,
        multiuser: row.multiuser,
        require_connect_session: row.require_connect_session,
        callback_url: row.callback_url,
    }))
}

/// What decides which user a mailbox is connected for, and beside which others.
#[derive(Debug, Clone)]
pub struct ConnectionRules {
    /// `pk_…`
    pub pushable_key: String,
    /// Several end users.
    pub multiuser: bool,
    /// Several mailboxes of one plugin and user.
    pub multilink: bool,
    /// Mailboxes are connected by connect sessions alone.
    pub require_connect_session: bool,
}

/// Locks an app's row until the transaction ends, so that nobody else connects a mailbox meanwhile,
/// and tells by which rules; `None` when it is gone.
pub async fn lock_for_connection(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<Option<ConnectionRules>, sqlx::Error> {
    sqlx::query_as!(
        ConnectionRules,
        "SELECT pushable_key, multiuser, multilink, require_connect_session
         FROM apps WHERE id = $1 FOR UPDATE",
        app.0,
    )
    .fetch_optional(connection)
    .await
}
