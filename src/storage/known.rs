//! Questions that are asked again and again, with their last answers. An answer may be out of date: whoever relies
//! on one lets the database compare its version with what holds by then. What is done before that, such as holding a
//! body for a key, rests on an answer of the last seconds.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::batch_loader::BatchLoader;

/// How long an answer is worth anything.
const FRESH: Duration = Duration::from_secs(30);

/// Questions, each with its last answer.
#[derive(Debug)]
pub struct Known<K, V> {
    asked: BatchLoader<K, V>,
    /// And when each was given.
    answers: Mutex<HashMap<K, (Instant, V)>>,
    /// Answers that are kept at most.
    most: usize,
}

impl<K: Eq + Hash + Clone, V: Clone> Known<K, V> {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(asked: BatchLoader<K, V>, most: usize) -> Self {
        Self {
            asked,
            answers: Mutex::default(),
            most,
        }
    }

    /// Asks the database.
    pub async fn load(&self, question: &K) -> Result<Option<V>, sqlx::Error> {
        let asked_at = Instant::now();
        let answer = self.asked.load(question).await?;
        let mut answers = self.answers();
        match &answer {
            Some(answer) => {
                // Where there are too many, any of them goes: nothing is searched through.
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

    /// The last answer, where it is fresh.
    #[must_use]
    pub fn last(&self, question: &K) -> Option<V> {
        let answers = self.answers();
        let (asked_at, answer) = answers.get(question)?;
        (asked_at.elapsed() < FRESH).then(|| answer.clone())
    }

    /// The question has no answer any more that is worth keeping.
    pub fn forget(&self, question: &K) {
        self.answers().remove(question);
    }

    /// Keeps only answers that are good.
    pub fn retain(&self, is_good: impl Fn(&V) -> bool) {
        self.answers().retain(|_, (_, answer)| is_good(answer));
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<K, (Instant, V)>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
