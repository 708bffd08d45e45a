//! Files copies of sent messages in the sent mail of mailboxes whose provider keeps none. A copy is best effort: the
//! message is sent, and nothing waits for the copy. If its process ends before it is filed, it is lost.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tracing::Instrument;

use crate::mailboxes::{Mailbox, MailboxReadError};
use crate::sending::Sending;
use crate::sending::accept::budget::Holder;
use mailgate_providers::mail::reader::{Filed, MailReader, ReadError};
use mailgate_providers::mail::transport::MailboxAccess;
use mailgate_storage::database::outage::trouble;
use mailgate_types::ids::{LogId, SubscriberId};
use mailgate_types::message::Message;
use mailgate_types::shared_places::{Joined, SharedPlaces};

/// Copies that one process files at the same time, in total and per subscriber.
const PLACES: usize = 64;
const PLACES_OF_A_SUBSCRIBER: usize = 8;

/// Copies of one subscriber that may be filed or wait for a place.
const OF_A_SUBSCRIBER: usize = 64;

/// Once the provider has refused reads of a mailbox for this long, no copy is tried any more.
const REFUSED: TimeDelta = TimeDelta::hours(1);

/// The pauses before further attempts.
const AGAIN: [Duration; 2] = [Duration::from_secs(10), Duration::from_mins(1)];

/// The outcome of a copy, for the metric.
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

/// The copies that are being filed; those of deleted apps count for one subscriber.
#[derive(Debug, Clone)]
pub(in crate::sending) struct SentMail {
    places: SharedPlaces<Option<SubscriberId>>,
}

type Turn = Joined<Option<SubscriberId>>;

impl Default for SentMail {
    fn default() -> Self {
        Self {
            places: SharedPlaces::new(PLACES, PLACES_OF_A_SUBSCRIBER),
        }
    }
}

impl Sending {
    /// Files a copy of a sent message, in the background, if its provider keeps none.
    pub(in crate::sending) fn file_sent(
        &self,
        subscriber: Option<SubscriberId>,
        mailbox: &Mailbox,
        id: LogId,
        message: &Message,
    ) {
        let reader = self.mailboxes.reader(mailbox.plugin, &mailbox.scopes);
        if !reader.is_some_and(MailReader::files_sent) {
            return;
        }
        let left_out = |why| {
            Outcome::LeftOut.count();
            tracing::warn!(log_id = %id, credential_id = %mailbox.id, why, "a sent message isn't filed");
        };
        // An attempt would fail like the checks for replies, and cost a token refresh.
        let given_up = self.clock.now() - REFUSED;
        if (mailbox.reading_refused_at).is_some_and(|since| since <= given_up) {
            return left_out("the provider refuses to let the mailbox be read");
        }
        let holder = subscriber.map_or(Holder::Gone, Holder::Subscriber);
        let mut share = self.budget.share(holder);
        let turn = self.sent_mail.places.join(subscriber, OF_A_SUBSCRIBER);
        let (Some(turn), Ok(())) = (turn, share.grow_spare(message.size())) else {
            return left_out("too many are being filed");
        };
        let (sending, mailbox, message) = (self.clone(), mailbox.clone(), message.clone());
        let at = self.clock.now();
        let filing = async move {
            let _share = share;
            let outcome = sending.file(&turn, &mailbox, id, &message, at).await;
            outcome.count();
        };
        self.tracker.spawn(filing.in_current_span());
    }

    async fn file(
        &self,
        turn: &Turn,
        mailbox: &Mailbox,
        id: LogId,
        message: &Message,
        at: DateTime<Utc>,
    ) -> Outcome {
        let mut waits = AGAIN.iter();
        loop {
            let error = match self.try_to_file(turn, mailbox, id, message, at).await {
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
        turn: &Turn,
        mailbox: &Mailbox,
        id: LogId,
        message: &Message,
        at: DateTime<Utc>,
    ) -> Result<Filed, MailboxReadError> {
        let _place = turn.place().await;
        let forbidden = || ReadError::Forbidden("the mailbox can't be read any more".to_owned());
        let reader = self.mailboxes.reader(mailbox.plugin, &mailbox.scopes);
        let reader = reader.ok_or_else(forbidden)?;
        let question = |account: MailboxAccess| async move {
            reader.file_sent(&account, id, message, at).await
        };
        self.mailboxes.ask_reader(mailbox, question).await
    }
}
