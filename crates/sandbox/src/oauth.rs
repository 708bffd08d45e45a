//! The sandbox mailbox provider's authorization server: OAuth 2 (RFC 6749) with PKCE S256 required
//! (RFC 7636), revocation (RFC 7009) and a userinfo endpoint, for one client.
//!
//! Here are the settings, the handle that the SMTP server and tests use, and the routes. `grants` keeps
//! what was given, `authorize` holds the endpoint people see, `token` the ones that the client calls.

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

/// Largest form taken, in bytes.
const FORM_MAX: usize = 64 * 1024;

/// The authorization server's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The one client's id.
    pub client_id: String,
    /// The one client's secret.
    pub client_secret: SecretString,
    /// Redirect addresses taken beside http on a loopback host, compared as they stand.
    pub redirect_uris: Vec<String>,
    /// How long an access token lives, in seconds.
    pub access_token_seconds: u32,
    /// Where grants are kept: one file each.
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
    /// No randomness for a token.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

impl Authorization {
    /// Opens the server with the grants of its folder. Blocks: it reads them.
    ///
    /// # Errors
    /// When the folder can't be made or read.
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

    /// Whether `access_token` is live and opens `mailbox`.
    #[must_use]
    pub fn authenticate(&self, mailbox: &str, access_token: &str) -> bool {
        let now = self.shared.settings.clock.now();
        self.shared
            .grants
            .mailbox_of(access_token, now)
            .is_some_and(|owner| owner.eq_ignore_ascii_case(mailbox))
    }

    /// Whose mailbox a live access token opens.
    #[must_use]
    pub fn mailbox_of(&self, access_token: &str) -> Option<String> {
        let now = self.shared.settings.clock.now();
        self.shared.grants.mailbox_of(access_token, now)
    }

    /// Makes every live access token lapse at once; refresh tokens stay.
    ///
    /// # Errors
    /// When a grant can't be written; the tokens have lapsed in memory all the same.
    pub async fn expire_access_tokens(&self) -> Result<(), AuthorizationError> {
        self.off_thread(|shared| Ok(shared.grants.expire_access_tokens()?))
            .await
    }

    /// Ends every grant of `mailbox`: its access tokens are refused, its refresh tokens are
    /// `invalid_grant`.
    ///
    /// # Errors
    /// When a grant's file can't be removed.
    pub async fn withdraw(&self, mailbox: &str) -> Result<(), AuthorizationError> {
        let mailbox = mailbox.to_owned();
        self.off_thread(move |shared| Ok(shared.grants.withdraw(&mailbox)?))
            .await
    }

    /// How many refreshes have succeeded since the start.
    #[must_use]
    pub fn refreshes(&self) -> u64 {
        self.shared.grants.refreshes()
    }

    /// Grants live in files, which are read and written off the async threads.
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

    /// RFC 8252 §7.3 lets a loopback client choose its port; anything else is compared as it stands.
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
