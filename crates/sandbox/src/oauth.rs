//! The sandbox mailbox provider's authorization server: OAuth 2 (RFC 6749) with PKCE S256 required
//! (RFC 7636), revocation (RFC 7009) and a userinfo endpoint, for one client.
//!
//! This module has the settings, the handle for the SMTP server and tests, and the routes. `grants` stores grants,
//! `authorize` is the endpoint for users, `token` has the ones for the client.

mod authorize;
mod grants;
mod parameters;
#[cfg(test)]
mod tests;
mod token;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use url::Url;

use self::grants::Grants;
use mailgate_types::clock::SharedClock;
use mailgate_types::secrets::NoRandomness;
use mailgate_types::web_address::names_loopback;

/// Largest accepted form, in bytes.
const FORM_MAX: usize = 64 * 1024;

/// The authorization server's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The one client's id.
    pub client_id: String,
    /// The one client's secret.
    pub client_secret: SecretString,
    /// Accepted redirect URIs in addition to http on a loopback host, compared exactly.
    pub redirect_uris: Vec<String>,
    /// Lifetime of an access token, in seconds.
    pub access_token_seconds: u32,
    /// The folder of the grants: one file each.
    pub directory: PathBuf,
    /// The time.
    pub clock: SharedClock,
}

/// The running authorization server. Clones share one.
#[derive(Debug, Clone)]
pub struct Authorization {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    grants: Grants,
}

/// An operation on the grants failed.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizationError {
    /// The folder of the grants.
    #[error("the sandbox's grants could not be read or written: {0}")]
    Storage(#[from] io::Error),
    /// No random bytes for a token.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

impl Authorization {
    /// Opens the server with the grants in its folder. Blocks: it reads them.
    ///
    /// # Errors
    /// The folder can't be created or read.
    pub fn open(settings: Settings) -> Result<Self, AuthorizationError> {
        let grants = Grants::open(&settings.directory)?;
        Ok(Self {
            shared: Arc::new(Shared { settings, grants }),
        })
    }

    /// `/oauth/authorize`, `/oauth/token`, `/oauth/revoke`, `/oauth/userinfo`.
    pub fn router(&self) -> Router {
        Router::new()
            .route(
                "/oauth/authorize",
                get(authorize::show).post(authorize::decide),
            )
            .route("/oauth/token", post(token::token))
            .route("/oauth/revoke", post(token::revoke))
            .route("/oauth/userinfo", get(token::userinfo))
            .layer(DefaultBodyLimit::max(FORM_MAX))
            .with_state(self.clone())
    }

    /// Whether `access_token` is valid for `mailbox`.
    #[must_use]
    pub fn authenticate(&self, mailbox: &str, access_token: &str) -> bool {
        let now = self.shared.settings.clock.now();
        self.shared
            .grants
            .mailbox_of(access_token, now)
            .is_some_and(|owner| owner.eq_ignore_ascii_case(mailbox))
    }

    /// The mailbox of a valid access token.
    #[must_use]
    pub fn mailbox_of(&self, access_token: &str) -> Option<String> {
        let now = self.shared.settings.clock.now();
        self.shared.grants.mailbox_of(access_token, now)
    }

    /// Expires all access tokens immediately; refresh tokens stay valid.
    ///
    /// # Errors
    /// A grant can't be written; the tokens have expired in memory anyway.
    pub async fn expire_access_tokens(&self) -> Result<(), AuthorizationError> {
        self.off_thread(|shared| Ok(shared.grants.expire_access_tokens()?))
            .await
    }

    /// Revokes all grants of `mailbox`: its access tokens are refused, its refresh tokens are `invalid_grant`.
    ///
    /// # Errors
    /// A grant's file can't be removed.
    pub async fn withdraw(&self, mailbox: &str) -> Result<(), AuthorizationError> {
        let mailbox = mailbox.to_owned();
        self.off_thread(move |shared| Ok(shared.grants.withdraw(&mailbox)?))
            .await
    }

    /// The number of successful refreshes since the start.
    #[must_use]
    pub fn refreshes(&self) -> u64 {
        self.shared.grants.refreshes()
    }

    /// Runs file access to grants off the async threads.
    async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T, AuthorizationError> + Send + 'static,
    ) -> Result<T, AuthorizationError> {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || work(&shared))
            .await
            .map_err(io::Error::from)?
    }
}

impl Settings {
    fn is_client(&self, id: &str, secret: &str) -> bool {
        let expected = Sha256::digest(self.client_secret.expose_secret());
        let same_secret = expected.as_slice().ct_eq(Sha256::digest(secret).as_slice());
        id == self.client_id && bool::from(same_secret)
    }

    /// RFC 8252 §7.3 lets a loopback client choose its port; other URIs are compared exactly.
    fn allows_redirect(&self, redirect_uri: &str) -> bool {
        if self.redirect_uris.iter().any(|known| known == redirect_uri) {
            return true;
        }
        let Ok(url) = Url::parse(redirect_uri) else {
            return false;
        };
        names_loopback(&url)
            && url.scheme() == "http"
            && url.username().is_empty()
            && url.password().is_none()
            && url.fragment().is_none()
    }
}
