//! Begins a user's way to a provider: the app of a connect link, the providers to choose from, and the
//! state that brings the user back (RFC 6749 §4.1.1, §10.12).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::Mailboxes;
use crate::config::PluginSettings;
use crate::providers::mail::oauth::AuthorizationRequest;
use crate::storage::apps::connecting::{self, PublicApp};
use crate::storage::oauth_states::{self, NewState};
use crate::types::plugin::Plugin;
use crate::types::seal::SealError;
use crate::types::secrets::{NoRandomness, PushableKey, random_bytes};

/// How long a user may take at the provider.
const LIFE: TimeDelta = TimeDelta::minutes(10);

/// Lapsed states that are removed together.
const BATCH: i64 = 1_000;

/// What a connect link says.
#[derive(Debug, Clone)]
pub struct ConnectLink {
    /// The provider that was chosen.
    pub plugin: Plugin,
    /// The app's own name for the end user.
    pub user_id: Option<String>,
    /// The account that the user is expected to choose.
    pub login_hint: Option<String>,
}

/// Why a user can't be sent to a provider.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The app is gone, or has another pushable key by now.
    #[error("the pushable key is no app's any more")]
    Gone,
    /// The plugin has no settings.
    #[error("{0} is not set up")]
    PluginOff(Plugin),
    /// The settings' address is no address.
    #[error("the authorize_url of {0} can't be read")]
    AuthorizeUrl(Plugin),
    /// No state could be drawn.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The verifier could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// What the database said.
    #[error("the database can't be asked: {0}")]
    Database(#[from] sqlx::Error),
}

impl Mailboxes {
    /// The settings of the providers that are on, in order.
    pub fn providers(&self) -> impl Iterator<Item = &PluginSettings> {
        self.providers.all().map(|provider| &provider.settings)
    }

    /// The app that a connect link with this pushable key is of.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn linked_app(
        &self,
        pushable_key: &PushableKey,
    ) -> Result<Option<PublicApp>, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        connecting::find_public(&mut connection, pushable_key.expose()).await
    }

    /// The provider's page that a user is sent to. `redirect_uri` is where the user comes back, once
    /// and within ten minutes.
    ///
    /// # Errors
    ///
    /// [`BeginError`].
    pub async fn begin(
        &self,
        app: &PublicApp,
        link: &ConnectLink,
        redirect_uri: &str,
    ) -> Result<Url, BeginError> {
        let plugin = link.plugin;
        let provider = self
            .providers
            .get(plugin)
            .ok_or(BeginError::PluginOff(plugin))?;
        let state = URL_SAFE_NO_PAD.encode(random_bytes::<32>()?);
        let code_verifier = URL_SAFE_NO_PAD.encode(random_bytes::<32>()?);
        let url = provider
            .oauth
            .authorization_url(&AuthorizationRequest {
                redirect_uri,
                state: &state,
                code_verifier: &code_verifier,
                login_hint: link.login_hint.as_deref(),
            })
            .ok_or(BeginError::AuthorizeUrl(plugin))?;
        let digest = self.seal_keys.lookup_digest(&state);
        let sealed = self
            .seal_keys
            .seal(&verifier_context(&digest), &code_verifier)?;
        let mut connection = self.pool.acquire().await?;
        let stored = oauth_states::insert(
            &mut connection,
            &NewState {
                digest: &digest,
                app: app.id,
                pushable_key: &app.pushable_key,
                plugin,
                user_id: link.user_id.as_deref(),
                login_hint: link.login_hint.as_deref(),
                redirect_uri,
                code_verifier_sealed: &sealed,
                expires_at: self.clock.now() + LIFE,
            },
        )
        .await?;
        stored.then_some(url).ok_or(BeginError::Gone)
    }

    /// Removes the states of users who never came back, batch by batch, until there are none or `stop`.
    ///
    /// # Errors
    ///
    /// What the database said.
    pub async fn remove_lapsed_states(&self, stop: &CancellationToken) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let now = self.clock.now();
        while !stop.is_cancelled() {
            if oauth_states::remove_lapsed(&mut connection, now, BATCH).await? == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// The place that a PKCE verifier is sealed for.
pub(super) fn verifier_context(digest: &[u8]) -> String {
    let digest = URL_SAFE_NO_PAD.encode(digest);
    format!("oauth_states.code_verifier {digest}")
}
