//! Links that sign in to the portal once: mailed to the subscriber ([`super::sign_in_mail`] has how long those are
//! valid), or minted with its API secret.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sqlx::PgConnection;
use tokio_util::sync::CancellationToken;

use super::sessions::{SignInError, Visitor};
use crate::accounts::Accounts;
use crate::accounts::audit;
use crate::accounts::email_changes::chain::chain;
use crate::accounts::keys::renew::{MOST_UNCUT, Renewal};
use mailgate_storage::portal_links::{self, NewLink};
use mailgate_storage::{email_changes, portal_sessions, subscribers};
use mailgate_types::audit::{AuditAction, AuditEntry, Author, Credential};
use mailgate_types::ids::SubscriberId;
use mailgate_types::moment::iso8601;
use mailgate_types::past::Past;
use mailgate_types::secrets::{ApiSecret, LinkToken, NoRandomness, SessionToken};
use mailgate_types::sign_in::SignedInBy;

/// How long a minted link lasts.
pub const MINTED: TimeDelta = TimeDelta::minutes(5);

/// Minted links that a subscriber may have open.
const OPEN: i64 = 20;

/// How long changes of an address are kept: the owner who renews a stolen API secret sees them.
const CHANGES: TimeDelta = TimeDelta::days(90);

/// Rows that are removed in one statement.
const BATCH: i64 = 1_000;

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// The subscriber has reached the limit.
    #[error("too many sign-in links are open")]
    TooMany,
    /// The address that it would be mailed to is no longer the subscriber's.
    #[error("the address was changed meanwhile")]
    Moved,
    /// No token could be generated.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The database's error.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
}

/// A subscriber that signed in by a link.
#[derive(Debug)]
pub struct SignedIn {
    /// The session token for the browser's cookie.
    pub token: SessionToken,
    /// The new API secret, if it was renewed.
    pub api_secret: Option<ApiSecret>,
}

impl Accounts {
    /// Mints a link that lasts for `life`; returns its token, and when it ends.
    pub async fn mint_portal_link(
        &self,
        subscriber: SubscriberId,
        life: TimeDelta,
        author: Author,
    ) -> Result<(LinkToken, DateTime<Utc>), MintError> {
        let mut transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        let kind = SignedInBy::Minted;
        let minted = self.open_portal_link(&mut transaction, subscriber, (kind, None), life, OPEN);
        let minted = minted.await?;
        let entry = AuditEntry::of_subscriber(AuditAction::PortalLinkMinted, subscriber);
        let entry = entry.with(json!({ "expires_at": iso8601(minted.1) }));
        transaction.commit_change(entry).await?;
        Ok(minted)
    }

    /// Opens a link within the caller's transaction, unless the subscriber has `most` of its kind. With an address, only
    /// while that is still the subscriber's: it is mailed there.
    pub(in crate::accounts) async fn open_portal_link(
        &self,
        connection: &mut PgConnection,
        subscriber: SubscriberId,
        (kind, email): (SignedInBy, Option<&str>),
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
        // One at a time, so that concurrent requests can't exceed the limit.
        let fields = subscribers::lock_fields(connection, subscriber).await?;
        let fields = fields.ok_or(sqlx::Error::RowNotFound)?;
        if email.is_some_and(|email| fields.email.as_deref() != Some(email)) {
            return Err(MintError::Moved);
        }
        if portal_links::insert(connection, &link, now, most).await? {
            Ok((token, expires_at))
        } else {
            Err(MintError::TooMany)
        }
    }

    /// Whether a sign-in link would also renew the API secret; `None` if it is no longer valid.
    pub async fn portal_link_renews(&self, token: &LinkToken) -> Result<Option<bool>, sqlx::Error> {
        let now = self.clock.now();
        let digests = self.seal_keys.lookup_digests(token.expose());
        let mut connection = self.pool.acquire().await?;
        let open = portal_links::find_open(&mut connection, &digests, now).await?;
        let Some((subscriber, by)) = open else {
            return Ok(None);
        };
        let is_new = chain(&mut connection, subscriber, now).await?.is_some();
        Ok(Some(by == SignedInBy::Link && !is_new))
    }

    /// Signs the holder of a link in, once. With a renewal the API secret is renewed in the same transaction, so that a
    /// holder of the old one can't get in between; but only if the link was mailed to an address that isn't new. It
    /// then runs to completion even if the caller is cancelled.
    pub async fn sign_in_by_link(
        &self,
        token: LinkToken,
        visitor: Visitor,
        renewal: Option<Renewal>,
    ) -> Result<SignedIn, SignInError> {
        let digests = self.seal_keys.lookup_digests(token.expose());
        let holder = {
            let mut connection = self.pool.acquire().await?;
            portal_links::holder(&mut connection, &digests).await?
        };
        let holder = holder.ok_or(SignInError::Spent)?;
        if renewal.is_none() {
            return self.sign_in_holder(holder, &digests, &visitor, None).await;
        }
        let accounts = self.clone();
        let signing_in = async move {
            accounts
                .sign_in_holder(holder, &digests, &visitor, renewal)
                .await
        };
        self.uncut(holder, MOST_UNCUT, signing_in).await
    }

    async fn sign_in_holder(
        &self,
        holder: SubscriberId,
        digests: &[Vec<u8>],
        visitor: &Visitor,
        renewal: Option<Renewal>,
    ) -> Result<SignedIn, SignInError> {
        let now = self.clock.now();
        let author = Author::subscriber(visitor.address, holder, Credential::Link);
        let mut transaction = if renewal.is_some() {
            let begun = audit::begin_alone(&self.pool, author, holder, now).await?;
            begun.ok_or(SignInError::Spent)?
        } else {
            audit::begin(&self.pool, author, now).await?
        };
        // The subscriber first (see `storage`): changes of its address lock it before its links.
        subscribers::lock_fields(&mut transaction, holder).await?;
        let consumed = portal_links::consume(&mut transaction, digests, now).await?;
        let (subscriber, by) = consumed.ok_or(SignInError::Spent)?;
        let mut needs_secret = false;
        if by == SignedInBy::Link {
            // A visitor who used a mailed link reads the address; but a new address may be a thief's.
            subscribers::confirm_email(&mut transaction, subscriber).await?;
            needs_secret = chain(&mut transaction, subscriber, now).await?.is_some();
        }
        let (token, session, entry) = self
            .open_session(&mut transaction, subscriber, (by, needs_secret), visitor)
            .await?;
        transaction.record(entry).await?;
        let api_secret = match renewal {
            Some(renewal) if by == SignedInBy::Link && !needs_secret => {
                let kept = Some(session);
                let renewed =
                    self.renew_by_mail(&mut transaction, subscriber, renewal, kept, author);
                Some(renewed.await?)
            }
            _ => None,
        };
        transaction.commit().await?;
        Ok(SignedIn { token, api_secret })
    }

    /// Removes expired links and sessions of the portal, and old changes of addresses.
    pub async fn forget_portal_sessions(
        &self,
        stop: &CancellationToken,
    ) -> Result<(), sqlx::Error> {
        let past = Past::by(&self.clock);
        while !stop.is_cancelled() {
            let mut connection = self.pool.acquire().await?;
            let links = portal_links::remove_lapsed(&mut connection, past, BATCH).await?;
            let sessions = portal_sessions::remove_lapsed(&mut connection, past, BATCH).await?;
            let kept = past.before(CHANGES);
            let changes = email_changes::remove_lapsed(&mut connection, kept, BATCH).await?;
            if links.max(sessions).max(changes) < BATCH.unsigned_abs() {
                return Ok(());
            }
        }
        Ok(())
    }
}
