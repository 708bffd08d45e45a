//! Batches queries that every message needs: while one query runs, callers that arrive meanwhile are gathered for the
//! next. A query begins after all of its callers have arrived, so no result is older than its request, and a commit by
//! another replica is visible immediately.

use std::collections::HashMap;
use std::fmt::{Debug, Formatter};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::{PgConnection, PgPool};
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use super::outage::Outage as _;
use super::pool::DedicatedConnection;

/// Timeout of a query: the database's host may have vanished.
const QUERY: Duration = Duration::from_secs(10);

/// Loads the values of any number of keys, in order.
type Query<K, V> =
    for<'a> fn(&'a mut PgConnection, &'a [K]) -> BoxFuture<'a, Result<Vec<Option<V>>, sqlx::Error>>;

/// The result of one query, shared by all who wait for it.
type Answers<V> = Arc<OnceLock<Result<Vec<Option<V>>, Said>>>;

/// A database error that can be handed to many callers.
#[derive(Debug, Clone)]
enum Said {
    /// The database is unavailable.
    Outage(String),
    /// Any other error.
    Other(String),
}

impl From<sqlx::Error> for Said {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Io(error) => Self::Outage(error.to_string()),
            error if error.is_outage() => Self::Outage(error.to_string()),
            error => Self::Other(error.to_string()),
        }
    }
}

impl From<Said> for sqlx::Error {
    fn from(said: Said) -> Self {
        match said {
            Said::Outage(text) => Self::Io(std::io::Error::other(text)),
            Said::Other(text) => Self::Protocol(text),
        }
    }
}

/// Keys waiting for their query.
struct Batch<K, V> {
    /// Each key, with the index of its value.
    questions: HashMap<K, usize>,
    answers: Answers<V>,
}

/// Loads one kind of value, over a connection of its own.
pub struct BatchLoader<K, V> {
    query: Query<K, V>,
    waiting: Mutex<Option<Batch<K, V>>>,
    turn: Arc<tokio::sync::Mutex<DedicatedConnection>>,
}

/// Loads all keys of a batch.
async fn ask<K, V>(
    mut own: OwnedMutexGuard<DedicatedConnection>,
    query: Query<K, V>,
    questions: Vec<K>,
    answers: Answers<V>,
) where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    let asked = own.run(async |connection| query(connection, &questions).await);
    let result = timeout(QUERY, asked).await;
    let result = result.unwrap_or(Err(sqlx::Error::PoolTimedOut));
    // Only this task holds these keys.
    let _ = answers.set(result.map_err(Said::from));
}

impl<K, V> Debug for BatchLoader<K, V> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("BatchLoader")
            .finish_non_exhaustive()
    }
}

impl<K, V> BatchLoader<K, V>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Creates an empty loader.
    #[must_use]
    pub fn new(pool: PgPool, query: Query<K, V>) -> Self {
        Self {
            query,
            waiting: Mutex::new(None),
            turn: Arc::new(tokio::sync::Mutex::new(DedicatedConnection::new(pool))),
        }
    }

    /// Loads one value.
    pub async fn load(&self, question: &K) -> Result<Option<V>, sqlx::Error> {
        loop {
            let (answers, place) = self.join(question);
            let own = Arc::clone(&self.turn).lock_owned().await;
            // The first caller of a batch to get here runs the query for all of it.
            if let Some(questions) = self.take(&answers) {
                let asking = ask(own, self.query, questions, Arc::clone(&answers));
                // In a task of its own: a caller that disconnects, or resets streams repeatedly, cancels neither the
                // others' result nor the connection, which an abandoned query would lose.
                let asked = tokio::spawn(asking).await;
                asked.map_err(|_| sqlx::Error::WorkerCrashed)?;
            } else {
                drop(own);
            }
            match answers.get() {
                Some(Ok(answers)) => return Ok(answers.get(place).cloned().flatten()),
                Some(Err(error)) => return Err(error.clone().into()),
                // The query has panicked; its caller gets an error.
                None => {}
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Batch<K, V>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a key to the waiting batch.
    fn join(&self, question: &K) -> (Answers<V>, usize) {
        let mut waiting = self.waiting();
        let batch = waiting.get_or_insert_with(|| Batch {
            questions: HashMap::new(),
            answers: Arc::default(),
        });
        let next = batch.questions.len();
        let place = *batch.questions.entry(question.clone()).or_insert(next);
        (Arc::clone(&batch.answers), place)
    }

    /// The keys of a batch in order, if it is still waiting. No more callers can join it.
    fn take(&self, answers: &Answers<V>) -> Option<Vec<K>> {
        let batch = self
            .waiting()
            .take_if(|batch| Arc::ptr_eq(&batch.answers, answers))?;
        let mut questions: Vec<(K, usize)> = batch.questions.into_iter().collect();
        questions.sort_unstable_by_key(|(_, place)| *place);
        Some(
            questions
                .into_iter()
                .map(|(question, _)| question)
                .collect(),
        )
    }
}
