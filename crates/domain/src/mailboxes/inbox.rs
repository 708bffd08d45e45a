//! Mailboxes that have sent recently are checked for new mail: replies to logged messages, and bounces of them, are
//! reported to their apps, once.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

use super::{MailboxReadError, Mailboxes, bounces, replies};
use mailgate_providers::mail::reader::{self, MailReader, ReadError};
use mailgate_providers::mail::received::Received;
use mailgate_providers::mail::transport::MailboxAccess;
use mailgate_storage::database::error_class::{is_refusal, is_timeout};
use mailgate_storage::database::outage::{Outage, trouble};
use mailgate_storage::database::transaction;
use mailgate_storage::mailboxes::Mailbox;
use mailgate_storage::mailboxes::due::{self, ReplyLook};
use mailgate_storage::{apps, webhook_messages};
use mailgate_types::event::{Emission, Event, MailboxEvent};
use mailgate_types::ids::CredentialId;
use mailgate_types::one_line::one_line;
use mailgate_types::plugin::Plugin;

/// Mailboxes that one process checks at the same time.
pub const PLACES: usize = 16;

/// Maximum pages read in one check; the rest waits for the next one.
const ROUNDS: usize = 5;

/// Time limit for one check. Another replica takes over after twice this time.
const LONGEST: Duration = Duration::from_mins(5);

/// After this time no further message of a check is read, so that the results are stored before the time limit.
const READING: Duration = Duration::from_mins(1);

const _: () = assert!(reader::LONGEST.as_secs() < LONGEST.as_secs());

/// A mailbox's sends are noted at most once in this time.
const NOTED: TimeDelta = TimeDelta::hours(1);

/// A mailbox that may not be read although its grant says so is skipped for this long; whatever a provider answers,
/// none is skipped for longer.
const FORBIDDEN: Duration = Duration::from_hours(24);

/// At most one `mailbox.degraded` or `mailbox.recovered` is sent for a mailbox in this time: a provider may waver.
const TOLD_APART: TimeDelta = TimeDelta::hours(1);

/// Longest stored text of a provider's refusal, in bytes.
const WORDS_BYTES: usize = 500;

/// Longest stored provider cursor, in bytes; Microsoft Graph's have about a thousand.
const CURSOR_LENGTH: usize = 16 * 1024;

/// The mailboxes that have sent, and which of these are not yet in the database.
#[derive(Debug, Default)]
pub(super) struct Senders {
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    at: HashMap<CredentialId, DateTime<Utc>>,
    waiting: HashSet<CredentialId>,
}

impl Senders {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the next check begins.
enum NextLook<'a> {
    /// Unchanged.
    Stays,
    /// At this cursor; `None`: by time, as in the first check.
    Moves(Option<&'a str>),
}

/// Why a check failed.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Ask(#[from] MailboxReadError),
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
    #[error("it took longer than {} s", LONGEST.as_secs())]
    TimedOut,
}

impl Outage for LookError {
    fn is_outage(&self) -> bool {
        match self {
            Self::Ask(error) => error.is_outage(),
            Self::Database(error) => error.is_outage(),
            Self::TimedOut => false,
        }
    }
}

impl Mailboxes {
    /// Whether replies to a mailbox's messages are tracked: its provider can be read, and the granted scopes allow it.
    #[must_use]
    pub fn tracks_replies(&self, plugin: Plugin, scopes: &[String]) -> bool {
        self.reader(plugin, scopes).is_some()
    }

    /// Whether the Message-ID under which a mailbox's messages are sent is known.
    #[must_use]
    pub fn tells_message_id(&self, plugin: Plugin, scopes: &[String]) -> bool {
        self.providers
            .get(plugin)
            .is_some_and(|provider| provider.transport.tells_message_id(scopes))
    }

    /// The reader of a mailbox, if its user has granted access.
    #[must_use]
    pub fn reader(&self, plugin: Plugin, scopes: &[String]) -> Option<&dyn MailReader> {
        self.providers
            .get(plugin)?
            .reader
            .as_deref()
            .filter(|reader| reader.may_read(scopes))
    }

    /// Notes that a message was sent from a mailbox, so that replies are tracked from now on.
    pub fn note_sent(&self, mailbox: &Mailbox) {
        if !self.tracks_replies(mailbox.plugin, &mailbox.scopes) {
            return;
        }
        let now = self.clock.now();
        let mut noted = self.senders.noted();
        if noted.at.get(&mailbox.id).is_none_or(|at| *at + NOTED < now) {
            noted.at.insert(mailbox.id, now);
            noted.waiting.insert(mailbox.id);
        }
    }

