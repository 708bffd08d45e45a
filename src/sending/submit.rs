//! One way in for both doors: idempotency key → subscription → mailbox → message → opening → submission → end.
//!
//! What was known of an app when its last message came is used again without a look-up. The opening's statement
//! proves it: where the app has changed since, nothing is written, and all of it is asked anew. So a renewed key, a
//! blocked subscription and a disconnected mailbox count at once, whichever process has made the change.

use tracing::Instrument as _;

use super::budget::Share;
use super::draft::{Draft, PrepareError};
use super::gate::{Blocked, admit};
use super::idempotency::IdempotencyKey;
use super::outcome::Answer;
use super::pipeline::Taken;
use super::{SendError, Sending};
use crate::accounts::{AuthenticateError, Caller, SendingApp};
use crate::mailboxes::Wanted;

/// How often an app may change under a message until what was read of it last has to do.
const TURNS: usize = 5;

/// A message that a door has read.
#[derive(Debug)]
pub struct Request {
    /// The app, and the key that has opened it.
    pub caller: Caller,
    /// Whether what the door has read by the app as it was means the same by the app as it is.
    pub still_means: fn(&SendingApp, &SendingApp) -> bool,
    /// Which of its mailboxes.
    pub wanted: Wanted,
    /// The message.
    pub draft: Draft,
    /// The caller's own name for it.
    pub key: Option<IdempotencyKey>,
    /// The room that it takes.
    pub share: Share,
}

/// A message is not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The key opens nothing any more.
    #[error("the key opens nothing")]
    Key,
    /// The app is another one than the message was read for: this one.
    #[error("the app has changed")]
    Changed(Box<SendingApp>),
    /// The subscription doesn't let it through.
    #[error(transparent)]
    Blocked(#[from] Blocked),
    /// No connected mailbox is the wanted one.
    #[error("no connected mailbox matches")]
    NoMailbox,
    /// No message can be made of it.
    #[error(transparent)]
    Unpreparable(#[from] PrepareError),
    /// The database can't be asked.
    #[error("the database can't be asked: {0}")]
    Database(#[from] sqlx::Error),
    /// As it says.
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
    /// Sends a message from a mailbox of its caller's. It goes on when the caller goes away. A message whose key
    /// stands for another one isn't sent: what became of that one is the answer.
    ///
    /// # Errors
    ///
    /// [`Refusal`]; nothing is sent then, unless it says otherwise.
    pub async fn submit(&self, request: Request) -> Result<Answer, Refusal> {
        let sending = self.clone();
        self.tracker
            // Boxed: the tracker and the runtime would each move all of it.
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
            wanted,
            mut draft,
            key,
            share: _share,
        } = request;
        for turn in 0..TURNS {
            let may_rely = turn == 0 && draft.is_cheap() && admit(caller.status()).is_ok();
            let remembered = if may_rely {
                self.mailboxes.remembered(&wanted, caller.version())
            } else {
                None
            };
            let chosen = if let Some(chosen) = remembered {
                chosen
            } else {
                self.prove(&mut caller, still_means).await?;
                if let Some(key) = &key
                    && let Some(answer) = self.answer_to(wanted.app, key).await?
                {
                    return Ok(answer);
                }
                admit(caller.status())?;
                let chosen = self.mailboxes.choose(&wanted).await?;
                chosen.ok_or(Refusal::NoMailbox)?
            };
            let mut chosen = chosen;
            if turn + 1 == TURNS {
                // An app that changes all the time: what was read just now has to do.
                chosen.version = None;
            } else if chosen.version != caller.version() {
                caller.doubt();
                continue;
            }
            let prepared = draft.prepare(&chosen.address, self.clock.now()).await?;
            let taken = self.take(wanted.app, &chosen, prepared, key.as_ref());
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
                    let answer = match &key {
                        Some(key) => self.answer_to(wanted.app, key).await?,
                        None => None,
                    };
                    // A key that was forgotten this very moment is free the next time.
                    return Ok(answer.ok_or(SendError::NotTaken)?);
                }
            }
        }
        Err(SendError::NotTaken.into())
    }

    /// Asks for the app once more where it was remembered.
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
