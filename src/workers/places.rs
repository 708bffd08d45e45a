//! Places for what one loop has found due: each of its tasks takes one, and is cut off at the end.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The places of one loop, which nobody else takes.
pub(super) struct Places {
    free: Arc<Semaphore>,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Places {
    /// So many places for tasks on a tracker, until `stop`.
    pub(super) fn new(count: usize, tracker: TaskTracker, stop: CancellationToken) -> Self {
        let free = Arc::new(Semaphore::new(count));
        Self {
            free,
            tracker,
            stop,
        }
    }

    /// How many tasks may begin now.
    pub(super) fn free(&self) -> usize {
        self.free.available_permits()
    }

    /// Begins a task, where there is a place for it: whatever it is cut off from is due again by its lease.
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
