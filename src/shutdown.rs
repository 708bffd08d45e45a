//! The end of the process: a signal asks everybody to finish, a deadline ends what doesn't.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long work in hand may take once the end was asked for.
const DEADLINE: Duration = Duration::from_secs(30);

/// The tokens of one process.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Take nothing new, finish what is in hand.
    pub soft: CancellationToken,
    /// Stop.
    pub hard: CancellationToken,
    /// Everything that runs.
    pub tracker: TaskTracker,
}

impl Shutdown {
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

    /// Asks everybody to finish and waits for it, until the deadline or a second signal.
    ///
    /// # Errors
    ///
    /// When signals can't be listened to.
    pub async fn finish(&self) -> std::io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        self.soft.cancel();
        self.tracker.close();
        tokio::select! {
            () = self.tracker.wait() => {}
            () = tokio::time::sleep(DEADLINE) => {
                tracing::warn!(tasks = self.tracker.len(), "the deadline has passed; ending what still runs");
            }
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        self.hard.cancel();
        Ok(())
    }
}
