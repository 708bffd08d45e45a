//! Scheduled messages, the next one first. They are not in the log yet, nor in its totals.

use std::time::Duration;

use super::filter::Filter;
use super::logs::{Position, Start};
use super::walk::matching;
use super::{Reports, scope};
use mailgate_storage::database::pool;
use mailgate_storage::spool::waiting::{self, Scheduled, ScheduledFilter};
use mailgate_types::ids::SubscriberId;

/// How long the database may take for a page. The queue quota bounds the rows that it reads.
const LONGEST: Duration = Duration::from_secs(5);

/// A page of scheduled messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScheduledPage {
    /// The page's messages, the next one first.
    pub messages: Vec<Scheduled>,
    /// The number of messages that match the filter; `None` for a search.
    pub total: Option<i64>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Position>,
}

impl Reports {
    /// A page of the subscriber's scheduled messages, up to `limit`. The filter's times are scheduled times; its status
    /// is ignored.
    pub async fn scheduled(
        &self,
        subscriber: SubscriberId,
        filter: &Filter,
        limit: usize,
        start: Start,
    ) -> Result<ScheduledPage, sqlx::Error> {
        let is_counted = filter.search.is_empty();
        let nothing = ScheduledPage {
            total: is_counted.then_some(0),
            ..ScheduledPage::default()
        };
        let mut snapshot = pool::snapshot_within(&self.pool, LONGEST).await?;
        let Some(scope) = scope(&mut snapshot, subscriber, filter.app.as_ref()).await? else {
            return Ok(nothing);
        };
        let matching = matching(&mut snapshot, subscriber, &scope, filter).await?;
        // An unsent message can't bounce.
        let Some(matching) = matching.filter(|it| it.bounced != Some(true)) else {
            return Ok(nothing);
        };
        let (after, offset) = match start {
            Start::Offset(offset) => (None, offset),
            Start::At(position) => (Some(position.row()), 0),
        };
        let filter = ScheduledFilter {
            subscriber,
            matching,
            id: filter.search.log,
            after,
            from: filter.from,
            before: filter.before,
        };
        let total = if is_counted {
            Some(waiting::count_scheduled(&mut snapshot, &filter).await?)
        } else {
            None
        };
        // One more than is shown, to find out whether there are later ones.
        let wanted = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let mut messages = waiting::list_scheduled(&mut snapshot, &filter, wanted, offset).await?;
        snapshot.commit().await?;
        let has_more = messages.len() > limit;
        messages.truncate(limit);
        let last = messages.last().filter(|_| has_more);
        Ok(ScheduledPage {
            next: last.map(|message| Position::behind(message.id)),
            messages,
            total,
        })
    }
}
