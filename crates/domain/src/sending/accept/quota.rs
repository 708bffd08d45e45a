//! The queue quota of each subscriber: it limits the messages of all its apps that are stored for their next attempt.
//! The count is kept in the database, so it holds across all replicas. It applies where a message
//! is stored: in `queue::persist::defer` and `queue::schedule`.

use sqlx::PgConnection;

use crate::sending::Sending;
use mailgate_settings::Limits;
use mailgate_storage::spool::usage::{self, Held, Most};
use mailgate_types::ids::AppId;

/// Changes folded per statement.
const FOLDED: i64 = 10_000;

/// A subscriber's queue quota, by the settings or its own limits.
#[derive(Debug, Clone, Copy)]
pub struct Quota(Most);

impl Quota {
    /// The quota of the configured limits.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self(Most {
            messages: limits.waiting_messages_per_subscriber.into(),
            bytes: limits.waiting_bytes_per_subscriber,
            least_bytes: i64::try_from(limits.message_bytes).unwrap_or(i64::MAX),
        })
    }

    /// For subscribers without limits of their own.
    #[must_use]
    pub fn common(&self) -> &Most {
        &self.0
    }

    /// The messages that a subscriber may have waiting, by its own limit if it has one.
    #[must_use]
    pub fn messages(self, own: Option<i64>) -> i64 {
        own.unwrap_or(self.0.messages)
    }

    /// Their bytes. The largest message may always wait, even if it exceeds the subscriber's own limit.
    #[must_use]
    pub fn bytes(self, own: Option<i64>) -> i64 {
        own.unwrap_or(self.0.bytes).max(self.0.least_bytes)
    }

    fn holds(self, held: &Held) -> bool {
        held.usage.messages <= self.messages(held.most_messages)
            && held.usage.bytes <= self.bytes(held.most_bytes)
    }

    /// Whether an app's subscriber is within its quota, the caller's own transaction included, while others may be storing
    /// more.
    pub(in crate::sending) async fn may_hold(
        self,
        connection: &mut PgConnection,
        app: AppId,
    ) -> Result<bool, sqlx::Error> {
        Ok(self.holds(&usage::of(connection, app).await?))
    }

    /// As [`Quota::may_hold`], and blocks other calls for its subscriber until the caller's transaction ends.
    pub(in crate::sending) async fn surely_holds(
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
    use mailgate_storage::spool::usage::Usage;

    #[test]
    fn both_count_by_the_settings_or_by_the_subscribers_own() {
        let quota = Quota(Most {
            messages: 10,
            bytes: 1_000,
            least_bytes: 500,
        });
        for (messages, bytes, most_messages, most_bytes, holds) in [
            (0, 0, None, None, true),
            (10, 1_000, None, None, true),
            (11, 0, None, None, false),
            (1, 1_001, None, None, false),
            (11, 1_000, Some(11), None, true),
            (3, 1_000, Some(2), None, false),
            (10, 1_001, None, Some(2_000), true),
            (1, 901, None, Some(900), false),
            // There is room for the largest message.
            (1, 500, None, Some(400), true),
            (2, 501, None, Some(400), false),
        ] {
            let held = Held {
                usage: Usage { messages, bytes },
                most_messages,
                most_bytes,
            };
            assert_eq!(quota.holds(&held), holds, "{held:?}");
        }
    }
}
