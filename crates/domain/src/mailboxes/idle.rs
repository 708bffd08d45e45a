//! Refreshes the tokens of idle mailboxes before the provider lets them expire.

use chrono::TimeDelta;

use super::{Mailboxes, TokenError};
use mailgate_storage::database::outage::trouble;
use mailgate_storage::mailboxes::due;

/// Mailboxes claimed in one round.
const ROUND: i64 = 16;

/// Retry interval after a failed refresh.
const AGAIN: TimeDelta = TimeDelta::hours(1);

impl Mailboxes {
    /// Refreshes the tokens of some mailboxes that have been idle for long; returns how many there were.
    pub async fn refresh_idle(&self) -> Result<usize, sqlx::Error> {
        let now = self.clock.now();
        let due = {
            let mut connection = self.pool.acquire().await?;
            due::claim_idle_refreshes(&mut connection, now, now + AGAIN, ROUND).await?
        };
        let count = due.len();
        for mailbox in due {
            // Fetch a newer token even if the stored one is still valid.
            match self.access(&mailbox, Some(mailbox.token_generation)).await {
                // Already logged where it failed; a dead grant has disconnected the mailbox.
                Ok(_) | Err(TokenError::Disconnected | TokenError::Unavailable(_)) => {}
                Err(error) => {
                    trouble!(error, error, credential_id = %mailbox.id, "an unused token can't be refreshed");
                }
            }
        }
        Ok(count)
    }
}
