//! Copies of sent messages for the sent mail of mailboxes whose provider keeps none. A copy is a courtesy: the message
//! is sent, and nothing waits for it. One that can't be filed while its process runs isn't filed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
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

/// Copies that one process files at the same time, and how many of them one app's.
const PLACES: usize = 64;
const PLACES_OF_AN_APP: usize = 8;

/// Copies of one app that may be filed or wait for a place.
const OF_AN_APP: usize = 64;

/// How long the provider has refused to let the mailbox be read once no copy is tried any more.
const REFUSED: TimeDelta = TimeDelta::hours(1);

/// Waits before the further tries.
const AGAIN: [Duration; 2] = [Duration::from_secs(10), Duration::from_mins(1)];

/// What became of a copy, as it is counted.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Filed,
    Found,
    Failed,
    LeftOut,
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Filed => "filed",
            Self::Found => "found",
            Self::Failed => "failed",
            Self::LeftOut => "left_out",
        }
    }

    fn count(self) {
        let outcome = self.as_str();
        metrics::counter!("mailgate_sent_copies_total", "outcome" => outcome).increment(1);
    }
}

/// The copies that are being filed.
#[derive(Debug, Clone)]
pub(super) struct SentMail {
    places: Arc<Semaphore>,
    of_apps: OfApps,
}

/// The places of each app that files or waits, by which its copies are counted too.
type OfApps = Arc<Mutex<HashMap<AppId, Arc<Semaphore>>>>;

/// One of an app's that files or waits.
struct Place {
    of_apps: OfApps,
    app: AppId,
    places: Arc<Semaphore>,
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
        let new = || Arc::new(Semaphore::new(PLACES_OF_AN_APP));
        let places = of_apps.entry(app).or_insert_with(new);
        // One is the table's.
        if Arc::strong_count(places) > OF_AN_APP {
            return None;
        }
        Some(Place {
            of_apps: Arc::clone(&self.of_apps),
            app,
            places: Arc::clone(places),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut of_apps = lock(&self.of_apps);
        // This one and the table's.
        if Arc::strong_count(&self.places) == 2 {
            of_apps.remove(&self.app);
        }
    }
}

fn lock(of_apps: &OfApps) -> MutexGuard<'_, HashMap<AppId, Arc<Semaphore>>> {
    of_apps.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sending {
    /// Files a copy of a message that was sent, in its own time, if its provider is one that keeps none.
    pub(super) fn file_sent(&self, app: AppId, mailbox: &Mailbox, id: LogId, message: &Message) {
        let reader = self.mailboxes.reader(mailbox.plugin, &mailbox.scopes);
        if !reader.is_some_and(MailReader::files_sent) {
            return;
        }
        let left_out = |why| {
            Outcome::LeftOut.count();
            tracing::warn!(log_id = %id, credential_id = %mailbox.id, why, "a sent message isn't filed");
        };
        // A try would do no better than the checks for replies, and cost a refresh of the token.
        let given_up = self.clock.now() - REFUSED;
        if (mailbox.reading_refused_at).is_some_and(|since| since <= given_up) {
            return left_out("the provider refuses to let the mailbox be read");
        }
        let mut share = self.budget.share(Holder::App(app));
        let place = self.sent_mail.place(app);
        let (Some(place), Ok(())) = (place, share.grow_spare(message.size())) else {
            return left_out("too many are being filed");
        };
        let (sending, mailbox, message) = (self.clone(), mailbox.clone(), message.clone());
        let at = self.clock.now();
        let filing = async move {
            let _share = share;
            let outcome = sending.file(&place, &mailbox, id, &message, at).await;
            outcome.count();
        };
        self.tracker.spawn(filing.in_current_span());
    }

    async fn file(
        &self,
        place: &Place,
        mailbox: &Mailbox,
        id: LogId,
        message: &Message,
        at: DateTime<Utc>,
    ) -> Outcome {
        let mut waits = AGAIN.iter();
        loop {
            let error = match self.try_to_file(place, mailbox, id, message, at).await {
                Ok(Filed::Now) => return Outcome::Filed,
                Ok(Filed::Before) => return Outcome::Found,
                Err(error) => error,
            };
            let passes = !matches!(error, MailboxReadError::Read(ReadError::Forbidden(_)));
            let Some(wait) = waits.next().filter(|_| passes) else {
                trouble!(warn, error, log_id = %id, credential_id = %mailbox.id, "a sent message can't be filed");
                return Outcome::Failed;
            };
            tokio::select! {
                () = tokio::time::sleep(*wait) => {}
                () = self.stop.cancelled() => return Outcome::LeftOut,
            }
        }
    }

    async fn try_to_file(
        &self,
        place: &Place,
        mailbox: &Mailbox,
        id: LogId,
        message: &Message,
        at: DateTime<Utc>,
    ) -> Result<Filed, MailboxReadError> {
        let _own = place.places.acquire().await;
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
