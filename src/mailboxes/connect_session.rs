//! Connect sessions: links that an app asks for, for one user, good for one mailbox. They are sealed and say
//! themselves what they are about, so that nothing is stored until one is used.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Mailboxes;
use crate::storage::apps::connecting::PublicApp;
use crate::storage::used_links;
use mailgate_types::ids::AppId;
use mailgate_types::plugin::Plugin;
use mailgate_types::seal::SealError;
use mailgate_types::sealed_text;
use mailgate_types::secrets::PushableKey;

/// What sessions are sealed for.
const CONTEXT: &str = "connect session";

/// What an app asks for.
#[derive(Debug, Clone, Default)]
pub struct SessionRequest {
    /// The app's own name for the end user.
    pub user_id: Option<String>,
    /// The provider; `None`: the user chooses.
    pub plugin: Option<Plugin>,
    /// The account that the user is expected to choose.
    pub login_hint: Option<String>,
    /// The only account that is taken.
    pub expected_email: Option<String>,
    /// Where the user goes afterwards; `None`: where the app says.
    pub callback_url: Option<String>,
    /// How long it lasts.
    pub life: TimeDelta,
}

/// A session, as it is sealed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConnectSession {
    pub(super) id: Uuid,
    pub(super) app: Uuid,
    pub(super) pushable_key: String,
    /// The app's own name for the end user.
    pub user_id: Option<String>,
    /// The provider; `None`: the user chooses.
    pub plugin: Option<Plugin>,
    /// The account that the user is expected to choose.
    pub login_hint: Option<String>,
    /// The only account that is taken.
    pub expected_email: Option<String>,
    /// Where the user goes afterwards; `None`: where the app says.
    pub callback_url: Option<String>,
    /// When it lapses.
    pub expires_at: DateTime<Utc>,
}

/// A session that was made.
#[derive(Debug)]
pub struct CreatedSession {
    /// It, sealed.
    pub token: String,
    /// When it lapses.
    pub expires_at: DateTime<Utc>,
}

/// Why a session opens nothing.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// It is of another app or key, has lapsed, or is none.
    #[error("the connect session is not valid")]
    Invalid,
    /// A mailbox was connected by it.
    #[error("the connect session was used")]
    Used,
    /// What the database said.
    #[error("the database can't be asked: {0}")]
    Database(#[from] sqlx::Error),
}

impl Mailboxes {
    /// Makes a session of an app with this pushable key.
    ///
    /// # Errors
    ///
    /// When it can't be sealed.
    pub fn create_session(
        &self,
        app: AppId,
        pushable_key: &str,
        request: SessionRequest,
    ) -> Result<CreatedSession, SealError> {
        let session = ConnectSession {
            id: Uuid::new_v4(),
            app: app.0,
            pushable_key: pushable_key.to_owned(),
            user_id: request.user_id,
            plugin: request.plugin,
            login_hint: request.login_hint,
            expected_email: request.expected_email,
            callback_url: request.callback_url,
            expires_at: self.clock.now() + request.life,
        };
        Ok(CreatedSession {
            token: self.seal_session(&session)?,
            expires_at: session.expires_at,
        })
    }

    /// The session as text, for its link.
    ///
    /// # Errors
    ///
    /// When it can't be sealed.
    pub fn seal_session(&self, session: &ConnectSession) -> Result<String, SealError> {
        sealed_text::seal(&self.seal_keys, CONTEXT, session)
    }

    /// The session that a link with this pushable key holds, by the link alone: whoever shows one was given it.
    #[must_use]
    pub fn read_session(&self, pushable_key: &PushableKey, token: &str) -> Option<ConnectSession> {
        sealed_text::open(&self.seal_keys, CONTEXT, token).filter(|session: &ConnectSession| {
            session.pushable_key == pushable_key.expose() && session.expires_at > self.clock.now()
        })
    }

    /// Whether a mailbox of this app may still be connected by a session.
    pub async fn check_session(
        &self,
        app: &PublicApp,
        session: &ConnectSession,
    ) -> Result<(), SessionError> {
        if session.app != app.id.0 {
            return Err(SessionError::Invalid);
        }
        let mut connection = self.pool.acquire().await?;
        if used_links::exists(&mut connection, session.id).await? {
            return Err(SessionError::Used);
        }
        Ok(())
    }
}
