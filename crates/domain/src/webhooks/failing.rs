//! Endpoints that keep failing, for the portal's overview. They keep getting deliveries.

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};

use super::Webhooks;
use mailgate_storage::webhook_configs;
use mailgate_storage::webhook_counters::{self, FailingEndpoint};
use mailgate_types::ids::{AppId, SubscriberId};

/// How far back attempts count: whole hours.
const BACK: TimeDelta = TimeDelta::hours(24);

impl Webhooks {
    /// Whether an app of a subscriber has an endpoint.
    pub async fn has_endpoint(&self, subscriber: SubscriberId) -> Result<bool, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        webhook_configs::has_any(&mut connection, subscriber).await
    }

    /// Up to `limit` endpoints of a subscriber, or of one of its apps, at which at least half of the attempts of the
    /// last day have failed.
    pub async fn failing(
        &self,
        subscriber: SubscriberId,
        app: Option<AppId>,
        limit: i64,
    ) -> Result<Vec<FailingEndpoint>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let since = self.a_day_ago();
        webhook_counters::failing(&mut connection, subscriber, app, since, limit).await
    }

    /// From where on attempts tell how an endpoint does.
    pub(super) fn a_day_ago(&self) -> DateTime<Utc> {
        let since = self.clock.now() - BACK;
        since.duration_trunc(TimeDelta::hours(1)).unwrap_or(since)
    }
}
