//! Marks queued messages for a check of the sent mail: after the database was restored to an earlier state.

use super::Queue;
use mailgate_storage::spool::waiting;

impl Queue {
    /// Marks messages that may have been sent after the state that the database was restored to; the mailbox's sent
    /// mail is searched for each before it is sent, as after a crash. These are the ones that are due by now and those
    /// held for their subscription; with `all` every one, since a message may have been tried before it was due.
    /// Returns the number of marked messages. Run it while no gateway runs: messages in progress would be missed.
    ///
    /// # Errors
    ///
    /// The database's error.
    pub async fn verify(&self, all: bool) -> Result<u64, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        waiting::mark_unconfirmed(&mut connection, self.clock.now(), all).await
    }
}
