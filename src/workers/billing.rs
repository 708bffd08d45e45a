//! Billing's work: the payment provider's events, jobs for it, and subscriptions due for a sync. Each kind has its own
//! slots, so that none waits for another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use mailgate_domain::billing::Billing;
use mailgate_storage::database::outage::trouble;

/// The concurrency of each kind.
const PLACES: usize = 8;

/// How often to poll for due work without being woken.
const POLL: Duration = Duration::from_secs(1);

/// How often to search for subscribers without a subscription, and delete old events.
const SELDOM: Duration = Duration::from_mins(1);

/// The slots for one kind of work.
struct Places(Arc<Semaphore>);

impl Places {
    fn new() -> Self {
        Self(Arc::new(Semaphore::new(PLACES)))
    }

    fn free(&self) -> usize {
        self.0.available_permits()
    }

    /// Takes a slot. Only one loop takes slots, so a slot that was free still is.
    fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }
}

/// Runs until `stop`; claimed work is finished on `tracker`.
pub async fn run(billing: Billing, tracker: TaskTracker, stop: CancellationToken) {
    let (events, jobs, looks) = (Places::new(), Places::new(), Places::new());
    let mut seldom_at: Option<Instant> = None;
    loop {
        if seldom_at.is_none_or(|at| at.elapsed() > SELDOM) {
            seldom(&billing).await;
            seldom_at = Some(Instant::now());
        }
        match round(&billing, &tracker, [&events, &jobs, &looks]).await {
            // There may be more.
            Ok(true) if !stop.is_cancelled() => continue,
            Ok(_) => {}
            Err(error) => trouble!(error, error, "billing's queues can't be read"),
        }
        tokio::select! {
            () = billing.woken() => {}
            () = tokio::time::sleep(POLL) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Claims as much as there are slots for; `true` if all free slots for events or for jobs were filled, so that there
/// may be more.
async fn round(
    billing: &Billing,
    tracker: &TaskTracker,
    [events, jobs, looks]: [&Places; 3],
) -> Result<bool, sqlx::Error> {
    let mut filled = false;
    if events.free() > 0 {
        let free = events.free();
        let claimed = billing.claim_events(free).await?;
        filled |= claimed.len() == free;
        for event in claimed {
            let (billing, place) = (billing.clone(), events.take());
            tracker.spawn(async move {
                billing.work_event(event).await;
                drop(place);
                billing.wake();
            });
        }
    }
    if jobs.free() > 0 {
        let free = jobs.free();
        let claimed = billing.claim_jobs(free).await?;
        filled |= claimed.len() == free;
        for job in claimed {
            let (billing, place) = (billing.clone(), jobs.take());
            tracker.spawn(async move {
                billing.work_job(job).await;
                drop(place);
                billing.wake();
            });
        }
    }
    if looks.free() > 0 {
        for subscriber in billing.claim_due_looks(looks.free()).await? {
            let (billing, place) = (billing.clone(), looks.take());
            tracker.spawn(async move {
                billing.work_sync(subscriber).await;
                drop(place);
                billing.wake();
            });
        }
    }
    Ok(filled)
}

async fn seldom(billing: &Billing) {
    if let Err(error) = billing.find_unbilled().await {
        trouble!(
            error,
            error,
            "subscribers without a subscription can't be found"
        );
    }
    if let Err(error) = billing.forget_events().await {
        trouble!(
            error,
            error,
            "old events of the payment provider can't be removed"
        );
    }
}
