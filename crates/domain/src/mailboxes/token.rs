//! The access token of a mailbox. When it has expired, one caller refreshes it and all others wait for the result:
//! within the process on a lock, across replicas on a lease in the mailbox's row. No database connection is held while
//! the provider is being called.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;

use tracing::Instrument as _;

use super::Mailboxes;
use mailgate_providers::mail::MailProvider;
use mailgate_providers::mail::oauth::Tokens;
use mailgate_providers::mail::transport::MailboxAccess;
use mailgate_storage::database::outage::{Outage, trouble};
use mailgate_storage::mailboxes::{self, Mailbox};
use mailgate_types::event::DisconnectReason;
use mailgate_types::ids::CredentialId;
use mailgate_types::plugin::Plugin;
use mailgate_types::seal::{SealError, SealKeys, UnsealError};

/// A token this close to its expiry is refreshed first.
const SKEW: TimeDelta = TimeDelta::seconds(60);

/// How long one replica may take to refresh before another takes over, beyond two calls to the provider, each bounded
/// by `sending.oauth_seconds`: the margin for a database that fails while the tokens are being stored.
const LEASE_BEYOND_ANSWERS: Duration = Duration::from_mins(1);

/// Attempts to store new tokens, and the first pause between them; it doubles each time.
const STORE_ATTEMPTS: u32 = 7;
const STORE_PAUSE: Duration = Duration::from_millis(100);

/// How often a replica polls whether another one has finished.
const POLL: Duration = Duration::from_millis(50);

/// Why a mailbox has no usable access token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The grant is dead, and the mailbox was disconnected.
    #[error("the mailbox is no longer connected; its user has to connect it again")]
    Disconnected,
    /// The token can't be refreshed at the moment; the mailbox stays connected.
    #[error("no access token is available: {0}")]
    Unavailable(String),
    /// The plugin has no settings.
    #[error("{0} is not set up")]
    PluginOff(Plugin),
    /// A stored token can't be unsealed.
    #[error("the stored token can't be opened: {0}")]
    Unseal(#[from] UnsealError),
    /// A new token can't be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database failed.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
    /// The refreshing task ended early.
    #[error("the refresh was interrupted")]
    CutOff,
}

impl Outage for TokenError {
    fn is_outage(&self) -> bool {
        match self {
            Self::Database(error) => error.is_outage(),
            _ => false,
        }
    }
}

/// One lock for each mailbox whose token is being refreshed in this process.
#[derive(Debug, Default)]
pub(super) struct Flights {
    by_mailbox: Mutex<HashMap<CredentialId, Arc<tokio::sync::Mutex<()>>>>,
}

impl Flights {
    fn of(&self, id: CredentialId) -> Arc<tokio::sync::Mutex<()>> {
        let mut flights = self
            .by_mailbox
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A lock that only this map holds has no waiters.
        flights.retain(|_, flight| Arc::strong_count(flight) > 1);
        Arc::clone(flights.entry(id).or_default())
    }
}

impl Mailboxes {
    /// An access token for the mailbox as it was read. `refused` is the generation of a token that the provider has
    /// just rejected: a newer one is fetched then, even if the rejected one hasn't expired.
    ///
    /// # Errors
    /// [`TokenError`]; only [`TokenError::Disconnected`] means that the mailbox was disconnected.
    pub async fn access(
        &self,
        mailbox: &Mailbox,
        refused: Option<i64>,
    ) -> Result<MailboxAccess, TokenError> {
        if let Some(account) = self.good_token(mailbox, refused)? {
            return Ok(account);
        }
        let (mailboxes, id) = (self.clone(), mailbox.id);
        self.tracker
            .spawn(async move { mailboxes.refreshed(id, refused).await }.in_current_span())
            .await
            .map_err(|_| TokenError::CutOff)?
    }

    /// Whether the stored access token is not about to expire.
    pub(super) fn has_living_token(&self, mailbox: &Mailbox) -> bool {
        mailbox
            .access_token_expires_at
            .is_some_and(|end| end > self.clock.now() + SKEW)
    }

