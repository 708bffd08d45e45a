//! Starts the authorization request at a provider (RFC 6749 §4.1.1). The `state` parameter (§10.12) is sealed, carries
//! everything that the callback needs, and is bound to the browser that started it; nothing is stored until it is used.

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
use mailgate_types::language::Language;
use mailgate_types::past::Past;
use mailgate_types::plugin::Plugin;
use mailgate_types::seal::SealError;
use mailgate_types::sealed_text;
use mailgate_types::secrets::{NoRandomness, PushableKey, random_bytes};

/// How long a user may take at the provider.
const LIFE: TimeDelta = TimeDelta::minutes(10);

/// Number of expired links removed in one batch.
const BATCH: i64 = 1_000;

/// How long past its end a used link is remembered: a clock that is set back as far makes none valid again.
const REMEMBERED: TimeDelta = TimeDelta::days(30);

/// The sealing context of states.
pub(super) const CONTEXT: &str = "connect state";

/// The contents of a connect link.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConnectLink {
    /// The chosen provider.
    pub plugin: Plugin,
    /// Which end user the mailbox is for, and who vouches for that.
    pub origin: LinkOrigin,
    /// The language that its pages were asked for in; `None`: in the browser's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
}

/// Who vouches for the end user of a link.
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

/// The `state` parameter, which the provider returns unchanged.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) id: Uuid,
    pub(super) app: Uuid,
    pub(super) pushable_key: String,
    pub(super) link: ConnectLink,
    pub(super) redirect_uri: String,
    pub(super) code_verifier: String,
    /// Digest of the secret that the browser was given.
    pub(super) browser: String,
    pub(super) expires_at: DateTime<Utc>,
}

/// Why a user can't be sent to a provider.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The plugin has no settings.
    #[error("{0} is not set up")]
    PluginOff(Plugin),
    /// The configured authorization URL is invalid.
    #[error("the authorize_url of {0} can't be read")]
    AuthorizeUrl(Plugin),
    /// No PKCE verifier could be generated.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The state could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

impl Mailboxes {
    /// The settings of the enabled providers, in order.
    pub fn providers(&self) -> impl Iterator<Item = &PluginSettings> {
        self.providers.all().map(|provider| &provider.settings)
    }

    /// The app whose connect links carry this pushable key.
    pub async fn linked_app(
        &self,
        pushable_key: &PushableKey,
    ) -> Result<Option<PublicApp>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        connecting::find_public(&mut connection, pushable_key.expose()).await
    }

    /// The URL of the provider's authorization page. The user returns to `redirect_uri` once, within ten minutes, and
    /// in the same browser: the one that holds the value whose digest is `browser`.
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
                language: link.language,
            })
            .ok_or(BeginError::AuthorizeUrl(plugin))
    }

    /// The language that the pages of an authorization were asked for in, for what is said of one that can't be
    /// completed any more.
    #[must_use]
    pub fn language_of(&self, state: &str) -> Option<Language> {
        let state: State = sealed_text::open(&self.seal_keys, CONTEXT, state)?;
        state.link.language
    }

    /// Deletes used links that have long expired, in batches, until none are left or `stop` is cancelled.
    pub async fn forget_lapsed_links(&self, stop: &CancellationToken) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let past = Past::by(&self.clock).before(REMEMBERED);
        while !stop.is_cancelled() {
            if used_links::remove_lapsed(&mut connection, past, BATCH).await? == 0 {
                break;
            }
        }
        Ok(())
    }
}
