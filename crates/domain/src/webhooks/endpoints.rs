//! A subscriber's endpoints over all apps, with their delivery results of the last seven days.

use std::collections::HashMap;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use sqlx::PgConnection;

use super::{Delivery, MOST_WAITING, Webhooks};
use mailgate_storage::webhook_deliveries::list;
use mailgate_storage::webhook_endpoints;
use mailgate_storage::webhook_queue::replay::{self, Waiting};
use mailgate_types::ids::{EndpointId, SubscriberId, WebhookMessageId};

pub use mailgate_storage::webhook_endpoints::OwnedEndpoint;

/// Days that are shown.
const DAYS: u64 = 7;

/// The attempts of a day (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointDay {
    /// The day.
    pub day: NaiveDate,
    /// Accepted by the receiver.
    pub successes: i64,
    /// Failed.
    pub failures: i64,
}

/// How an endpoint does, by the attempts of the last day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It has no URL.
    Removed,
    /// It gets no events.
    Paused,
    /// At least half of the attempts have failed.
    Failing,
    /// At least one of twenty attempts has failed.
    Degraded,
    /// It works, or hasn't been called.
    Active,
}

impl Health {
    /// Whether its receiver refuses more than a few deliveries.
    #[must_use]
    pub fn is_trouble(self) -> bool {
        matches!(self, Self::Failing | Self::Degraded)
    }

    fn of(endpoint: &OwnedEndpoint, attempts: i64, failures: i64) -> Self {
        match endpoint {
            endpoint if endpoint.url.is_empty() => Self::Removed,
            endpoint if !endpoint.is_active => Self::Paused,
            _ if failures == 0 => Self::Active,
            _ if failures * 2 >= attempts => Self::Failing,
            _ if failures * 20 >= attempts => Self::Degraded,
            _ => Self::Active,
        }
    }
}

/// An endpoint and its delivery results.
#[derive(Debug, Clone)]
pub struct EndpointReport {
    /// The endpoint.
    pub endpoint: OwnedEndpoint,
    /// Today and the six days before (UTC), the oldest first.
    pub days: Vec<EndpointDay>,
    /// Attempts of these days that the receiver accepted.
    pub successes: i64,
    /// Attempts of these days.
    pub attempts: i64,
    /// How it does.
    pub health: Health,
    /// Attempts of the last day.
    pub recent: i64,
    /// Those of them that failed.
    pub recent_failures: i64,
}

/// What an endpoint has missed.
#[derive(Debug, Clone, Copy)]
pub struct Missed {
    /// When its receiver last accepted a delivery; `None`: not lately.
    pub last_accepted: Option<DateTime<Utc>>,
    /// The deliveries that wait for an attempt.
    pub waiting: Waiting,
}

impl Webhooks {
    /// Since when an endpoint misses events, and when they are delivered.
    pub async fn missed(&self, endpoint: EndpointId) -> Result<Missed, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        Ok(Missed {
            last_accepted: list::last_accepted(&mut connection, endpoint).await?,
            waiting: replay::waiting(&mut connection, endpoint, MOST_WAITING).await?,
        })
    }

    /// A page of the subscriber's endpoints, by app; with `slug`, those of this app.
    pub async fn endpoints(
        &self,
        subscriber: SubscriberId,
        slug: Option<&str>,
        limit: i64,
        offset: i64,
    ) -> Result<Vec<EndpointReport>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let listed = webhook_endpoints::list(&mut connection, subscriber, slug, limit, offset);
        let listed = listed.await?;
        self.counted(&mut connection, listed).await
    }

    /// One of the subscriber's endpoints; another subscriber's is not found.
    pub async fn endpoint(
        &self,
        subscriber: SubscriberId,
        id: EndpointId,
    ) -> Result<Option<EndpointReport>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let found = webhook_endpoints::find(&mut connection, subscriber, id).await?;
        let found = found.into_iter().collect();
        Ok(self.counted(&mut connection, found).await?.pop())
    }

    async fn counted(
        &self,
        connection: &mut PgConnection,
        endpoints: Vec<OwnedEndpoint>,
    ) -> Result<Vec<EndpointReport>, sqlx::Error> {
        let today = self.clock.now().date_naive();
        let first = today - Days::new(DAYS - 1);
        let since = first.and_time(NaiveTime::MIN).and_utc();
        let ids: Vec<_> = endpoints.iter().map(|endpoint| endpoint.id).collect();
        let counts = webhook_endpoints::by_day(connection, &ids, since, self.a_day_ago()).await?;
        let mut by_endpoint: HashMap<EndpointId, Vec<EndpointDay>> = HashMap::new();
        let mut recent: HashMap<EndpointId, (i64, i64)> = HashMap::new();
        for count in counts {
            let (attempts, failures) = recent.entry(count.endpoint).or_default();
            *attempts += count.recent;
            *failures += count.recent_failures;
            let days = by_endpoint.entry(count.endpoint).or_default();
            days.push(EndpointDay {
                day: count.day,
                successes: count.successes,
                failures: count.failures,
            });
        }
        let reports = endpoints.into_iter().map(|endpoint| {
            let counted = by_endpoint.remove(&endpoint.id).unwrap_or_default();
            let days = week(today, &counted);
            let successes = days.iter().map(|day| day.successes).sum();
            let failures: i64 = days.iter().map(|day| day.failures).sum();
            let (recent, recent_failures) = recent.remove(&endpoint.id).unwrap_or_default();
            EndpointReport {
                health: Health::of(&endpoint, recent, recent_failures),
                recent,
                recent_failures,
                endpoint,
                days,
                successes,
                attempts: successes + failures,
            }
        });
        Ok(reports.collect())
    }

    /// The attempts to deliver one event to an endpoint, the first one first.
    pub async fn attempts_of(
        &self,
        endpoint: EndpointId,
        message: WebhookMessageId,
    ) -> Result<Vec<Delivery>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        list::of_message(&mut connection, endpoint, message).await
    }
}

/// Every day up to `today`, also those without attempts.
fn week(today: NaiveDate, counted: &[EndpointDay]) -> Vec<EndpointDay> {
    let days = (0..DAYS).rev();
    let days = days.filter_map(|before| today.checked_sub_days(Days::new(before)));
    days.map(|day| {
        let found = counted.iter().find(|counted| counted.day == day);
        found.copied().unwrap_or(EndpointDay {
            day,
            successes: 0,
            failures: 0,
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_week_has_every_day() {
        let day = |text: &str| text.parse::<NaiveDate>().unwrap_or_default();
        let counted = [EndpointDay {
            day: day("2026-02-27"),
            successes: 3,
            failures: 1,
        }];
        let week = week(day("2026-03-02"), &counted);
        assert_eq!(week.len(), 7);
        assert_eq!(week.first().map(|it| it.day), Some(day("2026-02-24")));
        assert_eq!(week.last().map(|it| it.day), Some(day("2026-03-02")));
        let seen: Vec<_> = week.iter().filter(|it| it.successes > 0).collect();
        assert_eq!(seen, [&counted[0]]);
    }
}
