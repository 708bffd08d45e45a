//! The contents of a connect link, and the proof of its end user.

use serde::{Deserialize, Serialize};

use super::connect_session::ConnectSession;
use mailgate_types::language::Language;
use mailgate_types::plugin::Plugin;

/// The contents of a connect link.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConnectLink {
    /// The chosen provider.
    pub plugin: Plugin,
    /// The end user of the mailbox, and the proof of it.
    pub origin: LinkOrigin,
    /// The language requested for its pages; `None`: the browser's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
}

/// The proof of a link's end user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum LinkOrigin {
    /// Only the link itself: a bare link, which anyone can write.
    Bare {
        /// The app's own id for the end user.
        user_id: Option<String>,
        /// The account that the user is expected to choose.
        login_hint: Option<String>,
    },
    /// The app, through a connect session.
    Session(Box<ConnectSession>),
}

impl LinkOrigin {
    /// The app's own id for the end user.
    #[must_use]
    pub fn user_id(&self) -> Option<&str> {
        match self {
            Self::Bare { user_id, .. } => user_id.as_deref(),
            Self::Session(session) => session.user_id.as_deref(),
        }
    }

    /// The account that the user is expected to choose.
    pub(super) fn login_hint(&self) -> Option<&str> {
        match self {
            Self::Bare { login_hint, .. } => login_hint.as_deref(),
            Self::Session(session) => {
                let hint = session.login_hint.as_ref();
                hint.or(session.expected_email.as_ref()).map(String::as_str)
            }
        }
    }

    /// The connect session.
    #[must_use]
    pub fn session(&self) -> Option<&ConnectSession> {
        match self {
            Self::Bare { .. } => None,
            Self::Session(session) => Some(session),
        }
    }
}
