//! The entries of one commit.

use std::collections::HashSet;

use serde_json::Value;

use super::ending::Ending;
use super::{Entry, Waiting};
use mailgate_storage::idempotency_keys::NewKey;
use mailgate_storage::spool::{Closing, Opening};
use mailgate_types::ids::{AppId, LogId};

/// The entries of one commit, by kind.
#[derive(Default)]
pub(super) struct Batch<'a> {
    pub(super) openings: Vec<&'a Opening>,
    pub(super) keys: Vec<&'a NewKey>,
    pub(super) endings: Vec<&'a Ending>,
    /// Messages whose untrusted text is removed before they end.
    pub(super) stripped: Vec<LogId>,
}

impl<'a> Batch<'a> {
    pub(super) fn of(waiting: &'a [Waiting]) -> Self {
        let mut batch = Self::default();
        for Waiting {
            entry, is_minimal, ..
        } in waiting
        {
            match entry {
                Entry::Open(opening, key) => {
                    batch.openings.push(opening);
                    batch.keys.extend(key);
                }
                Entry::Close(ending) => {
                    batch.endings.push(ending);
                    batch
                        .stripped
                        .extend(is_minimal.then_some(ending.closing.id));
                }
            }
        }
        batch
    }

    /// The answers to store under idempotency keys, except those of endings that were left.
    pub(super) fn answers(&self, left: &HashSet<LogId>) -> Vec<(AppId, &'a str, &'a Value)> {
        (self.endings.iter())
            .filter(|ending| !left.contains(&ending.closing.id))
            .filter_map(|ending| {
                let (key, answer) = ending.answer.as_ref()?;
                Some((ending.emission.app, key.as_str(), answer))
            })
            .collect()
    }

    /// Keys to free: those of endings that say so, and of openings that weren't written.
    pub(super) fn freed(&self, stale: &HashSet<LogId>) -> Vec<(AppId, &'a str, LogId)> {
        let of_endings = (self.endings.iter()).filter_map(|ending| {
            let key = ending.freed_key.as_deref()?;
            Some((ending.emission.app, key, ending.closing.id))
        });
        let of_openings = (self.keys.iter())
            .filter(|key| stale.contains(&key.log))
            .map(|key| (key.app, key.key.as_str(), key.log));
        of_endings.chain(of_openings).collect()
    }

    /// Whether the batch takes a single statement.
    pub(super) fn is_plain(&self) -> bool {
        self.keys.is_empty()
            && self.stripped.is_empty()
            && (self.endings.iter())
                .all(|ending| ending.answer.is_none() && ending.freed_key.is_none())
    }

    pub(super) fn closings(&self) -> Vec<&'a Closing> {
        self.endings.iter().map(|ending| &ending.closing).collect()
    }
}
