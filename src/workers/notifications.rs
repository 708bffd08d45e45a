//! Listens for database notifications, on connections of their own.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::pause;
use mailgate_domain::accounts::Accounts;
use mailgate_domain::webhooks::Webhooks;
use mailgate_storage::apps::DeletedApps;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::webhook_queue::NewRows;

/// The delay after listening failed.
const AGAIN: Duration = Duration::from_secs(1);

/// How often to check for deleted apps without a notification, which is lost if the connection breaks.
const LOOK: Duration = Duration::from_secs(30);

/// Ends the sessions of apps deleted by any replica.
pub async fn end_sessions(pool: PgPool, accounts: Accounts, stop: CancellationToken) {
    listen_again("deleted apps", &stop, || async {
        let mut deleted = DeletedApps::listen(&pool).await?;
        loop {
            accounts.end_orphaned_sessions().await?;
            match timeout(LOOK, deleted.next()).await {
                Ok(Ok(Some(app))) => accounts.end_sessions(app),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(None)) | Err(_) => {}
            }
        }
    })
    .await;
}

/// Wakes the webhook dispatcher for new deliveries; it polls as well.
pub async fn wake_webhooks(pool: PgPool, webhooks: Webhooks, stop: CancellationToken) {
    listen_again("new webhooks", &stop, || async {
        let mut rows = NewRows::listen(&pool).await?;
        loop {
            rows.next().await?;
            webhooks.wake();
        }
    })
    .await;
}

/// Listens until `stop`, and again after each failure. A failure is only a warning, since polling finds the same
/// changes.
async fn listen_again<L>(to: &'static str, stop: &CancellationToken, mut listen: impl FnMut() -> L)
where
    L: Future<Output = Result<(), sqlx::Error>>,
{
    while let Some(ended) = stop.run_until_cancelled(listen()).await {
        if let Err(error) = ended {
            trouble!(warn, error, "can't listen for {to}; trying again");
        }
        if !pause(AGAIN, stop).await {
            return;
        }
    }
}
