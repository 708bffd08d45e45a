//! Listens for database notifications, on connections of their own.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::every;
use crate::accounts::Accounts;
use crate::storage::apps::DeletedApps;
use crate::storage::webhook_queue::NewRows;
use crate::webhooks::Webhooks;

/// The delay after listening failed.
const AGAIN: Duration = Duration::from_secs(1);

/// How often deleted apps are checked for without a notification: one is missed when the connection breaks.
const LOOK: Duration = Duration::from_secs(30);

/// Ends the sessions of deleted apps, whichever replica deleted them.
pub async fn end_sessions(pool: PgPool, accounts: Accounts, stop: CancellationToken) {
    let trouble = "can't listen for deleted apps; trying again";
    let listening = every(AGAIN, &stop, trouble, || async {
        let mut deleted = DeletedApps::listen(&pool).await?;
        loop {
            accounts.end_orphaned_sessions().await?;
            match timeout(LOOK, deleted.next()).await {
                Ok(Ok(Some(app))) => accounts.end_sessions(app),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(None)) | Err(_) => {}
            }
        }
    });
    stop.run_until_cancelled(listening).await;
}

/// Wakes the webhook dispatcher on new rows; it also polls by itself.
pub async fn wake_webhooks(pool: PgPool, webhooks: Webhooks, stop: CancellationToken) {
    let trouble = "can't listen for new webhooks; trying again";
    let listening = every(AGAIN, &stop, trouble, || async {
        let mut rows = NewRows::listen(&pool).await?;
        loop {
            rows.next().await?;
            webhooks.wake();
        }
    });
    stop.run_until_cancelled(listening).await;
}
