//! The limits that the operator has set for one subscriber, overriding the settings.

use std::num::NonZeroU32;

use sqlx::PgConnection;

use mailgate_types::ids::SubscriberId;
use mailgate_types::subscriber_limit::SubscriberLimit;

/// A subscriber's own limits; `None`: the setting applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnLimits([Option<i64>; SubscriberLimit::ALL.len()]);

impl OwnLimits {
    /// One of them.
    #[must_use]
    pub const fn get(&self, limit: SubscriberLimit) -> Option<i64> {
        self.0[limit as usize]
    }

    /// Sets one of them.
    pub const fn set(&mut self, limit: SubscriberLimit, value: Option<i64>) {
        self.0[limit as usize] = value;
    }
}

/// A rate, as stored in its column.
#[must_use]
pub fn rate(column: Option<i64>) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(column?).ok()?)
}

/// A subscriber's own limits: none if it was deleted.
pub async fn of(connection: &mut PgConnection, id: SubscriberId) -> Result<OwnLimits, sqlx::Error> {
    let row = sqlx::query!(
        "SELECT max_apps, max_mailboxes, max_end_users, max_waiting_messages, max_waiting_bytes,
                max_requests_per_second
         FROM subscribers WHERE id = $1",
        id.0,
    )
    .fetch_optional(connection)
    .await?;
    let own = row.map(|row| {
        OwnLimits(SubscriberLimit::ALL.map(|limit| match limit {
            SubscriberLimit::Apps => row.max_apps,
            SubscriberLimit::Mailboxes => row.max_mailboxes,
            SubscriberLimit::EndUsers => row.max_end_users,
            SubscriberLimit::WaitingMessages => row.max_waiting_messages,
            SubscriberLimit::WaitingBytes => row.max_waiting_bytes,
            SubscriberLimit::RequestsPerSecond => row.max_requests_per_second,
        }))
    });
    Ok(own.unwrap_or_default())
}

/// Sets all of a subscriber's own limits.
pub async fn set(
    connection: &mut PgConnection,
    id: SubscriberId,
    own: &OwnLimits,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE subscribers
         SET max_apps = $2, max_mailboxes = $3, max_end_users = $4, max_waiting_messages = $5,
             max_waiting_bytes = $6, max_requests_per_second = $7
         WHERE id = $1",
        id.0,
        own.get(SubscriberLimit::Apps),
        own.get(SubscriberLimit::Mailboxes),
        own.get(SubscriberLimit::EndUsers),
        own.get(SubscriberLimit::WaitingMessages),
        own.get(SubscriberLimit::WaitingBytes),
        own.get(SubscriberLimit::RequestsPerSecond),
    )
    .execute(connection)
    .await?;
    Ok(())
}
