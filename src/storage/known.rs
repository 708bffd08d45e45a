//! Questions that are asked again and again, with their last answers. An answer may be out of date: whoever relies
//! on one lets the database compare its version with what holds by then.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::gathered::Gathered;

/// Questions, each with its last answer.
#[derive(Debug)]
pub struct Known<K, V> {
    asked: Gathered<K, V>,
    answers: Mutex<HashMap<K, V>>,
    /// Answers that are kept at most.
    most: usize,
}

impl<K: Eq + Hash + Clone, V: Clone> Known<K, V> {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(asked: Gathered<K, V>, most: usize) -> Self {
        Self {
            asked,
            answers: Mutex::default(),
            most,
        }
    }

    /// Asks the database.
    ///
    /// # Errors
    ///
    /// What it said.
    pub async fn ask(&self, question: &K) -> Result<Option<V>, sqlx::Error> {
        let answer = self.asked.ask(question).await?;
        let mut answers = self.answers();
        match &answer {
            Some(answer) => {
                // Where there are too many, all begin anew: nothing is searched through again and again.
                if answers.len() >= self.most && !answers.contains_key(question) {
                    answers.clear();
                }
                answers.insert(question.clone(), answer.clone());
            }
            None => drop(answers.remove(question)),
        }
        Ok(answer)
    }

    /// The last answer.
    #[must_use]
    pub fn last(&self, question: &K) -> Option<V> {
        self.answers().get(question).cloned()
    }

    /// The question has no answer any more that is worth keeping.
    pub fn forget(&self, question: &K) {
        self.answers().remove(question);
    }

    /// Keeps only answers that are good.
    pub fn retain(&self, is_good: impl Fn(&V) -> bool) {
        self.answers().retain(|_, answer| is_good(answer));
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<K, V>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
