//! Connections kept per mailbox between messages. One that was authenticated with an older access token is never
//! reused.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connection::Connection;
use mailgate_types::ids::CredentialId;

pub(super) struct IdleConnections {
    kept: Mutex<HashMap<CredentialId, Kept>>,
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
            longest,
            per_mailbox,
        }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<CredentialId, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection used last, which is the most likely to be alive.
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
        self.kept().retain(|_, mailbox| {
            mailbox
                .connections
                .retain(|(since, _)| since.elapsed() < self.longest);
            !mailbox.connections.is_empty()
        });
    }
}
