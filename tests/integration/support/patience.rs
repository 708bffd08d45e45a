//! Waits for what another task or program does in its own time.

use std::time::Duration;

/// Much longer than anything here takes, since a machine may do other things beside.
pub const PATIENCE: Duration = Duration::from_mins(3);

const POLL: Duration = Duration::from_millis(20);

/// What `find` finds at last.
///
/// # Panics
///
/// After [`PATIENCE`], with `what` there was not.
pub async fn found<T>(what: &str, mut find: impl AsyncFnMut() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = find().await {
                return found;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, found).await;
    found.unwrap_or_else(|_| panic!("no {what} within {PATIENCE:?}"))
}

/// Waits until it `is_so`.
///
/// # Panics
///
/// As [`found`].
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    found(what, async || is_so().await.then_some(())).await;
}

/// When a reader should stop that has time enough.
pub fn deadline() -> tokio::time::Instant {
    tokio::time::Instant::now() + PATIENCE
}
