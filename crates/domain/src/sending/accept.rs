//! One entry point for HTTP and SMTP: subscription → mailbox → message → suppressed recipients →
//! opening → submission → end; or, for a scheduled message, → the queue.
//!
//! An app's data from its last message is reused without a query. The opening's statement verifies it: if the app has
//! changed since, nothing is written, and everything is queried again. So a renewed key, a blocked subscription and a
//! disconnected mailbox take effect immediately, whichever process made the change.
//! Nor is an idempotency key looked up then: the opening claims it, and only if a message with the same key exists is
//! that message's answer looked up ([`idempotency`]).

pub mod budget;
pub mod draft;
pub(crate) mod foreign_sender;
pub(crate) mod gate;
pub mod idempotency;
pub mod prepared;
pub mod quota;
pub mod raw_message;

use tracing::Instrument as _;

use super::outcome::{Answer, Taken};
use super::{SendError, Sending};
use crate::accounts::{AuthenticateError, Caller, SendingApp};
use crate::mailboxes::Wanted;
use budget::Share;
use draft::{Draft, PrepareError};
use gate::{Blocked, admit};
use idempotency::IdempotencyKey;
use mailgate_types::send_at::SendAt;

/// How often an app may change during a send before its last known state is used anyway.
const TURNS: usize = 5;

/// A message received over HTTP or SMTP.
#[derive(Debug)]
pub struct Request {
    /// The app, and the key that authenticated it.
    pub caller: Caller,
    /// Whether the request, read for the app's earlier state, means the same for its current state.
    pub still_means: fn(&SendingApp, &SendingApp) -> bool,
    /// The selection of the app's mailbox. The key's restrictions are added here.
    pub wanted: Wanted,
    /// The message.
    pub draft: Draft,
    /// The caller's idempotency key.
    pub key: Option<IdempotencyKey>,
    /// Its scheduled time; `None`: now.
    pub send_at: Option<SendAt>,
    /// Its share of the budget.
    pub share: Share,
}

