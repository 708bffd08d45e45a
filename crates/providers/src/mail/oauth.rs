//! The OAuth 2 endpoints of a provider (RFC 6749, 7009): exchanging a code, refreshing, revoking. The authorization
//! request is in [`authorize`], the responses in [`response`], the account lookup in [`account`].

mod account;
mod authorize;
mod client_state;
mod id_token;
mod response;
mod scope;

#[cfg(any(test, feature = "fuzzing"))]
pub use account::fuzzing::token_answers;

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};

pub use account::AccountAddresses;
pub use authorize::AuthorizationRequest;

use self::client_state::{ClientState, is_about_client};
use self::id_token::published_keys::PublishedKeys;
use self::response::{NamedError, fields, refusal};
use crate::answer::no_answer;
use mailgate_settings::{ClientAuthentication, PluginSettings, ProviderKind};
use mailgate_types::clock::SharedClock;
use mailgate_types::event::DisconnectReason;

/// The largest response that is read. An account may have many addresses.
const MAXIMUM_ANSWER: usize = 1024 * 1024;

/// The error codes for a temporary problem on the provider's side (RFC 6749 §4.1.2.1, RFC 8628 §3.5).
const PASSING: [&str; 3] = ["temporarily_unavailable", "server_error", "slow_down"];

/// The tokens from a token endpoint.
#[derive(Debug)]
pub struct Tokens {
    /// The access token for the mailbox.
    pub access_token: SecretString,
    /// The refresh token; absent if the old one stays valid.
    pub refresh_token: Option<SecretString>,
    /// When the access token expires.
    pub expires_at: DateTime<Utc>,
    /// The granted scopes, if the provider reports them.
    pub scopes: Option<Vec<String>>,
    /// The id token (`OpenID` Connect), if the provider returns one.
    pub id_token: Option<SecretString>,
}

/// Why there is no token.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OAuthError {
    /// The grant is dead: revoked, expired, or never valid. This and the next one concern the mailbox.
    #[error("the provider says {error}: {description}")]
    InvalidGrant {
        /// `invalid_grant`, or the provider's own word for it.
        error: String,
        /// The provider's description.
        description: String,
    },
    /// The user must sign in or consent again, in a browser (`OpenID` Connect Core §3.1.2.6; Microsoft's token endpoint
    /// returns these errors, too).
    #[error("the provider says {}: {description}", .reason.as_str())]
    SignInRequired {
        /// The reason.
        reason: DisconnectReason,
        /// The provider's description.
        description: String,
    },
    /// The provider refuses for another reason, such as a wrong client secret: the operator must act.
    #[error("the provider answers {status} {error}: {description}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// The error code (RFC 6749 §5.2), or empty.
        error: String,
        /// The provider's description.
        description: String,
    },
    /// No response.
    #[error("the provider's OAuth endpoint can't be reached: {0}")]
    Unreachable(String),
    /// The provider hasn't verified the account's address.
    #[error("the provider hasn't verified the account's address")]
    Unverified,
    /// A response without a required field.
    #[error("the provider's OAuth response is malformed: it has no {what}; its fields: {fields}")]
    Lacks {
        /// The field.
        what: String,
        /// The names of the fields that are there.
        fields: String,
    },
    /// A malformed response.
    #[error("the provider's OAuth response is malformed: {0}")]
    Nonsense(&'static str),
}

impl OAuthError {
    /// Why the grant has ended, if the error says so.
    #[must_use]
    pub fn grant_ended(&self) -> Option<DisconnectReason> {
        match self {
            Self::InvalidGrant { .. } => Some(DisconnectReason::InvalidGrant),
            Self::SignInRequired { reason, .. } => Some(*reason),
            _ => None,
        }
    }

    /// The label used in metrics: never text chosen by the provider.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::InvalidGrant { .. } | Self::SignInRequired { .. } => "invalid_grant",
            Self::Refused { error, .. } if is_about_client(error) => "invalid_client",
            Self::Refused { .. } if self.is_passing() => "provider_error",
            Self::Refused { .. } => "refused",
            Self::Unreachable(_) => "unreachable",
            Self::Unverified | Self::Lacks { .. } | Self::Nonsense(_) => "nonsense",
        }
    }

    /// Whether it is a temporary problem on the provider's side, by the status or the error code.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { status, error, .. } => {
                *status >= 500 || *status == 429 || PASSING.contains(&error.as_str())
            }
            _ => false,
        }
    }
}

/// A provider's OAuth endpoints.
#[derive(Debug)]
pub struct OAuthClient {
    http: Client,
    settings: PluginSettings,
    limit: Duration,
    clock: SharedClock,
    state: ClientState,
    published_keys: PublishedKeys,
}

