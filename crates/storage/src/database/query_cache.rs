//! A cache of answers to repeated queries. An answer may be stale: a caller that relies on one has the database
//! compare its version with the current one. Earlier steps, such as buffering a body for a key, rely on a recent
//! answer.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::batch_loader::BatchLoader;

/// How long an answer is used.
const FRESH: Duration = Duration::from_secs(30);

/// Queries, each with its last answer.
#[derive(Debug)]
pub struct QueryCache<K, V> {
    asked: BatchLoader<K, V>,
    /// The answers, and when each was given.
    answers: Mutex<HashMap<K, (Instant, V)>>,
    /// The largest number of answers kept.
    most: usize,
}

impl<K, V> QueryCache<K, V>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Creates an empty cache.
    #[must_use]
    pub fn new(asked: BatchLoader<K, V>, most: usize) -> Self {
        Self {
            asked,
            answers: Mutex::default(),
            most,
        }
    }

    /// Queries the database.
    pub async fn load(&self, question: &K) -> Result<Option<V>, sqlx::Error> {
        let asked_at = Instant::now();
        let answer = self.asked.load(question).await?;
        let mut answers = self.answers();
        match &answer {
            Some(answer) => {
                // If full, evict any entry: searching for the oldest would cost too much.
                if answers.len() >= self.most
                    && !answers.contains_key(question)
                    && let Some(any) = answers.keys().next().cloned()
                {
                    answers.remove(&any);
                }
                answers.insert(question.clone(), (asked_at, answer.clone()));
            }
            None => drop(answers.remove(question)),
        }
        Ok(answer)
    }

    /// The last answer, if it is fresh.
    #[must_use]
    pub fn last(&self, question: &K) -> Option<V> {
        let answers = self.answers();
        let (asked_at, answer) = answers.get(question)?;
        (asked_at.elapsed() < FRESH).then(|| answer.clone())
    }

    /// Drops the answer to a query.
    pub fn forget(&self, question: &K) {
        self.answers().remove(question);
    }

    /// Keeps only the answers for which `is_good` returns true.
    pub fn retain(&self, is_good: impl Fn(&V) -> bool) {
        self.answers().retain(|_, (_, answer)| is_good(answer));
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<K, (Instant, V)>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
