//! The end of the process: a signal asks everybody to finish, a deadline ends what doesn't.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long what has nothing in hand may take to end.
const IDLE: Duration = Duration::from_secs(1);

/// How the process ends.
#[derive(Debug, Clone, Copy)]
pub struct ShutdownSettings {
    /// How long `/readyz` says so before nothing new is taken any more.
    pub announce: Duration,
    /// How long work in hand may take then.
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
    /// Say that the end is near, and go on as before.
    pub announced: CancellationToken,
    /// Take nothing new, finish what is in hand.
    pub soft: CancellationToken,
    /// Stop.
    pub hard: CancellationToken,
    /// Everything that runs.
    pub tracker: TaskTracker,
    /// Why the process ends that nobody has asked to.
    failure: Arc<OnceLock<String>>,
    settings: ShutdownSettings,
}

impl Shutdown {
    /// With times of the settings' own.
    #[must_use]
    pub fn new(settings: ShutdownSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Ends the process as one that has failed: it takes nothing new, and finishes what is in hand.
    pub fn fail(&self, why: String) {
        tracing::error!("{why}");
        // The first reason is the one that counts.
        let _ = self.failure.set(why);
        self.soft.cancel();
    }

    /// Why the process ends that nobody has asked to.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Runs a task on the tracker without which the process is of no use: when it panics, the process ends.
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

    /// Waits for SIGTERM or SIGINT, or until somebody has cancelled `soft`.
    ///
    /// # Errors
    ///
    /// When signals can't be listened to.
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

    /// Announces the end, asks everybody to finish and waits for it, until the deadline or a second signal. Answers how
    /// many tasks a second signal has cut off in their work.
    ///
    /// # Errors
    ///
    /// When signals can't be listened to.
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

    /// What is idle ends by itself; answers how many tasks don't.
    async fn stop_now(&self) -> usize {
        tracing::warn!("second signal: stopping immediately");
        self.soft.cancel();
        self.tracker.close();
        // Either way what is left is counted.
        let _ = tokio::time::timeout(IDLE, self.tracker.wait()).await;
        self.tracker.len()
    }
}