    /// Stores which mailboxes have sent. Those whose rows are locked at the moment are stored the next time.
    ///
    /// # Errors
    ///
    /// If the database fails; all are stored the next time then.
    pub async fn store_senders(&self) -> Result<(), sqlx::Error> {
        let now = self.clock.now();
        let waiting: Vec<CredentialId> = {
            let mut noted = self.senders.noted();
            noted.at.retain(|_, at| *at + NOTED >= now);
            noted.waiting.drain().collect()
        };
        if waiting.is_empty() {
            return Ok(());
        }
        let written = async {
            let mut connection = self.pool.acquire().await?;
            due::note_sent(&mut connection, &waiting, now).await
        };
        let (left, written) = match written.await {
            Ok(locked) => (locked, Ok(())),
            Err(error) => (waiting, Err(error)),
        };
        self.senders.noted().waiting.extend(left);
        written
    }

    /// Claims mailboxes that are due for a check.
    pub async fn claim_reply_looks(&self, places: usize) -> Result<Vec<ReplyLook>, sqlx::Error> {
        let now = self.clock.now();
        let lease = TimeDelta::from_std(LONGEST * 2).unwrap_or(TimeDelta::minutes(10));
        let limit = i64::try_from(places).unwrap_or(i64::MAX);
        let mut connection = self.pool.acquire().await?;
        due::claim_reply_looks(&mut connection, now, now + lease, limit).await
    }

    /// Checks a claimed mailbox, reports the replies found, and schedules the next check.
    pub async fn look_for_replies(&self, look: ReplyLook) {
        let id = look.mailbox.id;
        let now = self.clock.now();
        let since = now - self.settings.replies_window;
        let lately = look.last_sent_at.is_some_and(|at| at > since);
        let reader = self.reader(look.mailbox.plugin, &look.mailbox.scopes);
        let next = match reader.filter(|_| lately) {
            None => None,
            Some(reader) => {
                let looked = tokio::time::timeout(LONGEST, self.look(reader, &look, since))
                    .await
                    .unwrap_or(Err(LookError::TimedOut));
                if let Err(error) = &looked {
                    metrics::counter!("mailgate_reply_looks_failed_total").increment(1);
                    trouble!(warn, error, credential_id = %id, "the check for replies failed");
                }
                let noted = self.note_outcome(&look, &looked).await;
                if let Err(error) = &noted {
                    trouble!(warn, error, credential_id = %id, "it can't be noted whether the mailbox is read");
                }
                let refused_since = look.mailbox.reading_refused_at;
                let wait = self.wait_after(looked.as_ref().err(), refused_since);
                // The next check reports the rest.
                let wait = match noted {
                    Ok(true) => wait,
                    Ok(false) | Err(_) => wait.min(TOLD_APART),
                };
                Some(self.clock.now() + wait)
            }
        };
        let put_off = async {
            let mut connection = self.pool.acquire().await?;
            due::put_off_reply_look(&mut connection, &look, next).await
        };
        if let Err(error) = put_off.await {
            // The mailbox becomes due again when the lease expires.
            trouble!(warn, error, credential_id = %id, "the next check for replies can't be scheduled");
        }
    }

    /// Records whether the provider lets the mailbox be read, and notifies the app once a change is certain. Returns
    /// whether the app has been notified.
    async fn note_outcome(
        &self,
        look: &ReplyLook,
        looked: &Result<(), LookError>,
    ) -> Result<bool, sqlx::Error> {
        let refused_before = look.mailbox.reading_refused_at.is_some();
        let (refused, is_sure) = match looked {
            Ok(()) if refused_before || look.is_degraded => (None, true),
            Err(LookError::Ask(MailboxReadError::Read(error))) => match error {
                ReadError::Forbidden(words) | ReadError::TokenRefused(words) => (Some(words), true),
                // It may be an outage of a backend of the server.
                ReadError::Unexplained(words) => (Some(words), refused_before),
                ReadError::Unavailable { .. } => return Ok(true),
            },
            _ => return Ok(true),
        };
        let refused = refused.map(|words| one_line(words, WORDS_BYTES));
        let (is_degraded, now) = (refused.is_some(), self.clock.now());
        let mut transaction = transaction::begin(&self.pool).await?;
        if !apps::keep(&mut transaction, look.app).await? {
            return Ok(true);
        }
        due::note_reading(&mut transaction, look, refused.as_deref(), now).await?;
        let told_before = now - TOLD_APART;
        let is_told = is_sure
            && due::tell_reading(&mut transaction, look, is_degraded, now, told_before).await?;
        if is_told {
            let mailbox = MailboxEvent {
                credential_id: look.mailbox.id,
                email: look.mailbox.email.clone(),
                plugin: look.mailbox.plugin,
            };
            let event = match refused {
                Some(error) => Event::MailboxDegraded { mailbox, error },
                None => Event::MailboxRecovered(mailbox),
            };
            let emissions = [Emission::of(look.app, event)];
            webhook_messages::emit(&mut transaction, &emissions, now).await?;
        }
        transaction.commit().await?;
        Ok(is_told || is_degraded == look.is_degraded)
    }