impl OAuthClient {
    /// A client that waits up to `limit` for each response.
    #[must_use]
    pub fn new(
        settings: &PluginSettings,
        http: Client,
        limit: Duration,
        clock: SharedClock,
    ) -> Self {
        Self {
            http,
            settings: settings.clone(),
            limit,
            clock,
            state: ClientState::new(settings.plugin),
            published_keys: PublishedKeys::default(),
        }
    }

    /// The timeout of one request.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Exchanges an authorization code for tokens (RFC 6749 §4.1.3, RFC 7636 §4.5).
    pub async fn exchange(
        &self,
        code: &str,
        redirect_uri: &str,
        code_verifier: &str,
    ) -> Result<Tokens, OAuthError> {
        let scope = self.settings.scopes.join(" ");
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", code_verifier),
        ];
        form.extend(self.scope_field(&scope));
        self.token(&form).await
    }

    /// Exchanges a refresh token for new tokens (RFC 6749 §6), with the scopes that its user `granted`.
    ///
    /// # Errors
    ///
    /// [`OAuthError`]; only [`OAuthError::grant_ended`] says that the grant is dead.
    pub async fn refresh(
        &self,
        refresh_token: &SecretString,
        granted: &[String],
    ) -> Result<Tokens, OAuthError> {
        let scope = scope::still_granted(&self.settings.scopes, granted).join(" ");
        let mut form = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token.expose_secret()),
        ];
        form.extend(self.scope_field(&scope));
        self.token(&form).await
    }

    /// Microsoft issues a token for one of its services, which it selects by scope (and has been seen to reject a
    /// request without one: AADSTS900144). The others use the granted scopes.
    fn scope_field<'a>(&self, scope: &'a str) -> Option<(&'static str, &'a str)> {
        (self.settings.kind == ProviderKind::Microsoft).then_some(("scope", scope))
    }

    /// Revokes a refresh token and the tokens issued from it (RFC 7009). `false` if the provider has no revocation
    /// endpoint.
    pub async fn revoke(&self, refresh_token: &SecretString) -> Result<bool, OAuthError> {
        if self.settings.revoke_url.is_empty() {
            return Ok(false);
        }
        let form = [
            ("token", refresh_token.expose_secret()),
            ("token_type_hint", "refresh_token"),
        ];
        let response = self.post(&self.settings.revoke_url, &form).await?;
        let (status, body) = read(response).await?;
        let named = fields(&body).as_ref().and_then(NamedError::of);
        if status.is_success() && named.is_none() {
            return Ok(true);
        }
        Err(named.unwrap_or_default().meaning(status, false))
    }

    async fn token(&self, form: &[(&str, &str)]) -> Result<Tokens, OAuthError> {
        let response = self.post(&self.settings.token_url, form).await?;
        let asked_at = self.clock.now();
        let (status, body) = read(response).await?;
        let answer = response::tokens(status, &body, asked_at, &self.settings.scopes);
        self.state.learn(answer.as_ref());
        answer
    }

    /// Posts a form to one of the endpoints, with client authentication (RFC 6749 §2.3.1).
    async fn post(&self, url: &str, form: &[(&str, &str)]) -> Result<Response, OAuthError> {
        let (client_id, secret) = (
            self.settings.client_id.as_str(),
            self.settings.client_secret.expose_secret(),
        );
        let mut form = form.to_vec();
        let mut request = self.http.post(url);
        match self.settings.client_authentication {
            ClientAuthentication::Basic => {
                // RFC 6749 §2.3.1: both are form-encoded before they are joined.
                let encode = |text: &str| {
                    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                };
                request = request.basic_auth(encode(client_id), Some(encode(secret)));
            }
            ClientAuthentication::Post => {
                form.push(("client_id", client_id));
                if !secret.is_empty() {
                    form.push(("client_secret", secret));
                }
            }
        }
        self.send(request.form(&form)).await
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, OAuthError> {
        request
            .timeout(self.limit)
            .header("accept", "application/json")
            .send()
            .await
            .map_err(unreachable)
    }
}

fn unreachable(error: reqwest::Error) -> OAuthError {
    OAuthError::Unreachable(no_answer(error))
}

async fn read(mut response: Response) -> Result<(StatusCode, Vec<u8>), OAuthError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAXIMUM_ANSWER {
            return Err(OAuthError::Nonsense("the answer is too long"));
        }
    }
    Ok((response.status(), body))
}

/// The meaning of a token endpoint's error response.
#[cfg(test)]
pub(crate) fn error_on(status: u16, body: &[u8]) -> OAuthError {
    refusal(StatusCode::from_u16(status).unwrap_or_default(), body)
}
