//! Delivers many past messages to an endpoint again, at a subscriber's request. They are queued behind everything else
//! for that endpoint, so that a replay delays no new event, and endpoints don't delay each other anyway.

use std::str::FromStr;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use super::{Webhooks, subscriber};
use crate::accounts::audit;
use mailgate_storage::webhook_queue::replay::{self, ReplayFilter};
use mailgate_storage::webhook_queue::requeue::receives;
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::event_name::EventName;
use mailgate_types::ids::{AppId, EndpointId, InvalidId, WebhookConfigId, WebhookDeliveryId};
use mailgate_types::moment::iso8601;

/// The largest number of deliveries that may wait for an endpoint after a replay.
pub const MOST_WAITING: i64 = 10_000;

/// Attempts examined per statement, and per replay.
const BATCH: i64 = 2_000;
const MOST_EXAMINED: i64 = 100_000;

/// How long a replay searches for messages; its caller continues it.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long replayed messages yield to everything else for their endpoint.
pub(super) const BEHIND: TimeDelta = TimeDelta::days(1);

/// Concurrent replays of a process, one per subscriber: each holds a connection. A further one waits for [`PATIENCE`]
/// at most.
pub(super) const AT_ONCE: usize = 4;

/// The messages to deliver again.
#[derive(Debug, Clone)]
pub struct Replay {
    /// Events from here on.
    pub since: DateTime<Utc>,
    /// Events before; `None`: up to now.
    pub before: Option<DateTime<Utc>>,
    /// Those whose last attempt succeeded, or those whose last attempt failed.
    pub success: bool,
    /// Of this event only.
    pub event: Option<EventName>,
    /// Where an earlier replay ended.
    pub cursor: Option<ReplayCursor>,
}

/// Where a replay ended for lack of room, in the order of attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayCursor {
    /// The last attempt that was processed; `None` if there is none.
    after: Option<WebhookDeliveryId>,
    /// When the first replay of the series began: attempts since then are results of it.
    as_of: DateTime<Utc>,
}

impl std::fmt::Display for ReplayCursor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let began = self.as_of.timestamp_millis();
        match self.after {
            Some(after) => write!(formatter, "{began}.{after}"),
            None => write!(formatter, "{began}"),
        }
    }
}

impl FromStr for ReplayCursor {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let (began, after) = match text.split_once('.') {
            Some((began, after)) => (began, Some(after.parse()?)),
            None => (text, None),
        };
        let is_number =
            (1..=15).contains(&began.len()) && began.bytes().all(|it| it.is_ascii_digit());
        let began = if is_number { began.parse().ok() } else { None };
        let as_of = began.and_then(DateTime::from_timestamp_millis);
        Ok(Self {
            after,
            as_of: as_of.ok_or(InvalidId)?,
        })
    }
}

/// The result of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Messages that were queued.
    pub queued: i64,
    /// Messages that are queued already, or being delivered at the moment.
    pub skipped: i64,
    /// Messages whose body has expired.
    pub expired: i64,
    /// Where to continue; `None` if that was all.
    pub next: Option<ReplayCursor>,
    /// When it began: with `queued`, what [`Webhooks::replay_left`] finds its messages by.
    pub began: DateTime<Utc>,
}

