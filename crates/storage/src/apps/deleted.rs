//! Deleted apps, and their announcement to the replicas.

use sqlx::postgres::PgListener;
use sqlx::types::Uuid;
use sqlx::{PgConnection, PgPool};

use mailgate_types::ids::AppId;

/// The channel that announces deleted apps; the payload is the app's id.
const DELETED_CHANNEL: &str = "mailgate_app_deleted";

/// Announces to all replicas that an app was deleted, once the transaction commits.
pub async fn announce_deleted(
    connection: &mut PgConnection,
    app: AppId,
) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT pg_notify($1, $2)::text",
        DELETED_CHANNEL,
        app.to_string(),
    )
    .fetch_one(connection)
    .await?;
    Ok(())
}

/// The apps among these that were deleted.
pub async fn gone(
    connection: &mut PgConnection,
    apps: &[AppId],
) -> Result<Vec<AppId>, sqlx::Error> {
    let ids: Vec<Uuid> = apps.iter().map(|app| app.0).collect();
    let gone = sqlx::query_scalar!(
        r#"SELECT asked.id AS "id!" FROM unnest($1::uuid[]) AS asked (id)
           WHERE NOT EXISTS (SELECT 1 FROM apps WHERE apps.id = asked.id)"#,
        &ids,
    )
    .fetch_all(connection)
    .await?;
    Ok(gone.into_iter().map(AppId).collect())
}

/// Receives announcements of deleted apps.
#[derive(Debug)]
pub struct DeletedApps(PgListener);

impl DeletedApps {
    /// Listens on a connection of its own.
    pub async fn listen(pool: &PgPool) -> Result<Self, sqlx::Error> {
        let mut listener = PgListener::connect_with(pool).await?;
        listener.listen(DELETED_CHANNEL).await?;
        Ok(Self(listener))
    }

    /// The next deleted app; `None` for an announcement without a valid id.
    ///
    /// # Errors
    ///
    /// The database's error: announcements may have been missed.
    pub async fn next(&mut self) -> Result<Option<AppId>, sqlx::Error> {
        let notification = self.0.recv().await?;
        Ok(notification.payload().parse().ok().map(AppId))
    }
}
