//! Graceful shutdown: a signal asks all tasks to finish, and a deadline ends the others.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long idle tasks may take to end.
const IDLE: Duration = Duration::from_secs(1);

/// How the process ends.
#[derive(Debug, Clone, Copy)]
pub struct ShutdownSettings {
    /// How long `/readyz` announces the shutdown before new work is refused.
    pub announce: Duration,
    /// How long work in progress may take after that.
    pub deadline: Duration,
}

impl Default for ShutdownSettings {
    fn default() -> Self {
        Self {
            announce: Duration::ZERO,
            deadline: Duration::from_secs(30),
        }
    }
}

/// The tokens of one process, cancelled in this order.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Announce the shutdown, and continue as before.
    pub announced: CancellationToken,
    /// Accept nothing new, and finish work in progress.
    pub soft: CancellationToken,
    /// Stop.
    pub hard: CancellationToken,
    /// All tasks.
    pub tracker: TaskTracker,
    /// Why the process ends without being asked to.
    failure: Arc<OnceLock<String>>,
    settings: ShutdownSettings,
}

impl Shutdown {
    /// Creates the tokens with the configured times.
    #[must_use]
    pub fn new(settings: ShutdownSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Ends the process as failed: it accepts nothing new, and finishes work in progress.
    pub fn fail(&self, why: String) {
        tracing::error!("{why}");
        // Only the first reason counts.
        let _ = self.failure.set(why);
        self.soft.cancel();
    }

    /// Why the process ends without being asked to.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Spawns a task that the process can't do without: if it panics, the process ends.
    pub fn spawn_vital(&self, what: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let shutdown = self.clone();
        self.tracker.spawn(async move {
            if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
                let text = (panic.downcast_ref::<&str>().copied())
                    .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
                let text = text.unwrap_or("no text");
                shutdown.fail(format!("{what} has panicked, and the process ends: {text}"));
            }
        });
    }

    /// Waits for SIGTERM or SIGINT, or until `soft` is cancelled.
    ///
    /// # Errors
    ///
    /// The signal handlers can't be installed.
    pub async fn requested(&self) -> std::io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = self.soft.cancelled() => {}
        }
        Ok(())
    }

    /// Announces the shutdown, and waits for all tasks to finish, until the deadline or a second signal. Returns the
    /// number of tasks that a second signal has cut off.
    ///
    /// # Errors
    ///
    /// The signal handlers can't be installed.
    pub async fn finish(&self) -> std::io::Result<usize> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let ended = async {
            self.announced.cancel();
            if !self.soft.is_cancelled() {
                tokio::time::sleep(self.settings.announce).await;
            }
            self.soft.cancel();
            self.tracker.close();
            tokio::select! {
                () = self.tracker.wait() => {}
                () = tokio::time::sleep(self.settings.deadline) => {
                    tracing::warn!(tasks = self.tracker.len(), "the deadline has passed; cutting off what still runs");
                }
            }
        };
        let cut = tokio::select! {
            () = ended => 0,
            _ = terminate.recv() => self.stop_now().await,
            _ = interrupt.recv() => self.stop_now().await,
        };
        self.soft.cancel();
        self.hard.cancel();
        Ok(cut)
    }

    /// Waits for idle tasks to end; returns the number of tasks left.
    async fn stop_now(&self) -> usize {
        tracing::warn!("second signal: stopping immediately");
        self.soft.cancel();
        self.tracker.close();
        // Either way the remaining tasks are counted.
        let _ = tokio::time::timeout(IDLE, self.tracker.wait()).await;
        self.tracker.len()
    }
}
