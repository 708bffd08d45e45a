//! How long things are kept.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Days, Utc};
use mailgate::workers::{self, Retention};
use mailgate_storage::partitions::midnight;
use mailgate_types::clock::{MovedClock, SharedClock};
use tokio_util::sync::CancellationToken;

use super::gateway::Gateway;

/// The log for so many days, with the usual schedule of webhooks.
pub fn kept_for(log_days: u32) -> Retention {
    Retention {
        log_days,
        webhooks: Duration::from_hours(30),
    }
}

/// One round of the worker that looks after the partitions. One at a time does the work, and the gateway's own may be
/// under way, as whenever its clock has moved: it is begun until its turn has come.
pub async fn look_after(gateway: &Gateway, retention: Retention) {
    let ended = CancellationToken::new();
    ended.cancel();
    gateway
        .eventually("a turn to drop what is old", async |gateway| {
            let clock: SharedClock = Arc::<MovedClock>::clone(&gateway.clock);
            let oldest = clock.now().date_naive() - Days::new(retention.log_days.into());
            let pool = gateway.daemon.pool.clone();
            workers::keep_partitions(pool, clock, retention, ended.clone()).await;
            kept_since(gateway).await >= midnight(oldest)
        })
        .await;
}

/// Since when the log is kept.
pub async fn kept_since(gateway: &Gateway) -> DateTime<Utc> {
    sqlx::query_scalar("SELECT kept_since FROM log_retention")
        .fetch_one(&mut gateway.database().await)
        .await
        .unwrap()
}
