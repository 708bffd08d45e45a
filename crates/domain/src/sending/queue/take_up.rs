//! The steps before a stored message is submitted: checking whether it may be sent and whether it has already arrived,
//! and waiting for its turn.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::accounts::ShowError;
use crate::mailboxes::Mailbox;
use crate::sending::Sending;
use crate::sending::accept::budget::{Holder, Share};
use crate::sending::accept::gate::{Blocked, admit};
use crate::sending::accept::raw_message::{NamedSender, UnclearSender};
use crate::sending::outcome::after_attempt::unverifiable;
use crate::sending::outcome::verify::Presence;
use crate::sending::submit::attempt::Attempted;
use crate::sending::submit::pace::{Asker, Pace};
use mailgate_providers::mail::verdict::{Failure, Verdict};
use mailgate_storage::apps;
use mailgate_storage::spool::Claimed;
use mailgate_types::message::Message;

/// The error text of a message whose submission was interrupted.
pub(in crate::sending) const CUT_OFF: &str =
    "the gateway stopped, or the connection broke, while the message was being submitted";

/// The error text of a scheduled message whose send key was renewed.
const KEY_ENDED: &str = "The send key that the message was scheduled with has been renewed, deleted or restricted, or has expired";

/// The error text of a message that was never sent because its wait was too long.
const TOO_OLD: &str = "The message has waited for the maximum time";

/// The reason for a wait when there is no room in memory, and how long a message waits while it holds a place.
pub(in crate::sending) const NO_ROOM: &str =
    "Too many messages are being sent at the moment; this one is tried again shortly";
const MOMENT: Duration = Duration::from_secs(1);

/// The outcome of taking up a stored message.
pub(in crate::sending) enum Tried {
    /// It was tried, or can't be tried.
    Attempted(Attempted),
    /// Nothing was sent: the app may not send at the moment.
    Blocked(Blocked),
    /// Nothing was sent: the mailbox has reached its rate limit.
    Paced(DateTime<Utc>, &'static str),
    /// Nothing was sent: an earlier transmission may still arrive, until this time.
    MayStillArrive(DateTime<Utc>),
    /// Nothing was sent: another process may have the message.
    Withheld,
    /// Nothing was sent: the memory budget is used up.
    NoRoom,
    /// Nothing was sent: the process is shutting down.
    GivenBack,
}

/// A message that is ready to be sent.
pub(in crate::sending) struct Ready {
    pub(in crate::sending) mailbox: Mailbox,
    pub(in crate::sending) message: Message,
    _share: Share,
}

/// The result of the steps before a submission.
pub(in crate::sending) enum TakenUp {
    Ready(Box<Ready>),
    /// Not to be sent for now.
    Done(Tried),
}

impl Sending {
    /// Everything before the submission; it may be cancelled at any moment.
    pub(in crate::sending) async fn take_up(
        &self,
        claimed: &Claimed,
    ) -> Result<TakenUp, sqlx::Error> {
        let mailbox = match self.admitted(claimed).await? {
            Ok(mailbox) => mailbox,
            Err(tried) => return Ok(TakenUp::Done(tried)),
        };
        if let Some(left_by) = self.unknown_since(claimed)
            && let Err(tried) = self.missing(claimed, &mailbox, left_by).await
        {
            return Ok(TakenUp::Done(tried));
        }
        self.ready(claimed, mailbox).await
    }

    /// The latest time at which a message may have been transmitted that the provider may already have.
    pub(in crate::sending) fn unknown_since(&self, claimed: &Claimed) -> Option<DateTime<Utc>> {
        claimed.outcome_unknown.then(|| self.left_by(claimed))
    }

    /// The latest time at which a message may have been transmitted: not later than now, unless a clock was set back.
    pub(in crate::sending) fn left_by(&self, claimed: &Claimed) -> DateTime<Utc> {
        let now = self.clock.now();
        claimed.left_by.map_or(now, |left_by| left_by.min(now))
    }

    /// The mailbox of a message that its app may send.
    async fn admitted(&self, claimed: &Claimed) -> Result<Result<Mailbox, Tried>, sqlx::Error> {
        // It can't be sent again, and there is no way to check whether it has arrived.
        let failed = |text: &str| {
            let failure = Failure::own(text);
            let failure = if claimed.outcome_unknown {
                unverifiable(&failure)
            } else {
                failure
            };
            Ok(Err(told(Verdict::Permanent(failure))))
        };
        let subscription = {
            let mut connection = self.pool.acquire().await?;
            apps::subscription(&mut connection, claimed.app).await?
        };
        let Some(subscription) = subscription else {
            return failed("The app was deleted");
        };
        match admit(&subscription, self.clock.now()) {
            Ok(()) => {}
            Err(blocked) if !blocked.may_pass() => return failed(&blocked.to_string()),
            Err(blocked) if self.is_too_old(claimed.opened_at) => {
                return failed(&format!("{TOO_OLD}: {blocked}"));
            }
            Err(blocked) => return Ok(Err(Tried::Blocked(blocked))),
        }
        match self.mailboxes.active(claimed.credential).await? {
            Some(mailbox) => Ok(Ok(mailbox)),
            None => failed("The mailbox is no longer connected"),
        }
    }

