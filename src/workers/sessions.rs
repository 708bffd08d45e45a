//! Ends the sessions of deleted apps, whichever replica deleted them.

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::pause;
use crate::accounts::Accounts;
use crate::storage::apps::DeletedApps;
use crate::storage::outage::trouble;

/// How often it looks by itself: an announcement is missed when the connection breaks.
const LOOK: Duration = Duration::from_secs(30);

/// A pause after the database could not be listened to.
const AGAIN: Duration = Duration::from_secs(1);

/// Runs until `stop`.
pub async fn run(pool: PgPool, accounts: Accounts, stop: CancellationToken) {
    loop {
        tokio::select! {
            ended = listen(&pool, &accounts) => {
                if let Err(error) = ended {
                    trouble!(warn, error, "can't listen for deleted apps; trying again");
                }
            }
            () = stop.cancelled() => return,
        }
        if !pause(AGAIN, &stop).await {
            return;
        }
    }
}

async fn listen(pool: &PgPool, accounts: &Accounts) -> Result<(), sqlx::Error> {
    let mut deleted = DeletedApps::listen(pool).await?;
    loop {
        accounts.end_orphaned_sessions().await?;
        match tokio::time::timeout(LOOK, deleted.next()).await {
            Ok(Ok(Some(app))) => accounts.end_sessions(app),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(None)) | Err(_) => {}
        }
    }
}
