//! Starts the authorization request at a provider (RFC 6749 §4.1.1). The data for the callback is sealed, bound to the
//! browser that started it, and kept by that browser; nothing is stored until it is used.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::Mailboxes;
use super::link::ConnectLink;
use super::state::{Authorization, State};
use mailgate_providers::mail::oauth::AuthorizationRequest;
use mailgate_settings::PluginSettings;
use mailgate_storage::apps::connecting::{self, PublicApp};
use mailgate_storage::used_links;
use mailgate_types::language::Language;
use mailgate_types::past::Past;
use mailgate_types::plugin::Plugin;
use mailgate_types::seal::SealError;
use mailgate_types::secrets::{NoRandomness, PushableKey, random_bytes};

/// How long a user may take at the provider.
pub const AUTHORIZATION_LIFE: TimeDelta = TimeDelta::minutes(10);

/// Number of expired links removed in one batch.
const BATCH: i64 = 1_000;

/// How long past its end a used link is remembered: a clock set back by less makes none valid again.
pub(super) const REMEMBERED: TimeDelta = TimeDelta::days(30);

/// An authorization that was started.
#[derive(Debug)]
pub struct Begun {
    /// The provider's authorization page.
    pub url: Url,
    /// The `state` parameter in it.
    pub state: String,
    /// The rest, sealed, which the browser must return with the state.
    pub pending: String,
}

/// Why an authorization can't be started.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The plugin has no settings.
    #[error("{0} is not set up")]
    PluginOff(Plugin),
    /// The configured authorization URL is invalid.
    #[error("the authorize_url of {0} is invalid")]
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

    /// Starts an authorization. The user returns to `redirect_uri` once, within ten minutes, and in the same browser:
    /// the one that holds the value whose digest is `browser`.
    pub fn begin(
        &self,
        app: &PublicApp,
        link: &ConnectLink,
        redirect_uri: &str,
        browser: &str,
    ) -> Result<Begun, BeginError> {
        let plugin = link.plugin;
        let provider = self
            .providers
            .get(plugin)
            .ok_or(BeginError::PluginOff(plugin))?;
        let code_verifier = URL_SAFE_NO_PAD.encode(random_bytes::<32>()?);
        let expires_at = self.clock.now() + AUTHORIZATION_LIFE;
        let state = State::new(browser, link.language, expires_at).seal(&self.seal_keys)?;
        let authorization = Authorization {
            id: state.id,
            app: app.id.0,
            pushable_key: app.pushable_key.clone(),
            link: link.clone(),
            redirect_uri: redirect_uri.to_owned(),
            code_verifier: code_verifier.clone(),
            browser: browser.to_owned(),
            expires_at,
        };
        let url = provider
            .oauth
            .authorization_url(&AuthorizationRequest {
                redirect_uri,
                state: &state.text,
                code_verifier: &code_verifier,
                login_hint: link.origin.login_hint(),
                language: link.language,
            })
            .ok_or(BeginError::AuthorizeUrl(plugin))?;
        Ok(Begun {
            url,
            state: state.text,
            pending: authorization.seal(&self.seal_keys)?,
        })
    }

    /// The language requested for the pages of an authorization, for the error page of one that can no longer be
    /// completed.
    #[must_use]
    pub fn language_of(&self, state: &str) -> Option<Language> {
        let former = || {
            Authorization::open_former(&self.seal_keys, state)?
                .link
                .language
        };
        match State::open(&self.seal_keys, state) {
            Some((state, _)) => state.language,
            None => former(),
        }
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
