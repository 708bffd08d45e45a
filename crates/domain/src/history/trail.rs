//! Entries of the audit trail.

use chrono::{DateTime, Utc};

use super::{History, HistoryError};
use mailgate_storage::audit_entries;
use mailgate_types::audit::{AuditEntry, Author};
use mailgate_types::ids::AuditEntryId;

impl History {
    /// Writes what an author has changed, and when. Their apps must exist.
    pub async fn write_trail(
        &self,
        author: Author,
        entries: &[(DateTime<Utc>, AuditEntry)],
    ) -> Result<(), HistoryError> {
        let entries: Vec<(AuditEntryId, AuditEntry)> = entries
            .iter()
            .map(|(at, entry)| (AuditEntryId::at(*at), entry.clone()))
            .collect();
        let mut connection = self.pool.acquire().await?;
        audit_entries::insert(&mut connection, author, &entries).await?;
        Ok(())
    }
}
