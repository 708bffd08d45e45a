//! Sessions of the portal: 12 hours without use, 7 days at most. Postgres has only digests of their tokens, so every
//! replica knows all sessions, and a reader of the database can't take one over.

use std::net::IpAddr;

use chrono::TimeDelta;
use serde_json::json;
use sqlx::PgConnection;

use crate::accounts::Accounts;
use crate::accounts::audit;
use crate::accounts::keys::renew::RenewError;
use mailgate_storage::portal_sessions::{self, FoundSession, NewSession, PortalSession};
use mailgate_storage::subscribers::Subscriber;
use mailgate_types::audit::{AuditAction, AuditEntry, Author, Credential};
use mailgate_types::ids::{PortalSessionId, SubscriberId};
use mailgate_types::secrets::{NoRandomness, SessionToken};
use mailgate_types::sign_in::SignedInBy;

/// How long an unused session lasts.
const IDLE: TimeDelta = TimeDelta::hours(12);

/// How long any session lasts.
const LONGEST: TimeDelta = TimeDelta::days(7);

/// The precision of the time of last use, so that most requests write nothing.
const TOUCHED: TimeDelta = TimeDelta::minutes(1);

/// Characters of a browser's name that are kept.
const USER_AGENT: usize = 200;

/// Maximum sessions of a subscriber: a further one ends the oldest.
const MOST: i64 = 50;

/// Sessions that are listed.
const LISTED: i64 = 100;

/// Why a sign-in failed.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The link was used, has expired, or never existed.
    #[error("the link is no longer valid")]
    Spent,
    /// The API secret wasn't renewed, so the sign-in failed.
    #[error(transparent)]
    Renew(#[from] RenewError),
    /// No token could be generated.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The database's error.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
}

/// The browser that signs in.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// Its address.
    pub address: IpAddr,
    /// Its User-Agent.
    pub user_agent: String,
    /// The session that it has already; a sign-in ends it.
    pub session: Option<SessionToken>,
}

impl Accounts {
    /// Signs a subscriber in that has shown its API secret.
    pub async fn sign_in(
        &self,
        subscriber: &Subscriber,
        visitor: &Visitor,
    ) -> Result<SessionToken, SignInError> {
        let since = subscriber.credentials_since;
        let shown = Credential::ApiSecret { since };
        let author = Author::subscriber(visitor.address, subscriber.id, shown);
        let mut transaction = audit::begin(&self.pool, author, self.clock.now()).await?;
        let by = SignedInBy::ApiSecret;
        let (token, _, entry) = self
            .open_session(&mut transaction, subscriber.id, (by, false), visitor)
            .await?;
        transaction.commit_change(entry).await?;
        Ok(token)
    }

    /// Opens a session within the caller's transaction, and returns its audit entry. It records how its holder signed
    /// in, and whether that has lower priority than the API secret.
    pub(in crate::accounts) async fn open_session(
        &self,
        connection: &mut PgConnection,
        subscriber: SubscriberId,
        (by, needs_secret): (SignedInBy, bool),
        visitor: &Visitor,
    ) -> Result<(SessionToken, PortalSessionId, AuditEntry), SignInError> {
        let now = self.clock.now();
        let token = SessionToken::generate()?;
        let id = PortalSessionId::at(now);
        // Postgres holds no NUL.
        let name = visitor.user_agent.chars().filter(|it| !it.is_control());
        let session = NewSession {
            id,
            subscriber,
            digest: &self.seal_keys.lookup_digest(token.expose()),
            by,
            needs_secret,
            now,
            expires_at: now + LONGEST,
            user_agent: &name.take(USER_AGENT).collect::<String>(),
            address: &visitor.address.to_string(),
        };
        if let Some(former) = &visitor.session {
            let digests = self.seal_keys.lookup_digests(former.expose());
            portal_sessions::delete_by_digest(connection, &digests).await?;
        }
        portal_sessions::insert(connection, &session).await?;
        portal_sessions::delete_oldest(connection, subscriber, MOST).await?;
        let entry = AuditEntry::of_subscriber(AuditAction::PortalSignedIn, subscriber)
            .on(id)
            .with(json!({ "by": by.as_str() }));
        Ok((token, id, entry))
    }

    /// The open session of a token, and its subscriber.
    pub async fn portal_session(
        &self,
        token: &SessionToken,
    ) -> Result<Option<FoundSession>, sqlx::Error> {
        let now = self.clock.now();
        let digests = self.seal_keys.lookup_digests(token.expose());
        let mut connection = self.pool.acquire().await?;
        let found = portal_sessions::find(&mut connection, &digests, now, now - IDLE).await?;
        if let Some(FoundSession { session, .. }) = &found
            && now - session.last_used_at >= TOUCHED
        {
            portal_sessions::touch(&mut connection, session.id, now).await?;
        }
        Ok(found)
    }

    /// A subscriber's open sessions, the one used last first.
    pub async fn portal_sessions(
        &self,
        subscriber: SubscriberId,
    ) -> Result<Vec<PortalSession>, sqlx::Error> {
        let now = self.clock.now();
        let mut connection = self.pool.acquire().await?;
        portal_sessions::list(&mut connection, subscriber, now, now - IDLE, LISTED).await
    }

    /// Ends one session of a subscriber's; `false` if there is none.
    pub async fn end_portal_session(
        &self,
        subscriber: SubscriberId,
        id: PortalSessionId,
        author: Author,
    ) -> Result<bool, sqlx::Error> {
        let now = self.clock.now();
        let begun = audit::begin_alone(&self.pool, author, subscriber, now).await?;
        let Some(mut transaction) = begun else {
            return Ok(false);
        };
        if !portal_sessions::delete(&mut transaction, subscriber, id).await? {
            return Ok(false);
        }
        let entry = AuditEntry::of_subscriber(AuditAction::PortalSignedOut, subscriber).on(id);
        transaction.commit_change(entry).await?;
        Ok(true)
    }

    /// Ends all sessions of a subscriber's but one; returns how many.
    pub async fn end_other_portal_sessions(
        &self,
        subscriber: SubscriberId,
        kept: PortalSessionId,
        author: Author,
    ) -> Result<u64, sqlx::Error> {
        let now = self.clock.now();
        let begun = audit::begin_alone(&self.pool, author, subscriber, now).await?;
        let Some(mut transaction) = begun else {
            return Ok(0);
        };
        let ended =
            portal_sessions::delete_others(&mut transaction, subscriber, Some(kept)).await?;
        if ended > 0 {
            let entry = AuditEntry::of_subscriber(AuditAction::PortalSignedOut, subscriber)
                .with(json!({ "sessions": ended }));
            transaction.record(entry).await?;
        }
        transaction.commit().await?;
        Ok(ended)
    }
}
