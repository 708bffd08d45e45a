//! Limits the concurrent tasks of one loop: each takes a slot, and is cancelled at shutdown.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The slots of one loop, not shared with others.
pub(super) struct Places {
    free: Arc<Semaphore>,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Places {
    /// Creates `count` slots for tasks on a tracker, until `stop`.
    pub(super) fn new(count: usize, tracker: TaskTracker, stop: CancellationToken) -> Self {
        let free = Arc::new(Semaphore::new(count));
        Self {
            free,
            tracker,
            stop,
        }
    }

    /// How many tasks can start now.
    pub(super) fn free(&self) -> usize {
        self.free.available_permits()
    }

    /// Starts a task, if there is a free slot. If it is cancelled, its work is due again when its lease expires.
    pub(super) fn begin(&self, task: impl Future<Output = ()> + Send + 'static) {
        let Ok(place) = Arc::clone(&self.free).try_acquire_owned() else {
            return;
        };
        let stop = self.stop.clone();
        self.tracker.spawn(async move {
            let _place = place;
            tokio::select! {
                () = task => {}
                () = stop.cancelled() => {}
            }
        });
    }
}
