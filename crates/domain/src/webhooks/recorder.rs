//! Records the outcomes of attempts: all that are waiting, in one statement. While one commit runs
//! the next batch gathers.

use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::mpsc;
use tokio::time::timeout;

use mailgate_storage::database::error_class::is_refusal;
use mailgate_storage::database::outage::trouble;
use mailgate_storage::database::pool::DedicatedConnection;
use mailgate_storage::webhook_queue::{self, Attempted};

/// The largest number of attempts per commit.
const BATCH: usize = 512;

/// The number of attempts that indicates that more are coming, and how long to wait for them.
const BUSY: usize = 8;
const GATHER: Duration = Duration::from_millis(5);

/// Timeout of a commit.
const COMMIT: Duration = Duration::from_secs(15);

/// Attempts to write while the database is unavailable. Deliveries that are not recorded by then are repeated once
/// their lease has expired.
const TRIES: u32 = 10;

/// Replaces the receiver's response.
const UNSTORABLE: &str = "The receiver's words could not be stored";

/// The recorder's task.
#[derive(Debug)]
pub(super) struct Recorder {
    connection: DedicatedConnection,
    attempts: mpsc::Receiver<Attempted>,
}

/// Creates a recorder with room for `waiting` attempts, and its sender. When it is full, senders wait.
pub(super) fn recorder(pool: PgPool, waiting: usize) -> (mpsc::Sender<Attempted>, Recorder) {
    let (sender, attempts) = mpsc::channel(waiting);
    let connection = DedicatedConnection::new(pool);
    (
        sender,
        Recorder {
            connection,
            attempts,
        },
    )
}

impl Recorder {
    /// Runs until all senders are gone and everything is written.
    pub(super) async fn run(mut self) {
        let mut waiting = Vec::with_capacity(BATCH);
        while self.attempts.recv_many(&mut waiting, BATCH).await > 0 {
            // Under load more attempts follow immediately, and no caller waits for this commit.
            if (BUSY..BATCH).contains(&waiting.len()) {
                tokio::time::sleep(GATHER).await;
                while waiting.len() < BATCH
                    && let Ok(attempted) = self.attempts.try_recv()
                {
                    waiting.push(attempted);
                }
            }
            self.record(&waiting).await;
            waiting.clear();
        }
    }

    async fn record(&mut self, attempted: &[Attempted]) {
        for attempt in 0..TRIES {
            if attempt > 0 {
                tokio::time::sleep(Duration::from_millis(100) * 2_u32.pow(attempt.min(6))).await;
            }
            match self.try_record(attempted).await {
                Ok(recorded) => return count(attempted, recorded),
                Err(error @ sqlx::Error::Database(_))
                    if attempted.len() > 1 || is_refusal(&error) =>
                {
                    tracing::error!(%error, count = attempted.len(), "webhook attempts were rejected by the database; they are written one by one");
                    for one in attempted {
                        self.record_alone(one).await;
                    }
                    return;
                }
                Err(error) => {
                    trouble!(
                        error,
                        error,
                        count = attempted.len(),
                        "webhook attempts can't be recorded"
                    );
                }
            }
        }
        note_lost(attempted.len());
    }

    async fn record_alone(&mut self, attempted: &Attempted) {
        let mut recorded = self.try_record(std::slice::from_ref(attempted)).await;
        if recorded.as_ref().is_err_and(is_refusal) {
            // The response text is lost; the outcome is not.
            let minimal = Attempted {
                response_body: String::new(),
                error_message: attempted
                    .error_message
                    .as_ref()
                    .map(|_| UNSTORABLE.to_owned()),
                ..attempted.clone()
            };
            recorded = self.try_record(&[minimal]).await;
        }
        match recorded {
            Ok(recorded) => count(std::slice::from_ref(attempted), recorded),
            Err(error) => {
                let message_id = attempted.claimed.message;
                trouble!(error, error, %message_id, "a webhook attempt can't be recorded");
                note_lost(1);
            }
        }
    }

    async fn try_record(&mut self, attempted: &[Attempted]) -> Result<i64, sqlx::Error> {
        let recording = self
            .connection
            .run(async |connection| webhook_queue::record(connection, attempted).await);
        timeout(COMMIT, recording)
            .await
            .unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }
}

/// Counts attempts that were made but could not be recorded.
fn note_lost(attempts: usize) {
    metrics::counter!("mailgate_webhook_unrecorded_total").increment(attempts as u64);
}

fn count(attempted: &[Attempted], recorded: i64) {
    let lost = attempted
        .len()
        .saturating_sub(usize::try_from(recorded).unwrap_or(0));
    if lost > 0 {
        note_lost(lost);
        tracing::warn!(
            count = lost,
            "webhook attempts were not recorded: their leases had expired, or they were withdrawn"
        );
    }
}
