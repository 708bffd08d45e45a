//! Folds the journal's counter changes.

use chrono::TimeDelta;

use super::Reports;
use mailgate_storage::database::transaction;
use mailgate_storage::email_counters;
use mailgate_types::past::Past;

/// Changes folded per transaction.
const BATCH: i64 = 10_000;

/// How many single months are kept: the twelve that are shown, and one more for replicas whose clocks differ.
const SHOWN: TimeDelta = TimeDelta::days(397);

/// The longest one.
const A_MONTH: TimeDelta = TimeDelta::days(31);

/// Months folded per transaction.
const MONTHS_BATCH: i64 = 100;

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

    /// Folds the months that no report shows singly any more: neither the last twelve nor the log's. Totals are
    /// unchanged. Any number of replicas may call it: one at a time does the work.
    pub async fn fold_months(&self, log_retention_days: u32) -> Result<(), sqlx::Error> {
        // The log may begin within a month, which is shown in days then.
        let logged = TimeDelta::days(log_retention_days.into()) + A_MONTH;
        let shown = SHOWN.max(logged);
        let past = Past::by(&self.clock).before(shown);
        loop {
            let mut transaction = transaction::begin(&self.pool).await?;
            if !email_counters::try_lock(&mut transaction).await? {
                return Ok(());
            }
            let folded = email_counters::fold_months(&mut transaction, past, MONTHS_BATCH).await?;
            transaction.commit().await?;
            if folded == 0 {
                return Ok(());
            }
        }
    }

    /// Reclaims the space of folded changes.
    pub async fn vacuum_counters(&self) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        email_counters::vacuum(&mut connection).await
    }
}
