//! Begins a user's way to a provider (RFC 6749 §4.1.1). The state that brings the user back (§10.12) is sealed,
//! holds all that is needed then, and is bound to the browser that began; nothing is stored until it is used.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

use super::Mailboxes;
use super::connect_session::ConnectSession;
use crate::config::PluginSettings;
use crate::providers::mail::oauth::AuthorizationRequest;
use crate::storage::apps::connecting::{self, PublicApp};
use crate::storage::used_links;
use mailgate_types::plugin::Plugin;
use mailgate_types::seal::SealError;
use mailgate_types::sealed_text;
use mailgate_types::secrets::{NoRandomness, PushableKey, random_bytes};

/// How long a user may take at the provider.
const LIFE: TimeDelta = TimeDelta::minutes(10);

/// Lapsed links that are removed together.
const BATCH: i64 = 1_000;

/// What states are sealed for.
pub(super) const CONTEXT: &str = "connect state";

/// What a connect link says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConnectLink {
    /// The provider that was chosen.
    pub plugin: Plugin,
    /// Whose mailbox it is for, and on whose word.
    pub origin: LinkOrigin,
}

/// Who says whose mailbox a link is for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum LinkOrigin {
    /// The link itself: a bare one, which anybody can write.
    Bare {
        /// The app's own name for the end user.
        user_id: Option<String>,
        /// The account that the user is expected to choose.
        login_hint: Option<String>,
    },
    /// The app, by a connect session.
    Session(Box<ConnectSession>),
}

impl LinkOrigin {
    /// The app's own name for the end user.
    #[must_use]
    pub fn user_id(&self) -> Option<&str> {
        match self {
            Self::Bare { user_id, .. } => user_id.as_deref(),
            Self::Session(session) => session.user_id.as_deref(),
        }
    }

    /// The account that the user is expected to choose.
    fn login_hint(&self) -> Option<&str> {
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

/// What the provider is given and gives back.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) id: Uuid,
    pub(super) app: Uuid,
    pub(super) pushable_key: String,
    pub(super) link: ConnectLink,
    pub(super) redirect_uri: String,
    pub(super) code_verifier: String,
    /// Digest of what the browser was given.
    pub(super) browser: String,
    pub(super) expires_at: DateTime<Utc>,
}

/// Why a user can't be sent to a provider.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The plugin has no settings.
    #[error("{0} is not set up")]
    PluginOff(Plugin),
    /// The settings' address is no address.
    #[error("the authorize_url of {0} can't be read")]
    AuthorizeUrl(Plugin),
    /// No verifier could be drawn.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The state could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

impl Mailboxes {
    /// The settings of the providers that are on, in order.
    pub fn providers(&self) -> impl Iterator<Item = &PluginSettings> {
        self.providers.all().map(|provider| &provider.settings)
    }

    /// The app that a connect link with this pushable key is of.
    pub async fn linked_app(
        &self,
        pushable_key: &PushableKey,
    ) -> Result<Option<PublicApp>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        connecting::find_public(&mut connection, pushable_key.expose()).await
    }

    /// The provider's page that a user is sent to. `redirect_uri` is where the user comes back, once, within ten
    /// minutes and in the same browser: the one that shows what `browser` is the digest of.
    pub fn begin(
        &self,
        app: &PublicApp,
        link: &ConnectLink,
        redirect_uri: &str,
        browser: &str,
    ) -> Result<Url, BeginError> {
        let plugin = link.plugin;
        let provider = self
            .providers
            .get(plugin)
            .ok_or(BeginError::PluginOff(plugin))?;
        let code_verifier = URL_SAFE_NO_PAD.encode(random_bytes::<32>()?);
        let state = State {
            id: Uuid::new_v4(),
            app: app.id.0,
            pushable_key: app.pushable_key.clone(),
            link: link.clone(),
            redirect_uri: redirect_uri.to_owned(),
            code_verifier: code_verifier.clone(),
            browser: browser.to_owned(),
            expires_at: self.clock.now() + LIFE,
        };
        provider
            .oauth
            .authorization_url(&AuthorizationRequest {
                redirect_uri,
                state: &sealed_text::seal(&self.seal_keys, CONTEXT, &state)?,
                code_verifier: &code_verifier,
                login_hint: link.origin.login_hint(),
            })
            .ok_or(BeginError::AuthorizeUrl(plugin))
    }

    /// Forgets used links that have lapsed, batch by batch, until there are none or `stop`.
    pub async fn forget_lapsed_links(&self, stop: &CancellationToken) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let now = self.clock.now();
        while !stop.is_cancelled() {
            if used_links::remove_lapsed(&mut connection, now, BATCH).await? == 0 {
                break;
            }
        }
        Ok(())
    }
}