    /// Searches for a message that was transmitted by `left_by` at the latest: whether it has certainly not arrived.
    async fn missing(
        &self,
        claimed: &Claimed,
        mailbox: &Mailbox,
        left_by: DateTime<Utc>,
    ) -> Result<(), Tried> {
        let message_id = claimed.message_id.as_deref();
        // Before the search, which takes time.
        let may_arrive = self.may_still_arrive(left_by);
        match (
            self.look_up(mailbox, claimed.id, message_id).await,
            may_arrive,
        ) {
            (Presence::Sent, _) => Err(told(Verdict::sent())),
            (Presence::ConfirmedMissing | Presence::NotFound, Some(until)) => {
                Err(Tried::MayStillArrive(until))
            }
            (Presence::ConfirmedMissing, None) => Ok(()),
            (Presence::NotNow, _) => {
                let why = Failure::own("the mailbox's sent mail can't be checked at the moment");
                Err(Tried::Attempted(Attempted::Unconfirmed(why)))
            }
            (Presence::NotFound | Presence::Unknowable, _) => {
                Err(told(Verdict::Unknown(Failure::own(CUT_OFF))))
            }
        }
    }

    /// The rest, after a search: a message found in the Sent folder was sent, even if the mailbox may no longer send as
    /// this address.
    async fn ready(&self, claimed: &Claimed, mailbox: Mailbox) -> Result<TakenUp, sqlx::Error> {
        let done = |verdict| Ok(TakenUp::Done(told(verdict)));
        let failed = |text: &str| done(Verdict::Permanent(Failure::own(text)));
        let from = claimed.from_address.as_str();
        if !self.mailboxes.may_send_as(&mailbox, from).await? {
            return failed(&format!("5.7.1 The mailbox may no longer send as {from}"));
        }
        match self.is_key_valid(claimed).await {
            Ok(true) => {}
            Ok(false) => return failed(KEY_ENDED),
            Err(ShowError::Database(error)) => return Err(error),
            Err(error) => {
                tracing::error!(log_id = %claimed.id, %error, "the send key of a scheduled message can't be checked");
                let why = Failure::own("the gateway can't check its send key at the moment");
                return done(Verdict::temporary(why));
            }
        }
        // Before its turn, which counts as used once taken.
        let Some(share) = self.room_for(claimed).await else {
            if self.is_too_old(claimed.opened_at) {
                return failed(&format!("{TOO_OLD}: {NO_ROOM}"));
            }
            return Ok(TakenUp::Done(Tried::NoRoom));
        };
        if let Pace::Later { at, why } = self.pace(&mailbox, Asker::Stored).await {
            if self.is_too_old(claimed.opened_at) {
                return failed(&format!("{TOO_OLD}: {why}"));
            }
            return Ok(TakenUp::Done(Tried::Paced(at, why)));
        }
        let Some(message) = self.spooled(claimed.id).await? else {
            return failed("The stored message is gone");
        };
        // As for From above: an alias may have been removed since the message was accepted.
        let foreign = match NamedSender::of_stored(&message, from) {
            Ok(named) => (self.foreign_sender(&mailbox, &named).await?).map(|it| it.header),
            Err(UnclearSender(header)) => Some(header),
        };
        if let Some(header) = foreign {
            return failed(&format!(
                "5.7.1 The mailbox may not send as the address in {header}"
            ));
        }
        Ok(TakenUp::Ready(Box::new(Ready {
            mailbox,
            message,
            _share: share,
        })))
    }

    /// Reserves memory for a message, with a short wait: a message that waits longer must not hold a place.
    async fn room_for(&self, claimed: &Claimed) -> Option<Share> {
        let size = usize::try_from(claimed.size_bytes).unwrap_or_default();
        let holder = claimed.subscriber.map_or(Holder::Gone, Holder::Subscriber);
        let mut share = self.budget.share(holder);
        // A holder's whole share is enough for a message from before a limit was lowered.
        let bytes = size.min(self.budget.share_bytes());
        if share.hold(bytes).is_err() {
            tokio::time::sleep(MOMENT).await;
            share.hold(bytes).ok()?;
        }
        Some(share)
    }

    /// Whether the send key that a scheduled message was accepted under may still send it; not checked for other
    /// messages.
    async fn is_key_valid(&self, claimed: &Claimed) -> Result<bool, ShowError> {
        match &claimed.send_key_hash {
            Some(hash) => {
                let opens = self
                    .accounts
                    .still_opens(claimed.app, hash, claimed.credential);
                opens.await
            }
            None => Ok(true),
        }
    }
}

fn told(verdict: Verdict) -> Tried {
    Tried::Attempted(Attempted::Known(verdict))
}