/// Why nothing was queued.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The app has no such endpoint.
    #[error("there is no such endpoint")]
    NotFound,
    /// The configuration is inactive, or the app has no `webhook_url`.
    #[error("the endpoint receives no events")]
    Inactive,
    /// Another replay of the app is in progress.
    #[error("another replay is in progress")]
    UnderWay,
    /// Replays of other apps are in progress: the subscriber's, or as many as the process runs at a time.
    #[error("replays of other apps are in progress")]
    OthersUnderWay,
    /// The endpoint has reached the limit of waiting deliveries for replays.
    #[error("{MOST_WAITING} deliveries or more wait for the endpoint")]
    Full,
    /// The database's error.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl Webhooks {
    /// Queues past messages for a configuration again, or for the app's own `webhook_url`: under the same webhook-id,
    /// as their next attempts, followed by the remaining attempts of the schedule. Each call queues all of its messages
    /// or none.
    pub async fn replay(
        &self,
        app: AppId,
        config: Option<WebhookConfigId>,
        wanted: &Replay,
        author: Author,
    ) -> Result<Replayed, ReplayError> {
        let _mark = self.replays.begin(app).ok_or(ReplayError::UnderWay)?;
        let place = self.replay_places.take_within(subscriber(author), PATIENCE);
        let _place = place.await.map_err(|_| ReplayError::OthersUnderWay)?;
        let endpoint = config.map_or_else(|| EndpointId::from(app), EndpointId::from);
        let now = self.clock.now();
        let mut transaction = audit::begin(&self.pool, author, now).await?;
        match receives(&mut transaction, app, endpoint).await? {
            None => return Err(ReplayError::NotFound),
            Some(false) => return Err(ReplayError::Inactive),
            Some(true) => {}
        }
        if !replay::begin(&mut transaction, endpoint).await? {
            return Err(ReplayError::UnderWay);
        }
        let waiting = replay::waiting(&mut transaction, endpoint, MOST_WAITING).await?;
        let mut room = MOST_WAITING - waiting.count;
        if room <= 0 {
            // Now, since the next request may follow before a dropped transaction has ended.
            transaction.rollback().await?;
            return Err(ReplayError::Full);
        }
        let as_of = wanted.cursor.map_or(now, |cursor| cursor.as_of.min(now));
        let filter = ReplayFilter {
            since: wanted.since,
            before: wanted.before.unwrap_or(now),
            success: wanted.success,
            event: wanted.event,
            as_of,
        };
        let mut after = wanted.cursor.and_then(|cursor| cursor.after);
        let mut replayed = Replayed {
            began: now,
            ..Replayed::default()
        };
        let (began, mut examined) = (Instant::now(), 0);
        loop {
            let due_at = now + BEHIND + TimeDelta::microseconds(replayed.queued);
            let batch = replay::batch(
                &mut transaction,
                app,
                endpoint,
                filter,
                after,
                BATCH,
                room,
                due_at,
            );
            let batch = batch.await?;
            replayed.queued += batch.queued;
            replayed.skipped += batch.skipped;
            replayed.expired += batch.expired;
            room -= batch.queued;
            examined += batch.examined;
            after = batch.last.or(after);
            let is_last = batch.examined < BATCH && !batch.is_full;
            if is_last {
                break;
            }
            if batch.is_full || examined >= MOST_EXAMINED || began.elapsed() >= PATIENCE {
                replayed.next = Some(ReplayCursor { after, as_of });
                break;
            }
        }
        if replayed.queued == 0 {
            transaction.commit().await?;
            return Ok(replayed);
        }
        let mut entry = AuditEntry::of_app(AuditAction::WebhookReplayed, app).with(json!({
            "since": iso8601(filter.since),
            "until": iso8601(filter.before - TimeDelta::milliseconds(1)),
            "success": filter.success,
            "event": filter.event,
            "queued": replayed.queued,
        }));
        if let Some(config) = config {
            entry = entry.on(config);
        }
        transaction.commit_change(entry).await?;
        Ok(replayed)
    }

    /// How many of the `queued` messages of the replay that `began` then haven't been attempted since.
    pub async fn replay_left(
        &self,
        endpoint: EndpointId,
        began: DateTime<Utc>,
        queued: i64,
    ) -> Result<i64, sqlx::Error> {
        let queued = queued.clamp(0, MOST_WAITING);
        let Some(from) = began.checked_add_signed(BEHIND) else {
            return Ok(0);
        };
        let until = from.checked_add_signed(TimeDelta::microseconds(queued));
        let mut connection = self.pool.acquire().await?;
        let until = until.unwrap_or(from);
        let left = replay::left(&mut connection, endpoint, began, from, until, queued).await?;
        Ok(left.min(queued))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cursor_is_read_as_it_was_written(millis in 0_i64..253_402_300_799_999, id in any::<Option<u128>>()) {
            let cursor = ReplayCursor {
                after: id.map(|id| WebhookDeliveryId(uuid::Uuid::from_u128(id))),
                as_of: DateTime::from_timestamp_millis(millis).unwrap_or_default(),
            };
            prop_assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }

        #[test]
        fn any_text_is_a_cursor_or_none(text in "[0-9]{0,20}([.](wdel_)?[0-9a-z]{0,27})?|.{0,40}") {
            if let Ok(cursor) = text.parse::<ReplayCursor>() {
                prop_assert_eq!(cursor.to_string().parse(), Ok(cursor));
            }
        }
    }
}
