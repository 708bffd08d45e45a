//! What is kept by mailbox: places for submissions, and connections between messages. A connection
//! that an older access token opened is never used again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::connection::Connection;
use crate::types::ids::CredentialId;

pub(super) struct IdleConnections {
    kept: Mutex<HashMap<CredentialId, Kept>>,
    places: Mutex<HashMap<CredentialId, Arc<Semaphore>>>,
    longest: Duration,
    per_mailbox: usize,
}

struct Kept {
    generation: i64,
    connections: Vec<(Instant, Connection)>,
}

impl IdleConnections {
    pub(super) fn new(longest: Duration, per_mailbox: usize) -> Self {
        Self {
            kept: Mutex::default(),
            places: Mutex::default(),
            longest,
            per_mailbox,
        }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<CredentialId, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The places of a mailbox: as many as it may have submissions under way.
    pub(super) fn places(&self, credential: CredentialId) -> Arc<Semaphore> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let of_mailbox = places
            .entry(credential)
            .or_insert_with(|| Arc::new(Semaphore::new(self.per_mailbox)));
        Arc::clone(of_mailbox)
    }

    /// The connection used last, which is the likeliest to live.
    pub(super) fn take(&self, credential: CredentialId, generation: i64) -> Option<Connection> {
        let mut kept = self.kept();
        let mailbox = kept.get_mut(&credential)?;
        if mailbox.generation < generation {
            kept.remove(&credential);
            return None;
        }
        if mailbox.generation > generation {
            return None;
        }
        mailbox
            .connections
            .pop()
            .filter(|(since, _)| since.elapsed() < self.longest)
            .map(|(_, connection)| connection)
    }

    pub(super) fn put(&self, credential: CredentialId, generation: i64, connection: Connection) {
        let mut kept = self.kept();
        let mailbox = kept.entry(credential).or_insert(Kept {
            generation,
            connections: Vec::new(),
        });
        if mailbox.generation < generation {
            mailbox.generation = generation;
            mailbox.connections.clear();
        }
        if mailbox.generation == generation && mailbox.connections.len() < self.per_mailbox {
            mailbox.connections.push((Instant::now(), connection));
        }
    }

    pub(super) fn drop_expired(&self) {
        self.places
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|_, places| Arc::strong_count(places) > 1);
        self.kept().retain(|_, mailbox| {
            mailbox
                .connections
                .retain(|(since, _)| since.elapsed() < self.longest);
            !mailbox.connections.is_empty()
        });
    }
}
