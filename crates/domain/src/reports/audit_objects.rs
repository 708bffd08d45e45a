//! The objects of audit trail entries that still exist.

use std::collections::HashMap;

use serde_json::Value;
use uuid::Uuid;

use super::Reports;
use mailgate_storage::audit_entries::{self, AuditObject, StoredEntry};
use mailgate_types::ids::{CredentialId, LogId, SendKeyId, SubscriberId, WebhookConfigId};

impl Reports {
    /// The apps of these entries, and the mailboxes, webhook configurations, send keys and messages that they concern,
    /// by their UUIDs. Those that no longer exist are missing.
    pub async fn audit_objects(
        &self,
        subscriber: SubscriberId,
        entries: &[StoredEntry],
    ) -> Result<HashMap<Uuid, AuditObject>, sqlx::Error> {
        let mut ids: Vec<Uuid> = (entries.iter())
            .flat_map(|entry| {
                // A delivery's configuration is in the details.
                let configuration = entry.details.get("webhook_id").and_then(Value::as_str);
                let texts = [entry.target.as_deref(), configuration];
                let targets = texts.into_iter().flatten().filter_map(uuid);
                entry.app_id.into_iter().chain(targets)
            })
            .collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let mut connection = self.pool.acquire().await?;
        let found = audit_entries::objects(&mut connection, subscriber, &ids).await?;
        Ok(found
            .into_iter()
            .map(|object| (object.id, object))
            .collect())
    }
}

/// The UUID of a target that the portal has a page for.
fn uuid(target: &str) -> Option<Uuid> {
    let mailbox = target.parse().map(|CredentialId(id)| id);
    let webhook = || target.parse().map(|WebhookConfigId(id)| id);
    let key = || target.parse().map(|SendKeyId(id)| id);
    let message = || target.parse().map(|LogId(id)| id);
    let found = mailbox.or_else(|_| webhook());
    found.or_else(|_| key()).or_else(|_| message()).ok()
}
