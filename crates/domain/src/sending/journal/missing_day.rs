//! Creates missing partitions of days, as after a clock change: a message's row must not wait for the next partition
//! check, nor be lost.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use tokio::time::timeout;

use mailgate_storage::database::outage::trouble;
use mailgate_storage::partitions::{self, Tables};
use mailgate_types::ids::LogId;

/// How long it may take; the write fails then, and is tried again.
const PATIENCE: Duration = Duration::from_secs(10);

/// Creates the partitions of these messages, as far as the log goes back, and of events at `now`. `false` if that
/// failed.
pub(in crate::sending) async fn make(
    pool: &PgPool,
    logs: impl IntoIterator<Item = LogId>,
    now: DateTime<Utc>,
) -> bool {
    let moments = logs.into_iter().filter_map(LogId::moment);
    let mut days: BTreeSet<_> = moments
        .map(|moment| (Tables::Log, moment.date_naive()))
        .collect();
    days.insert((Tables::Webhooks, now.date_naive()));
    let days: Vec<_> = days.into_iter().collect();
    tracing::warn!(
        "the log has no partition for the day of a message, as after a clock was moved: it is made now"
    );
    let made = timeout(PATIENCE, partitions::make_now(pool, &days)).await;
    match made.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
        Ok(()) => true,
        Err(error) => {
            trouble!(
                error,
                error,
                "the partition of a message's day can't be made"
            );
            false
        }
    }
}
