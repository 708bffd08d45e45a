//! Has what waits looked up before it is sent: after the database was restored to an earlier moment.

use super::Queue;
use mailgate_storage::spool::waiting;

impl Queue {
    /// Marks messages that may have been sent since the moment that the database was restored to; the mailbox's sent
    /// mail is searched for each before it is sent, as after a crash. These are the ones that are due by now and those
    /// that their subscription held; with `all` every one, since a message can have been tried before it was due.
    /// Returns how many it marked. To be run while no gateway runs: what one has in hand is past it.
    ///
    /// # Errors
    ///
    /// The database's error.
    pub async fn verify(&self, all: bool) -> Result<u64, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        waiting::mark_unconfirmed(&mut connection, self.clock.now(), all).await
    }
}
