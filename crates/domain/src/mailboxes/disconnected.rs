//! Mailboxes that their users have to reconnect.

use chrono::TimeDelta;

use super::Mailboxes;
use mailgate_storage::mailboxes::{self, DisconnectedMailbox};
use mailgate_types::ids::{AppId, SubscriberId};

/// Users who haven't returned by then won't.
const BACK: TimeDelta = TimeDelta::days(30);

impl Mailboxes {
    /// Up to `limit` mailboxes of a subscriber, or of one of its apps, that the provider has refused in the last 30
    /// days; the latest first.
    pub async fn disconnected(
        &self,
        subscriber: SubscriberId,
        app: Option<AppId>,
        limit: i64,
    ) -> Result<Vec<DisconnectedMailbox>, sqlx::Error> {
        let since = self.clock.now() - BACK;
        let mut connection = self.pool.acquire().await?;
        mailboxes::disconnected(&mut connection, subscriber, app, since, limit).await
    }
}
