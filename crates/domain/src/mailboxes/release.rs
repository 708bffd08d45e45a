//! Releases a user: from then on a bare link, which anyone can write, may connect any address for them, as for a new
//! user.

use serde_json::json;

use super::Mailboxes;
use crate::accounts::audit;
use mailgate_storage::mailboxes::end;
use mailgate_storage::{apps, end_users};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::event::DisconnectReason;
use mailgate_types::ids::{AppId, UserKey};

impl Mailboxes {
    /// Disconnects an app's user's connected mailboxes, as [`Mailboxes::disconnect`] does, and forgets the user's
    /// connect session. Returns the number of mailboxes; `None` if the app has no such user.
    ///
    /// # Errors
    ///
    /// If the database fails; nothing has changed then.
    pub async fn release_user(
        &self,
        app: AppId,
        user: UserKey,
        author: Author,
    ) -> Result<Option<usize>, sqlx::Error> {
        let mut transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        // Locked, so that no mailbox is connected meanwhile.
        if apps::lock(&mut transaction, app).await?.is_none() {
            return Ok(None);
        }
        let Some(user_id) = end_users::find(&mut transaction, app, user).await? else {
            return Ok(None);
        };
        let mut ended = Vec::new();
        for id in end::all_of(&mut transaction, user).await? {
            let reason = DisconnectReason::Removed;
            let one = self.end(&mut transaction, id, None, reason);
            ended.extend(one.await?);
        }
        let was_vouched = end_users::release(&mut transaction, user).await?;
        let disconnected = ended.len();
        // Without a change there is no audit entry.
        if was_vouched || disconnected > 0 {
            end_users::remove_unused(&mut transaction, &[user]).await?;
            let entry = AuditEntry::of_app(AuditAction::UserReleased, app)
                .on(user)
                .with(json!({ "user_id": user_id, "disconnected": disconnected }));
            transaction.commit_change(entry).await?;
            self.revoke(self.spent_grants(ended));
        }
        Ok(Some(disconnected))
    }
}
