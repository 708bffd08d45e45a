//! Sets the limits of one subscriber for the operator, overriding the settings.

use serde_json::{Map, Value, json};

use crate::accounts::{Accounts, audit};
use mailgate_storage::subscribers::limits;
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::ids::SubscriberId;
use mailgate_types::subscriber_limit::SubscriberLimit;

impl Accounts {
    /// Sets some limits of a subscriber; `None` restores the setting. Existing items beyond a lower limit stay. Returns
    /// whether anything has changed; `None` if there is no such subscriber.
    ///
    /// # Errors
    ///
    /// The database's; nothing is changed then.
    pub async fn set_limits(
        &self,
        id: SubscriberId,
        changes: &[(SubscriberLimit, Option<i64>)],
        author: Author,
    ) -> Result<Option<bool>, sqlx::Error> {
        let now = self.clock.now();
        let begun = audit::begin_alone(&self.pool, author, id, now).await?;
        let Some(mut transaction) = begun else {
            return Ok(None);
        };
        let mut own = limits::of(&mut transaction, id).await?;
        let mut details = Map::new();
        for &(limit, to) in changes {
            let from = own.get(limit);
            if from != to {
                own.set(limit, to);
                let change = json!({ "from": from, "to": to });
                details.insert(limit.as_str().to_owned(), change);
            }
        }
        if details.is_empty() {
            return Ok(Some(false));
        }
        limits::set(&mut transaction, id, &own).await?;
        let entry = AuditEntry::of_subscriber(AuditAction::SubscriberLimitsChanged, id)
            .with(Value::Object(details));
        transaction.commit_change(entry).await?;
        Ok(Some(true))
    }
}
