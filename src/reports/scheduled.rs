//! Messages that are to leave later. They are not in the log yet, and no total of it counts them.

use super::filter::Filter;
use super::{Reports, Scope, scope};
use crate::storage::spool::waiting::{self, Scheduled, ScheduledFilter};
use mailgate_types::ids::{Owner, SubscriberId};

/// A page of scheduled messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScheduledPage {
    /// The page's messages, the next to leave first.
    pub messages: Vec<Scheduled>,
    /// The number of messages that match the filter.
    pub total: i64,
    /// Whether there are later ones than those of this page.
    pub has_more: bool,
}

impl Reports {
    /// A page of the subscriber's scheduled messages: up to `limit`, without the first `offset`. The filter's times are
    /// those at which they leave; its status is ignored.
    pub async fn scheduled(
        &self,
        subscriber: SubscriberId,
        filter: &Filter,
        limit: i64,
        offset: i64,
    ) -> Result<ScheduledPage, sqlx::Error> {
        let mut snapshot = self.snapshot().await?;
        let Some(Scope { owner, .. }) =
            scope(&mut snapshot, subscriber, filter.app.as_ref()).await?
        else {
            return Ok(ScheduledPage::default());
        };
        let filter = ScheduledFilter {
            subscriber,
            app: match owner {
                Owner::App(app) => Some(app),
                Owner::Subscriber(_) => None,
            },
            plugin: filter.plugin,
            from: filter.from,
            before: filter.before,
        };
        let total = waiting::count_scheduled(&mut snapshot, filter).await?;
        let messages = waiting::list_scheduled(&mut snapshot, filter, limit, offset).await?;
        snapshot.commit().await?;
        let shown = i64::try_from(messages.len()).unwrap_or(i64::MAX);
        Ok(ScheduledPage {
            has_more: offset.saturating_add(shown) < total && shown > 0,
            messages,
            total,
        })
    }
}
