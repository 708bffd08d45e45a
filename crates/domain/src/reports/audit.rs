//! The audit trail, by page, using indexes whatever the number of entries.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{AppReference, Reports};
use mailgate_storage::apps;
use mailgate_storage::audit_entries::{self, Range, StoredEntry};
use mailgate_types::audit::{Actor, AuditAction};
use mailgate_types::ids::{AppId, AuditEntryId, SubscriberId, lowest_uuid_at};

/// Selects entries.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Of one app, which may be deleted.
    pub app: Option<AppReference>,
    /// Of these kinds of changes; empty: of all.
    pub actions: Vec<AuditAction>,
    /// By this actor.
    pub actor: Option<Actor>,
    /// From this time on.
    pub from: Option<DateTime<Utc>>,
    /// Before this time.
    pub before: Option<DateTime<Utc>>,
    /// Older than this entry.
    pub older_than: Option<AuditEntryId>,
}

impl AuditFilter {
    fn range(&self, app: Option<AppId>) -> Range<'_> {
        let actions = if self.actions.is_empty() {
            &AuditAction::ALL[..]
        } else {
            &self.actions
        };
        let before = self.before.map_or(Uuid::max(), lowest_uuid_at);
        Range {
            app,
            actions,
            from: self.from.map_or(Uuid::nil(), lowest_uuid_at),
            before: self.older_than.map_or(before, |id| id.0.min(before)),
        }
    }
}

/// A page of the audit trail.
#[derive(Debug, Default)]
pub struct AuditPage {
    /// Newest first.
    pub entries: Vec<StoredEntry>,
    /// The older ones are older than this entry; `None`: there are none.
    pub next: Option<AuditEntryId>,
}

/// Entries that a page reads to find those of an actor. No index has the actor: without a bound, a page of a rare one
/// would read the whole trail.
const SEARCHED: usize = 1_000;

impl Reports {
    /// A page of a subscriber's audit trail, without the first `offset` entries. With an actor it may have fewer than
    /// `limit` entries although older ones match, and `offset` skips those of other actors too.
    pub async fn audit(
        &self,
        subscriber: SubscriberId,
        filter: &AuditFilter,
        limit: usize,
        offset: i64,
    ) -> Result<AuditPage, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let app = match &filter.app {
            None => None,
            Some(reference) => match referred(&mut connection, subscriber, reference).await? {
                Some(app) => Some(app),
                None => return Ok(AuditPage::default()),
            },
        };
        let read = if filter.actor.is_some() {
            SEARCHED
        } else {
            limit
        };
        // One more than is read, to find out whether there are older ones.
        let wanted = i64::try_from(read).unwrap_or(i64::MAX).saturating_add(1);
        let range = filter.range(app);
        let mut entries =
            audit_entries::list(&mut connection, subscriber, range, offset, wanted).await?;
        let has_more = entries.len() > read;
        entries.truncate(read);
        let last = entries.last().map(|entry| entry.id);
        if let Some(actor) = filter.actor {
            entries.retain(|entry| entry.actor == actor.as_str());
        }
        let next = if entries.len() > limit {
            entries.truncate(limit);
            entries.last().map(|entry| entry.id)
        } else {
            last.filter(|_| has_more)
        };
        let next = next.map(AuditEntryId);
        Ok(AuditPage { entries, next })
    }
}

/// The app of a reference: an existing one, or else a deleted one.
async fn referred(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    reference: &AppReference,
) -> Result<Option<AppId>, sqlx::Error> {
    let AppReference(slug) = reference;
    let id = reference.id();
    let here = apps::find_referred(connection, subscriber, id, slug).await?;
    match here.or(id) {
        Some(app) => Ok(Some(app)),
        None => audit_entries::find_deleted_app(connection, subscriber, slug).await,
    }
}
