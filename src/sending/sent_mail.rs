//! Copies of sent messages for the sent mail of mailboxes whose provider keeps none. A copy is a courtesy: the message
//! is sent, and nothing waits for it. One that can't be filed while its process runs isn't filed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::Semaphore;
use tracing::Instrument;

use super::Sending;
use super::budget::Holder;
use crate::mailboxes::{Mailbox, MailboxReadError};
use crate::providers::mail::reader::{Filed, MailReader, ReadError};
use crate::providers::mail::transport::MailboxAccess;
use crate::storage::outage::trouble;
use mailgate_types::ids::{AppId, LogId};
use mailgate_types::message::Message;

/// Copies that one process files at the same time.
const PLACES: usize = 32;

/// Copies of one app that may be filed or wait for a place.
const OF_AN_APP: usize = 64;

/// Waits before the further tries.
const AGAIN: [Duration; 2] = [Duration::from_secs(10), Duration::from_mins(1)];

/// The copies that are being filed.
#[derive(Debug, Clone)]
pub(super) struct SentMail {
    places: Arc<Semaphore>,
    of_apps: Arc<Mutex<HashMap<AppId, usize>>>,
}

/// An app's place among those that file or wait.
struct Place {
    of_apps: Arc<Mutex<HashMap<AppId, usize>>>,
    app: AppId,
}

impl Default for SentMail {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(PLACES)),
            of_apps: Arc::default(),
        }
    }
}

impl SentMail {
    /// A place for one more of this app's.
    fn place(&self, app: AppId) -> Option<Place> {
        let mut of_apps = lock(&self.of_apps);
        let count = of_apps.entry(app).or_default();
        if *count == OF_AN_APP {
            return None;
        }
        *count += 1;
        let of_apps = Arc::clone(&self.of_apps);
        Some(Place { of_apps, app })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut of_apps = lock(&self.of_apps);
        if let Some(count) = of_apps.get_mut(&self.app) {
            *count -= 1;
            if *count == 0 {
                of_apps.remove(&self.app);
            }
        }
    }
}

fn lock(of_apps: &Mutex<HashMap<AppId, usize>>) -> MutexGuard<'_, HashMap<AppId, usize>> {
    of_apps.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sending {
    /// Files a copy of a message that was sent, in its own time, if its provider is one that keeps none.
    pub(super) fn file_sent(&self, app: AppId, mailbox: &Mailbox, id: LogId, message: &Message) {
        let reader = self.mailboxes.reader(mailbox.plugin, &mailbox.scopes);
        if !reader.is_some_and(MailReader::files_sent) {
            return;
        }
        let mut share = self.budget.share(Holder::App(app));
        let place = self.sent_mail.place(app);
        let (Some(place), Ok(())) = (place, share.hold(message.size())) else {
            count("left_out");
            tracing::warn!(log_id = %id, credential_id = %mailbox.id, "a sent message isn't filed: too many are being filed");
            return;
        };
        let (sending, mailbox, message) = (self.clone(), mailbox.clone(), message.clone());
        let at = self.clock.now();
        let filing = async move {
            let _held = (place, share);
            count(sending.file(&mailbox, id, &message, at).await);
        };
        self.tracker.spawn(filing.in_current_span());
    }

    /// Returns the outcome.
    async fn file(
        &self,
        mailbox: &Mailbox,
        id: LogId,
        message: &Message,
        at: DateTime<Utc>,
    ) -> &'static str {
        let mut waits = AGAIN.iter();
        loop {
            let error = match self.try_to_file(mailbox, id, message, at).await {
                Ok(Filed::Now) => return "filed",
                Ok(Filed::Before) => return "found",
                Err(error) => error,
            };
            let passes = !matches!(error, MailboxReadError::Read(ReadError::Forbidden(_)));
            let Some(wait) = waits.next().filter(|_| passes) else {
                trouble!(warn, error, log_id = %id, credential_id = %mailbox.id, "a sent message can't be filed");
                return "failed";
            };
            tokio::select! {
                () = tokio::time::sleep(*wait) => {}
                () = self.stop.cancelled() => return "left_out",
            }
        }
    }

    async fn try_to_file(
        &self,
        mailbox: &Mailbox,
        id: LogId,
        message: &Message,
        at: DateTime<Utc>,
    ) -> Result<Filed, MailboxReadError> {
        let _place = self.sent_mail.places.acquire().await;
        let forbidden = || ReadError::Forbidden("the mailbox can't be read any more".to_owned());
        let reader = self.mailboxes.reader(mailbox.plugin, &mailbox.scopes);
        let reader = reader.ok_or_else(forbidden)?;
        let question = |account: MailboxAccess| async move {
            reader.file_sent(&account, id, message, at).await
        };
        self.mailboxes.ask_reader(mailbox, question).await
    }
}

fn count(outcome: &'static str) {
    metrics::counter!("mailgate_sent_copies_total", "outcome" => outcome).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailgate_types::ids::uuid_at;

    #[test]
    fn one_app_leaves_places_to_the_others() {
        let (sent, at) = (SentMail::default(), chrono::DateTime::UNIX_EPOCH);
        let (one, other) = (AppId(uuid_at(at)), AppId(uuid_at(at)));
        let mut places: Vec<Place> = (0..OF_AN_APP).filter_map(|_| sent.place(one)).collect();
        assert_eq!(places.len(), OF_AN_APP);
        assert!(sent.place(one).is_none());
        assert!(sent.place(other).is_some());
        drop(places.pop());
        assert!(sent.place(one).is_some());
        drop(places);
        assert!(lock(&sent.of_apps).is_empty());
    }
}
