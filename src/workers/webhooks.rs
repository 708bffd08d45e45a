//! Delivers webhooks: listens for new ones, and runs the dispatcher.

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::pause;
use crate::storage::outage::trouble;
use crate::storage::webhook_queue::NewRows;
use crate::webhooks::Webhooks;

/// A pause after the database could not be listened to. The dispatcher looks by itself meanwhile.
const AGAIN: Duration = Duration::from_secs(1);

/// Wakes the dispatcher when there is something new; runs until `stop`.
pub async fn run(pool: PgPool, webhooks: Webhooks, stop: CancellationToken) {
    loop {
        tokio::select! {
            ended = listen(&pool, &webhooks) => {
                if let Err(error) = ended {
                    trouble!(warn, error, "can't listen for new webhooks; trying again");
                }
            }
            () = stop.cancelled() => return,
        }
        if !pause(AGAIN, &stop).await {
            return;
        }
    }
}

async fn listen(pool: &PgPool, webhooks: &Webhooks) -> Result<(), sqlx::Error> {
    let mut rows = NewRows::listen(pool).await?;
    loop {
        rows.next().await?;
        webhooks.wake();
    }
}