/// Why a message is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The key is no longer valid.
    #[error("invalid key")]
    Key,
    /// The app is no longer the one that the message was read for: this is its current state.
    #[error("the app has changed")]
    Changed(Box<SendingApp>),
    /// The subscription blocks sending.
    #[error(transparent)]
    Blocked(#[from] Blocked),
    /// Its scheduled time has passed.
    #[error("the scheduled time has passed")]
    SendAtPast,
    /// No connected mailbox matches.
    #[error("no connected mailbox matches")]
    NoMailbox,
    /// None of the mailboxes that the key is restricted to matches. Whether another one does isn't revealed: the key's
    /// holder must not learn which others exist.
    #[error("the key may not send from any mailbox that matches")]
    MailboxNotAllowed,
    /// This header names a sender that the mailbox may not send as.
    #[error("{0} names another sender")]
    OtherSender(&'static str),
    /// These recipients have bounced, and the app refuses messages to them.
    #[error("recipients have bounced")]
    Suppressed(Vec<String>),
    /// No message can be composed from the draft.
    #[error(transparent)]
    Unpreparable(#[from] PrepareError),
    /// The database query failed.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
    /// Sending failed.
    #[error(transparent)]
    Send(#[from] SendError),
}

impl From<AuthenticateError> for Refusal {
    fn from(error: AuthenticateError) -> Self {
        match error {
            AuthenticateError::Wrong => Self::Key,
            AuthenticateError::Database(error) => Self::Database(error),
        }
    }
}

impl Sending {
    /// Sends a message from one of the caller's mailboxes. The send continues if the caller disconnects. If the key
    /// stands for another message, nothing is sent and that message's outcome is returned.
    ///
    /// # Errors
    ///
    /// [`Refusal`]; nothing is sent then, unless it says otherwise.
    pub async fn submit(&self, request: Request) -> Result<Answer, Refusal> {
        let sending = self.clone();
        self.tracker
            // Boxed: the tracker and the runtime would each move the whole future.
            .spawn(Box::pin(
                async move { sending.submit_here(request).await }.in_current_span(),
            ))
            .await
            .unwrap_or(Err(SendError::Unknown.into()))
    }

    async fn submit_here(&self, request: Request) -> Result<Answer, Refusal> {
        let Request {
            mut caller,
            still_means,
            mut wanted,
            mut draft,
            key,
            send_at,
            share: _share,
        } = request;
        let key = key.map(|key| key.of(&caller));
        if send_at.is_some_and(|at| !at.is_ahead(self.clock.now())) {
            self.prove(&mut caller, still_means).await?;
            wanted.only = caller.mailboxes();
            // A repeated request gets its answer, even if its scheduled time has passed since.
            let answer = match &key {
                Some(key) => self.answer_of_twin(&wanted, key).await?,
                None => None,
            };
            return answer.ok_or(Refusal::SendAtPast);
        }
        let is_name_certain = key.as_ref().is_none_or(|key| self.is_name_certain(key));
        for turn in 0..TURNS {
            let may_rely = turn == 0
                && is_name_certain
                && draft.is_cheap()
                && admit(caller.subscription(), self.clock.now()).is_ok();
            wanted.only = caller.mailboxes();
            let remembered = if may_rely {
                self.mailboxes.remembered(&wanted, caller.version())
            } else {
                None
            };
            let chosen = if let Some(chosen) = remembered {
                chosen
            } else {
                let before = self.before(&mut caller, still_means, &mut wanted, key.as_ref());
                if let Some(answer) = before.await? {
                    return Ok(answer);
                }
                admit(caller.subscription(), self.clock.now())?;
                let chosen = self.mailboxes.choose(&wanted).await?;
                chosen.ok_or_else(|| none_matches(&wanted))?
            };
            let mut chosen = chosen;
            if turn + 1 == TURNS {
                // The app keeps changing: use what was just read.
                chosen.version = None;
            } else if chosen.version != caller.version() {
                caller.doubt();
                continue;
            }
            let named = draft.named_senders();
            if let Some(foreign) = self.foreign_sender(&chosen.mailbox, named).await? {
                let before = self.before(&mut caller, still_means, &mut wanted, key.as_ref());
                return before.await?.ok_or(Refusal::OtherSender(foreign.header));
            }
            let at = send_at.map_or_else(|| self.clock.now(), SendAt::time);
            let prepared = draft.prepare(&chosen.address, at).await?;
            if caller.app().suppress_bounced {
                let recipients = &prepared.recipients.addresses;
                let suppressed = self.accounts.suppressed(wanted.app, recipients).await?;
                if !suppressed.is_empty() {
                    // A message accepted earlier has its answer, whatever its recipients did since; and nothing is
                    // refused by an outdated setting of the app.
                    let before = self.before(&mut caller, still_means, &mut wanted, key.as_ref());
                    if let Some(answer) = before.await? {
                        return Ok(answer);
                    }
                    if caller.app().suppress_bounced {
                        return Err(Refusal::Suppressed(suppressed));
                    }
                }
            }
            let key_hash = send_at.map(|_| caller.send_key_hash());
            let taken = self.take(caller.app(), &chosen, prepared, key.as_ref(), key_hash);
            match taken.await? {
                Taken::Here(outcome) => {
                    return Ok(Answer {
                        outcome,
                        replayed: false,
                    });
                }
                Taken::Stale => caller.doubt(),
                Taken::Twin => {
                    self.prove(&mut caller, still_means).await?;
                    wanted.only = caller.mailboxes();
                    let key = key.as_ref().ok_or(SendError::NotTaken)?;
                    if let Some(answer) = self.answer_of_twin(&wanted, key).await? {
                        return Ok(answer);
                    }
                }
            }
        }
        Err(SendError::NotTaken.into())
    }

    /// The answer of the message that a caller's idempotency key stands for. The caller is authenticated again first:
    /// its key may have been changed since.
    async fn before(
        &self,
        caller: &mut Caller,
        still_means: fn(&SendingApp, &SendingApp) -> bool,
        wanted: &mut Wanted,
        key: Option<&IdempotencyKey>,
    ) -> Result<Option<Answer>, Refusal> {
        self.prove(caller, still_means).await?;
        wanted.only = caller.mailboxes();
        match key {
            Some(key) => self.replay(wanted, key).await,
            None => Ok(None),
        }
    }

    /// The answer of the message that a key stands for, or was about to; `None` if the key is free after all.
    async fn answer_of_twin(
        &self,
        wanted: &Wanted,
        key: &IdempotencyKey,
    ) -> Result<Option<Answer>, Refusal> {
        if let Some(answer) = self.replay(wanted, key).await? {
            return Ok(Some(answer));
        }
        if self.is_free(wanted.app, key).await? {
            return Ok(None);
        }
        self.replay(wanted, key).await
    }

    /// The answer of the message that a key stands for, `None` if the key is free. A caller that may not send from that
    /// message's mailbox doesn't get it.
    async fn replay(
        &self,
        wanted: &Wanted,
        key: &IdempotencyKey,
    ) -> Result<Option<Answer>, Refusal> {
        let answer = self.answer_to(wanted.app, key).await?;
        if let (Some(answer), Some(only)) = (&answer, &wanted.only) {
            let mailbox = self.mailbox_of(answer.outcome.receipt().id).await?;
            if mailbox.is_none_or(|mailbox| !only.contains(&mailbox)) {
                return Err(Refusal::MailboxNotAllowed);
            }
        }
        Ok(answer)
    }

    /// Queries the app again if it came from memory.
    async fn prove(
        &self,
        caller: &mut Caller,
        still_means: fn(&SendingApp, &SendingApp) -> bool,
    ) -> Result<(), Refusal> {
        if caller.is_proven() {
            return Ok(());
        }
        let before = caller.app().clone();
        self.accounts.prove(caller).await?;
        if still_means(&before, caller.app()) {
            Ok(())
        } else {
            Err(Refusal::Changed(Box::new(caller.app().clone())))
        }
    }
}

/// The refusal of a request that no mailbox matches.
fn none_matches(wanted: &Wanted) -> Refusal {
    match wanted.only {
        None => Refusal::NoMailbox,
        Some(_) => Refusal::MailboxNotAllowed,
    }
}