    /// A refusal is checked again after as long as it has lasted.
    fn wait_after(
        &self,
        error: Option<&LookError>,
        refused_since: Option<DateTime<Utc>>,
    ) -> TimeDelta {
        let usual = self.settings.replies_every;
        let longer = usual.saturating_mul(5);
        let wait = match error {
            None => usual,
            Some(LookError::Ask(MailboxReadError::Read(error))) => match error {
                ReadError::Forbidden(_) => FORBIDDEN,
                ReadError::TokenRefused(_) | ReadError::Unexplained(_) => {
                    let lasted = refused_since.map(|since| self.clock.now() - since);
                    let lasted = lasted.and_then(|lasted| lasted.to_std().ok());
                    lasted.unwrap_or_default().max(longer)
                }
                ReadError::Unavailable { retry_after, .. } => {
                    retry_after.unwrap_or_default().max(longer)
                }
            },
            Some(_) => longer,
        };
        let wait = wait.min(FORBIDDEN).max(usual);
        TimeDelta::from_std(wait).unwrap_or(TimeDelta::days(1))
    }

    async fn look(
        &self,
        reader: &dyn MailReader,
        look: &ReplyLook,
        since: DateTime<Utc>,
    ) -> Result<(), LookError> {
        let mut cursor = look.cursor.clone();
        let until = Instant::now() + READING;
        for _ in 0..ROUNDS {
            let from = cursor.as_deref();
            let question = |account: MailboxAccess| async move {
                reader.new_mail(&account, from, since, until).await
            };
            let new = self.ask_reader(&look.mailbox, question).await?;
            let more = new.more;
            cursor = storable(new.cursor);
            if cursor.is_none() {
                tracing::warn!(credential_id = %look.mailbox.id, "the position in a mailbox can't be stored; the next check starts over");
            }
            self.tell(look, &new.messages, cursor.as_deref()).await?;
            if !more || cursor.is_none() || Instant::now() >= until {
                break;
            }
        }
        Ok(())
    }

    /// Reports replies and bounces, and stores the cursor of the next check. A message that the database permanently
    /// refuses is skipped, since it would block the mailbox forever; a batch that takes too long is stored one by one.
    async fn tell(
        &self,
        look: &ReplyLook,
        messages: &[Received],
        cursor: Option<&str>,
    ) -> Result<(), sqlx::Error> {
        let told = self.try_tell(look, messages, NextLook::Moves(cursor)).await;
        if !(told.as_ref()).is_err_and(|error| is_refusal(error) || is_timeout(error)) {
            return told;
        }
        for one in messages.chunks(1) {
            match self.try_tell(look, one, NextLook::Stays).await {
                Err(error) if is_refusal(&error) => {
                    tracing::warn!(credential_id = %look.mailbox.id, %error, "a reply or bounce that can't be stored is left out");
                }
                told => told?,
            }
        }
        self.try_tell(look, &[], NextLook::Moves(cursor)).await
    }

    /// Stores the events, the keys that deduplicate them, their effects, and the cursor of the next check, in one
    /// transaction.
    async fn try_tell(
        &self,
        look: &ReplyLook,
        messages: &[Received],
        place: NextLook<'_>,
    ) -> Result<(), sqlx::Error> {
        let (app, mailbox, now) = (look.app, &look.mailbox, self.clock.now());
        // Strangers control the number of Message-IDs to look up: nothing is locked meanwhile.
        let replies = {
            let mut connection = self.pool.acquire().await?;
            replies::find(&mut connection, mailbox, &look.aliases, messages).await?
        };
        let mut transaction = transaction::begin(&self.pool).await?;
        // Before the mailbox, as wherever the app is deleted.
        if !apps::keep(&mut transaction, app).await? {
            return Ok(());
        }
        let bounces = bounces::tell(&mut transaction, app, mailbox, messages, now).await?;
        let replies = replies::tell(&mut transaction, app, mailbox, replies, now).await?;
        if let NextLook::Moves(cursor) = place {
            due::store_reply_cursor(&mut transaction, look, cursor).await?;
        }
        transaction.commit().await?;
        bounces.count(mailbox);
        replies.count(mailbox);
        Ok(())
    }
}

/// A provider's cursor, unless it is too long to store.
fn storable(cursor: String) -> Option<String> {
    let fits = cursor.len() <= CURSOR_LENGTH && !cursor.contains(char::is_control);
    fits.then_some(cursor)
}
