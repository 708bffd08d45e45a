//! Limits what each subscriber may have waiting: messages of all its apps that are stored for their next attempt. The
//! count is kept in the database, so it holds across all replicas.

use sqlx::PgConnection;

use super::Sending;
use crate::config::Limits;
use crate::storage::spool::usage::{self, Usage};
use mailgate_types::ids::AppId;

/// Changes folded per statement.
const FOLDED: i64 = 10_000;

/// The limits for one subscriber.
#[derive(Debug, Clone, Copy)]
pub struct Quota {
    messages: i64,
    bytes: i64,
}

impl Quota {
    /// The quota of the configured limits.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            messages: limits.waiting_messages_per_subscriber.into(),
            bytes: limits.waiting_bytes_per_subscriber,
        }
    }

    fn holds(self, usage: Usage) -> bool {
        usage.messages <= self.messages && usage.bytes <= self.bytes
    }

    /// The fraction of the quota in use, by messages or by bytes, whichever is higher: 1 when it is full.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for people to look at")]
    pub fn share(self, usage: Usage) -> f64 {
        let messages = usage.messages as f64 / self.messages as f64;
        messages.max(usage.bytes as f64 / self.bytes as f64)
    }

    /// Whether an app's subscriber is within its quota, the caller's own transaction included, while others may be storing
    /// more.
    pub(super) async fn may_hold(
        self,
        connection: &mut PgConnection,
        app: AppId,
    ) -> Result<bool, sqlx::Error> {
        Ok(self.holds(usage::of(connection, app).await?))
    }

    /// As [`Quota::may_hold`], and blocks other calls for its subscriber until the caller's transaction ends.
    pub(super) async fn surely_holds(
        self,
        connection: &mut PgConnection,
        app: AppId,
    ) -> Result<bool, sqlx::Error> {
        usage::lock(connection, app).await?;
        self.may_hold(connection, app).await
    }
}

impl Sending {
    /// Folds the changes into the usage of each app.
    pub async fn fold_usage(&self) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        while usage::fold(&mut connection, FOLDED).await? > 0 {}
        usage::forget_empty(&mut connection).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fuller_of_the_two_counts() {
        let quota = Quota {
            messages: 10,
            bytes: 1_000,
        };
        for (messages, bytes, holds, percent) in [
            (0, 0, true, 0),
            (5, 900, true, 90),
            (10, 1_000, true, 100),
            (11, 0, false, 110),
            (1, 1_001, false, 100),
        ] {
            let usage = Usage { messages, bytes };
            assert_eq!(quota.holds(usage), holds, "{usage:?}");
            #[expect(clippy::cast_possible_truncation, reason = "small")]
            let share = (quota.share(usage) * 100.0) as i64;
            assert_eq!(share, percent, "{usage:?}");
        }
    }
}
