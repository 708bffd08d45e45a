//! The audit trail, by page, using indexes whatever the number of entries.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{AppReference, Reports};
use mailgate_storage::apps;
use mailgate_storage::audit_entries::{self, Range, StoredEntry};
use mailgate_types::audit::AuditAction;
use mailgate_types::ids::{AppId, AuditEntryId, SubscriberId, lowest_uuid_at};

/// Selects entries.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Of one app, which may be deleted.
    pub app: Option<AppReference>,
    /// Of one kind of change.
    pub action: Option<AuditAction>,
    /// From this time on.
    pub from: Option<DateTime<Utc>>,
    /// Before this time.
    pub before: Option<DateTime<Utc>>,
    /// Older than this entry.
    pub older_than: Option<AuditEntryId>,
}

impl AuditFilter {
    fn range<'a>(&self, app: Option<AppId>, actions: &'a [AuditAction]) -> Range<'a> {
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
    /// Whether there are older ones.
    pub has_more: bool,
}

impl Reports {
    /// A page of a subscriber's audit trail.
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
        let one = filter.action.map(|action| [action]);
        let actions = one.as_ref().map_or(&AuditAction::ALL[..], |one| &one[..]);
        let range = filter.range(app, actions);
        // One more than is shown, to find out whether there are older ones.
        let wanted = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let mut entries =
            audit_entries::list(&mut connection, subscriber, range, offset, wanted).await?;
        let has_more = entries.len() > limit;
        entries.truncate(limit);
        Ok(AuditPage { entries, has_more })
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
