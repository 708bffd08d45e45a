//! Folds what the journal has counted.

use super::Reports;
use crate::storage::{email_counters, transaction};

/// Changes folded per transaction.
const BATCH: i64 = 10_000;

impl Reports {
    /// Folds recent changes; returns how many there were. Reports are correct without it, and only take longer. Any
    /// number of replicas may call it: one at a time does the work.
    pub async fn fold_counters(&self) -> Result<i64, sqlx::Error> {
        let mut all = 0;
        loop {
            let mut transaction = transaction::begin(&self.pool).await?;
            if !email_counters::try_lock(&mut transaction).await? {
                return Ok(all);
            }
            let messages = email_counters::fold(&mut transaction, BATCH).await?;
            let bounced = email_counters::fold_bounced(&mut transaction, BATCH).await?;
            transaction.commit().await?;
            let added = messages.max(bounced);
            all += added;
            if added < BATCH {
                return Ok(all);
            }
        }
    }

    /// Reclaims the space of folded changes.
    pub async fn vacuum_counters(&self) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        email_counters::vacuum(&mut connection).await
    }
}
