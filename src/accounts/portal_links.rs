//! Addresses that sign in to the portal once: mailed to the subscriber, or minted with its API secret.

use chrono::{DateTime, TimeDelta, Utc};
use tokio_util::sync::CancellationToken;

use super::Accounts;
use super::audit::commit_change;
use super::portal_sessions::{SignInError, Visitor};
use crate::storage::portal_links::{self, NewLink};
use crate::storage::{portal_sessions, transaction};
use mailgate_types::audit::Author;
use mailgate_types::ids::SubscriberId;
use mailgate_types::past::Past;
use mailgate_types::secrets::{LinkToken, NoRandomness, SessionToken};
use mailgate_types::sign_in::SignedInBy;

/// How long a minted link lasts.
pub const MINTED: TimeDelta = TimeDelta::minutes(5);

/// Minted links that a subscriber may have open.
const OPEN: i64 = 20;

/// Rows that are removed in one statement.
const BATCH: i64 = 1_000;

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// The subscriber has as many as it may.
    #[error("too many sign-in links are open")]
    TooMany,
    /// No token could be generated.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The database's error.
    #[error("the database can't be asked: {0}")]
    Database(#[from] sqlx::Error),
}

impl Accounts {
    /// Mints a link that lasts for `life`; returns its token, and when it ends.
    pub async fn mint_portal_link(
        &self,
        subscriber: SubscriberId,
        life: TimeDelta,
    ) -> Result<(LinkToken, DateTime<Utc>), MintError> {
        self.open_portal_link(subscriber, SignedInBy::Minted, life, OPEN)
            .await
    }

    /// Opens a link, unless the subscriber has `most` of its kind.
    pub(super) async fn open_portal_link(
        &self,
        subscriber: SubscriberId,
        kind: SignedInBy,
        life: TimeDelta,
        most: i64,
    ) -> Result<(LinkToken, DateTime<Utc>), MintError> {
        let now = self.clock.now();
        let token = LinkToken::generate()?;
        let expires_at = now + life;
        let link = NewLink {
            digest: &self.seal_keys.lookup_digest(token.expose()),
            subscriber,
            kind,
            expires_at,
        };
        let mut connection = self.pool.acquire().await?;
        if portal_links::insert(&mut connection, &link, now, most).await? {
            Ok((token, expires_at))
        } else {
            Err(MintError::TooMany)
        }
    }

    /// Whether a link would sign somebody in.
    pub async fn portal_link_is_open(&self, token: &LinkToken) -> Result<bool, sqlx::Error> {
        let digests = self.seal_keys.lookup_digests(token.expose());
        let mut connection = self.pool.acquire().await?;
        portal_links::is_open(&mut connection, &digests, self.clock.now()).await
    }

    /// Signs the holder of a link in, once.
    pub async fn sign_in_by_link(
        &self,
        token: &LinkToken,
        visitor: &Visitor,
    ) -> Result<SessionToken, SignInError> {
        let now = self.clock.now();
        let digests = self.seal_keys.lookup_digests(token.expose());
        let mut transaction = transaction::begin(&self.pool).await?;
        let consumed = portal_links::consume(&mut transaction, &digests, now).await?;
        let (subscriber, by) = consumed.ok_or(SignInError::Spent)?;
        let (token, entry) = self
            .open_session(&mut transaction, subscriber, by, visitor)
            .await?;
        let author = Author::subscriber(visitor.address);
        commit_change(transaction, author, now, entry).await?;
        Ok(token)
    }

    /// Removes the links and sessions of the portal that have ended by themselves.
    pub async fn forget_portal_sessions(
        &self,
        stop: &CancellationToken,
    ) -> Result<(), sqlx::Error> {
        let past = Past::by(&self.clock);
        while !stop.is_cancelled() {
            let mut connection = self.pool.acquire().await?;
            let links = portal_links::remove_lapsed(&mut connection, past, BATCH).await?;
            let sessions = portal_sessions::remove_lapsed(&mut connection, past, BATCH).await?;
            if links.max(sessions) < BATCH.unsigned_abs() {
                return Ok(());
            }
        }
        Ok(())
    }
}
