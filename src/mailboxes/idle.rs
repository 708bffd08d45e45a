//! Tokens that nobody uses are refreshed all the same, before the provider lets them lapse.

use chrono::TimeDelta;

use super::{Mailboxes, TokenError};
use crate::storage::mailboxes::due;
use crate::storage::outage::trouble;

/// Mailboxes that are taken up together.
const ROUND: i64 = 16;

/// When a refresh that failed is tried again.
const AGAIN: TimeDelta = TimeDelta::hours(1);

impl Mailboxes {
    /// Refreshes the tokens of some mailboxes that have not been used for long; answers how many there
    /// were.
    pub async fn refresh_idle(&self) -> Result<usize, sqlx::Error> {
        let now = self.clock.now();
        let due = {
            let mut connection = self.pool.acquire().await?;
            due::claim_idle_refreshes(&mut connection, now, now + AGAIN, ROUND).await?
        };
        let count = due.len();
        for mailbox in due {
            // Whatever the stored token is worth, a newer one is asked for.
            match self.account(&mailbox, Some(mailbox.token_generation)).await {
                // What went wrong was told where it did; a dead grant has ended the mailbox.
                Ok(_) | Err(TokenError::Disconnected | TokenError::Unavailable(_)) => {}
                Err(error) => {
                    trouble!(error, error, credential_id = %mailbox.id, "an unused token can't be refreshed");
                }
            }
        }
        Ok(count)
    }
}