    /// The stored token, if it is valid.
    fn good_token(
        &self,
        mailbox: &Mailbox,
        refused: Option<i64>,
    ) -> Result<Option<MailboxAccess>, TokenError> {
        let lives = self.has_living_token(mailbox);
        match &mailbox.access_token_sealed {
            Some(sealed) if lives && refused.is_none_or(|old| mailbox.token_generation > old) => {
                Ok(Some(MailboxAccess {
                    credential: mailbox.id,
                    address: mailbox.email.clone(),
                    generation: mailbox.token_generation,
                    scopes: Arc::clone(&mailbox.scopes),
                    access_token: self.seal_keys.unseal(&access_context(mailbox.id), sealed)?,
                }))
            }
            _ => Ok(None),
        }
    }

    /// Waits its turn, reads the mailbox again, and refreshes unless another caller already has. If the mailbox was
    /// reconnected meanwhile, the refreshed tokens are dropped in favour of the stored ones.
    async fn refreshed(
        &self,
        id: CredentialId,
        refused: Option<i64>,
    ) -> Result<MailboxAccess, TokenError> {
        let flight = self.flights.of(id);
        let _turn = flight.lock().await;
        let mut deadline = None;
        loop {
            let mailbox = self.active(id).await?.ok_or(TokenError::Disconnected)?;
            if let Some(account) = self.good_token(&mailbox, refused)? {
                return Ok(account);
            }
            let provider = self
                .providers
                .get(mailbox.plugin)
                .ok_or(TokenError::PluginOff(mailbox.plugin))?;
            let patience = provider.oauth.limit() * 2 + LEASE_BEYOND_ANSWERS;
            let claimed = {
                let mut connection = self.pool.acquire().await?;
                let generation = mailbox.token_generation;
                mailboxes::claim_refresh(&mut connection, id, generation, patience, self.gateway)
                    .await?
            };
            if claimed && let Some(account) = self.refresh(&mailbox, provider).await? {
                return Ok(account);
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + patience);
            if Instant::now() > deadline {
                return Err(TokenError::Unavailable(
                    "another replica is refreshing the token and doesn't finish".to_owned(),
                ));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Refreshes at the provider while holding the lease. A rotated refresh token is stored before the access token
    /// that came with it is used.
    async fn refresh(
        &self,
        mailbox: &Mailbox,
        provider: &MailProvider,
    ) -> Result<Option<MailboxAccess>, TokenError> {
        let id = mailbox.id;
        match self.ask(mailbox, provider).await {
            Ok(Asked::Tokens(tokens)) => {
                let stored = self.store(mailbox, &tokens).await?;
                let Some(generation) = stored else {
                    tracing::warn!(credential_id = %id, "refreshed tokens were dropped: newer ones are stored");
                    return Ok(None);
                };
                metrics::counter!("mailgate_token_refreshes_total", "outcome" => "refreshed")
                    .increment(1);
                tracing::info!(credential_id = %id, "the access token was refreshed");
                Ok(Some(MailboxAccess {
                    credential: id,
                    address: mailbox.email.clone(),
                    generation,
                    scopes: Arc::clone(&mailbox.scopes),
                    access_token: tokens.access_token,
                }))
            }
            Ok(Asked::Ended(reason, error)) => {
                let generation = Some(mailbox.token_generation);
                if self.end_refused(id, generation, reason).await? {
                    metrics::counter!("mailgate_token_refreshes_total", "outcome" => "invalid_grant")
                        .increment(1);
                    tracing::warn!(credential_id = %id, reason = reason.as_str(), error, "the provider no longer accepts the grant: the mailbox is disconnected");
                }
                Err(TokenError::Disconnected)
            }
            Err(error) => {
                metrics::counter!("mailgate_token_refreshes_total", "outcome" => "failed")
                    .increment(1);
                trouble!(error, error, credential_id = %id, "the access token could not be refreshed");
                let mut connection = self.pool.acquire().await?;
                mailboxes::release_refresh(&mut connection, id, mailbox.token_generation).await?;
                Err(error)
            }
        }
    }

    /// Stores new tokens. The provider may have invalidated the old ones by now, so a failing database is retried.
    async fn store(&self, mailbox: &Mailbox, tokens: &Tokens) -> Result<Option<i64>, TokenError> {
        let id = mailbox.id;
        let access = seal_access(&self.seal_keys, id, &tokens.access_token)?;
        let rotated = tokens
            .refresh_token
            .as_ref()
            .map(|token| seal_refresh(&self.seal_keys, id, token))
            .transpose()?;
        let mut pause = STORE_PAUSE;
        for _ in 1..STORE_ATTEMPTS {
            match self
                .try_store(mailbox, tokens, &access, rotated.as_deref())
                .await
            {
                Ok(generation) => return Ok(generation),
                Err(error) => {
                    trouble!(error, error, credential_id = %id, "new tokens can't be stored; trying again");
                }
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Ok(self
            .try_store(mailbox, tokens, &access, rotated.as_deref())
            .await?)
    }

    async fn try_store(
        &self,
        mailbox: &Mailbox,
        tokens: &Tokens,
        access: &[u8],
        rotated: Option<&[u8]>,
    ) -> Result<Option<i64>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let (id, refreshed) = (mailbox.id, Some(mailbox.token_generation));
        let expires_at = tokens.expires_at;
        let due = self.clock.now() + self.settings.refresh_idle;
        mailboxes::store_tokens(
            &mut connection,
            id,
            refreshed,
            access,
            rotated,
            expires_at,
            due,
        )
        .await
    }

    /// Requests new tokens. A dead grant is confirmed by a second request, since providers have been seen to report one
    /// spuriously.
    async fn ask(&self, mailbox: &Mailbox, provider: &MailProvider) -> Result<Asked, TokenError> {
        let mut reason = DisconnectReason::InvalidGrant;
        let mut said = "no refresh token is stored".to_owned();
        let Some(sealed) = mailbox.refresh_token_sealed.as_deref() else {
            return Ok(Asked::Ended(reason, said));
        };
        let refresh_token = self
            .seal_keys
            .unseal(&refresh_context(mailbox.id), sealed)?;
        for _ in 0..2 {
            let error = match provider
                .oauth
                .refresh(&refresh_token, &mailbox.scopes)
                .await
            {
                Ok(tokens) => return Ok(Asked::Tokens(tokens)),
                Err(error) => error,
            };
            if let Some(ended) = error.grant_ended() {
                reason = ended;
                said = error.to_string();
            } else {
                metrics::counter!(
                    "mailgate_token_refresh_failures_total",
                    "plugin" => mailbox.plugin.as_str(),
                    "reason" => error.reason(),
                )
                .increment(1);
                return Err(TokenError::Unavailable(error.to_string()));
            }
        }
        Ok(Asked::Ended(reason, said))
    }
}

/// The provider's response to a refresh.
enum Asked {
    Tokens(Tokens),
    /// The grant is dead, in the provider's own words.
    Ended(DisconnectReason, String),
}

fn access_context(id: CredentialId) -> String {
    format!("mailboxes.access_token {}", id.0)
}

/// The sealing context of a mailbox's refresh token.
pub(super) fn refresh_context(id: CredentialId) -> String {
    format!("mailboxes.refresh_token {}", id.0)
}

/// Seals an access token for its mailbox.
pub(super) fn seal_access(
    keys: &SealKeys,
    id: CredentialId,
    token: &SecretString,
) -> Result<Vec<u8>, SealError> {
    keys.seal(&access_context(id), token.expose_secret())
}

/// Seals a refresh token for its mailbox.
pub(super) fn seal_refresh(
    keys: &SealKeys,
    id: CredentialId,
    token: &SecretString,
) -> Result<Vec<u8>, SealError> {
    keys.seal(&refresh_context(id), token.expose_secret())
}
