//! Connect sessions: links that an app requests for one user and one mailbox. They are sealed and self-contained, so
//! that nothing is stored until one is used.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::Mailboxes;
use crate::accounts::audit;
use mailgate_storage::apps::connecting::PublicApp;
use mailgate_storage::{subscribers, used_links};
use mailgate_types::audit::{AuditAction, AuditEntry, Author};
use mailgate_types::ids::AppId;
use mailgate_types::moment::iso8601;
use mailgate_types::plugin::Plugin;
use mailgate_types::seal::SealError;
use mailgate_types::sealed_text;
use mailgate_types::secrets::PushableKey;

/// How long a session lasts at most.
pub const LONGEST_SESSION: TimeDelta = TimeDelta::days(7);

/// How long a session lasts by default.
pub const SESSION_LIFE: TimeDelta = TimeDelta::days(1);

/// Longest ID that an app gives a user, in characters.
pub const USER_ID_LENGTH: usize = 255;

/// The sealing context of sessions.
const CONTEXT: &str = "connect session";

/// An app's request for a session.
#[derive(Debug, Clone, Default)]
pub struct SessionRequest {
    /// The app's own id for the end user.
    pub user_id: Option<String>,
    /// The provider; `None` lets the user choose.
    pub plugin: Option<Plugin>,
    /// The account that the user is expected to choose.
    pub login_hint: Option<String>,
    /// The only account that is accepted.
    pub expected_email: Option<String>,
    /// Where the user is redirected afterwards; `None` for the app's own callback URL.
    pub callback_url: Option<String>,
    /// Its lifetime.
    pub life: TimeDelta,
}

/// A session, as it is sealed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConnectSession {
    pub(super) id: Uuid,
    pub(super) app: Uuid,
    pub(super) pushable_key: String,
    /// The app's own id for the end user.
    pub user_id: Option<String>,
    /// The provider; `None` lets the user choose.
    pub plugin: Option<Plugin>,
    /// The account that the user is expected to choose.
    pub login_hint: Option<String>,
    /// The only account that is accepted.
    pub expected_email: Option<String>,
    /// Where the user is redirected afterwards; `None` for the app's own callback URL.
    pub callback_url: Option<String>,
    /// When it was created; the previous release doesn't record it.
    #[serde(default)]
    created_at: Option<DateTime<Utc>>,
    /// When it expires.
    pub expires_at: DateTime<Utc>,
}

impl ConnectSession {
    /// Whether the app revoked it: those created before `from` connect nothing.
    pub(super) fn is_revoked(&self, from: Option<DateTime<Utc>>) -> bool {
        from.is_some_and(|from| self.created_at.is_none_or(|created_at| created_at < from))
    }
}

/// A newly created session.
#[derive(Debug)]
pub struct CreatedSession {
    /// The path and query of its link, below the gateway's public address.
    pub link: String,
    /// When it expires.
    pub expires_at: DateTime<Utc>,
}

/// Why no session was created.
#[derive(Debug, thiserror::Error)]
pub enum CreateSessionError {
    /// The operator has suspended the account, for this reason.
    #[error(
        "No mailbox can be connected: the operator of this gateway has suspended the account ({0}). Contact the operator to have it resumed"
    )]
    Suspended(String),
    /// It can't be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database failed.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
}

/// Why a session is rejected.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// It belongs to another app or key, has expired, was revoked, or is malformed.
    #[error("the connect session is not valid")]
    Invalid,
    /// A mailbox was already connected with it.
    #[error("the connect session was used")]
    Used,
    /// The database failed.
    #[error("database query failed: {0}")]
    Database(#[from] sqlx::Error),
}

impl Mailboxes {
    /// Creates a session for the app with this pushable key.
    ///
    /// # Errors
    ///
    /// [`CreateSessionError`]; there is none then.
    pub async fn create_session(
        &self,
        app: AppId,
        pushable_key: &str,
        request: SessionRequest,
        author: Author,
    ) -> Result<CreatedSession, CreateSessionError> {
        let now = self.clock.now();
        let mut transaction = audit::begin(&self.pool, author, now).await?;
        if let Some(suspension) = subscribers::suspension_of_app(&mut transaction, app).await? {
            return Err(CreateSessionError::Suspended(suspension.reason));
        }
        let session = ConnectSession {
            id: Uuid::new_v4(),
            app: app.0,
            pushable_key: pushable_key.to_owned(),
            user_id: request.user_id,
            plugin: request.plugin,
            login_hint: request.login_hint,
            expected_email: request.expected_email,
            callback_url: request.callback_url,
            created_at: Some(now),
            expires_at: now + request.life,
        };
        let entry = AuditEntry::of_app(AuditAction::ConnectSessionCreated, app).with(json!({
            "user_id": session.user_id,
            "plugin": session.plugin.map(Plugin::as_str),
            "expected_email": session.expected_email,
            "expires_at": iso8601(session.expires_at),
        }));
        transaction.commit_change(entry).await?;
        Ok(CreatedSession {
            link: format!(
                "/connect/{pushable_key}?session={}",
                self.seal_session(&session)?
            ),
            expires_at: session.expires_at,
        })
    }

    /// The session as sealed text, for its link.
    ///
    /// # Errors
    ///
    /// If it can't be sealed.
    pub fn seal_session(&self, session: &ConnectSession) -> Result<String, SealError> {
        sealed_text::seal(&self.seal_keys, CONTEXT, session)
    }

    /// The session in a link with this pushable key. The link alone is proof: it was given only to its user.
    #[must_use]
    pub fn read_session(&self, pushable_key: &PushableKey, token: &str) -> Option<ConnectSession> {
        sealed_text::open(&self.seal_keys, CONTEXT, token).filter(|session: &ConnectSession| {
            session.pushable_key == pushable_key.expose() && session.expires_at > self.clock.now()
        })
    }

    /// Checks that a mailbox of this app may still be connected with a session.
    pub async fn check_session(
        &self,
        app: &PublicApp,
        session: &ConnectSession,
    ) -> Result<(), SessionError> {
        if session.app != app.id.0 || session.is_revoked(app.connect_sessions_from) {
            return Err(SessionError::Invalid);
        }
        let mut connection = self.pool.acquire().await?;
        if used_links::exists(&mut connection, session.id).await? {
            return Err(SessionError::Used);
        }
        Ok(())
    }
}
