//! Adds up what the journal has counted.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::pause;
use crate::reports::Reports;
use crate::storage::outage::trouble;

/// How often it looks: reports read what waits, and that is little then.
const EVERY: Duration = Duration::from_secs(1);

/// Places that are worth giving back.
const PLACES: i64 = 1_000;

/// Runs until `stop`.
pub async fn run(reports: Reports, stop: CancellationToken) {
    let mut spent = 0;
    loop {
        match round(&reports, &mut spent).await {
            Ok(()) => {}
            Err(error) => trouble!(error, error, "message counts can't be aggregated"),
        }
        if !pause(EVERY, &stop).await {
            return;
        }
    }
}

async fn round(reports: &Reports, spent: &mut i64) -> Result<(), sqlx::Error> {
    *spent += reports.fold_counters().await?;
    if *spent >= PLACES {
        reports.vacuum_counters().await?;
        *spent = 0;
    }
    Ok(())
}
