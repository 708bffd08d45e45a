//! The OAuth 2 endpoints of a provider (RFC 6749, 7009): exchanging a code, refreshing, revoking. The authorization
//! request is in [`authorize`], the account lookup in [`account`].

mod account;
mod authorize;
mod client_state;
mod scope;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use account::fuzzing::token_answers;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use reqwest::{Client, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

pub use account::AccountAddresses;
pub use authorize::AuthorizationRequest;

use self::client_state::ClientState;
use crate::config::{ClientAuthentication, PluginSettings, ProviderKind};
use crate::providers::answer::{no_answer, one_line};
use mailgate_types::clock::SharedClock;
use mailgate_types::event::DisconnectReason;

/// Lifetime of an access token if the response has none (RFC 6749 §5.1 leaves it to the client), and the longest that
/// is accepted, in seconds.
const UNNAMED_LIFE: f64 = 3_600.0;
const LONGEST_LIFE: f64 = 31_536_000.0;

/// The reasons that require the user to sign in or to consent again.
const SIGN_IN_REQUIRED: [DisconnectReason; 3] = [
    DisconnectReason::InteractionRequired,
    DisconnectReason::ConsentRequired,
    DisconnectReason::LoginRequired,
];

/// The largest response that is read. An account may have many addresses.
const MAXIMUM_ANSWER: usize = 1024 * 1024;

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
#[derive(Debug, thiserror::Error)]
pub enum OAuthError {
    /// The grant is dead: revoked, expired, or never valid. This and the next one concern the mailbox.
    #[error("the provider says invalid_grant: {0}")]
    InvalidGrant(String),
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
    #[error("the provider doesn't vouch for the account's address")]
    Unverified,
    /// A malformed response.
    #[error("the provider's OAuth endpoint answers nonsense: {0}")]
    Nonsense(&'static str),
}

impl OAuthError {
    /// Why the grant has ended, if that is what the error says.
    #[must_use]
    pub fn grant_ended(&self) -> Option<DisconnectReason> {
        match self {
            Self::InvalidGrant(_) => Some(DisconnectReason::InvalidGrant),
            Self::SignInRequired { reason, .. } => Some(*reason),
            _ => None,
        }
    }

    /// The label used in metrics: never text chosen by the provider.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::InvalidGrant(_) | Self::SignInRequired { .. } => "invalid_grant",
            Self::Refused { error, .. } if error == "invalid_client" => "invalid_client",
            Self::Refused { status: 500.., .. } => "provider_error",
            Self::Refused { .. } => "refused",
            Self::Unreachable(_) => "unreachable",
            Self::Unverified | Self::Nonsense(_) => "nonsense",
        }
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: SecretString,
    refresh_token: Option<SecretString>,
    #[serde(default)]
    expires_in: Option<Seconds>,
    scope: Option<String>,
    id_token: Option<SecretString>,
}

/// Some providers send the number as a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Number(f64),
    Text(String),
}

/// The lifetime of an access token by `expires_in`: whole seconds, at most a year.
fn life(named: Option<&Seconds>) -> TimeDelta {
    let seconds = match named {
        Some(Seconds::Number(seconds)) => Some(*seconds),
        Some(Seconds::Text(text)) => text.trim().parse().ok(),
        None => None,
    };
    let seconds = seconds.filter(|seconds: &f64| !seconds.is_nan());
    #[expect(clippy::cast_possible_truncation, reason = "clamped to a year before")]
    let seconds = seconds.unwrap_or(UNNAMED_LIFE).clamp(0.0, LONGEST_LIFE) as i64;
    TimeDelta::seconds(seconds)
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorAnswer {
    error: String,
    error_description: String,
}

/// A provider's OAuth endpoints.
#[derive(Debug)]
pub struct OAuthClient {
    http: Client,
    settings: PluginSettings,
    limit: Duration,
    clock: SharedClock,
    state: ClientState,
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
        let status = response.status();
        if status.is_success() {
            return Ok(true);
        }
        Err(refusal(status, &read(response).await?))
    }

    async fn token(&self, form: &[(&str, &str)]) -> Result<Tokens, OAuthError> {
        let response = self.post(&self.settings.token_url, form).await?;
        let asked_at = self.clock.now();
        let status = response.status();
        let body = read(response).await?;
        let answer = if status.is_success() {
            tokens(&body, asked_at)
        } else {
            Err(refusal(status, &body))
        };
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
        request
            .timeout(self.limit)
            .header("accept", "application/json")
            .form(&form)
            .send()
            .await
            .map_err(unreachable)
    }
}

/// The scopes in a response, without those that RFC 6749 §3.3 doesn't allow.
fn scopes(scope: &str) -> Vec<String> {
    let is_scope = |word: &&str| word.bytes().all(|byte| byte.is_ascii_graphic());
    let words = scope.split_whitespace().filter(is_scope);
    words.map(str::to_owned).collect()
}

/// Parses a token response to a request made at `asked_at`.
fn tokens(body: &[u8], asked_at: DateTime<Utc>) -> Result<Tokens, OAuthError> {
    let answer: TokenAnswer = serde_json::from_slice(body)
        .map_err(|_| OAuthError::Nonsense("no token is in the answer"))?;
    Ok(Tokens {
        access_token: answer.access_token,
        refresh_token: answer.refresh_token,
        expires_at: asked_at + life(answer.expires_in.as_ref()),
        scopes: answer.scope.as_deref().map(scopes),
        id_token: answer.id_token,
    })
}

fn unreachable(error: reqwest::Error) -> OAuthError {
    OAuthError::Unreachable(no_answer(error))
}

async fn read(mut response: Response) -> Result<Vec<u8>, OAuthError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAXIMUM_ANSWER {
            return Err(OAuthError::Nonsense("the answer is too long"));
        }
    }
    Ok(body)
}

fn refusal(status: StatusCode, body: &[u8]) -> OAuthError {
    let answer: ErrorAnswer = serde_json::from_slice(body).unwrap_or_default();
    let answer = ErrorAnswer {
        error: one_line(&answer.error),
        error_description: one_line(&answer.error_description),
    };
    // Only a 4xx with the standard's own code says that the grant is dead; a 5xx never does.
    if answer.error == "invalid_grant" && status.is_client_error() {
        return OAuthError::InvalidGrant(answer.error_description);
    }
    let reason = SIGN_IN_REQUIRED
        .into_iter()
        .find(|reason| reason.as_str() == answer.error);
    if let Some(reason) = reason.filter(|_| status.is_client_error()) {
        return OAuthError::SignInRequired {
            reason,
            description: answer.error_description,
        };
    }
    OAuthError::Refused {
        status: status.as_u16(),
        error: answer.error,
        description: answer.error_description,
    }
}

/// The meaning of a token endpoint's error response.
#[cfg(test)]
pub(in crate::providers) fn error_on(status: u16, body: &[u8]) -> OAuthError {
    refusal(StatusCode::from_u16(status).unwrap_or_default(), body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_invalid_grant_speaks_of_the_mailbox() {
        let dead = refusal(StatusCode::BAD_REQUEST, br#"{"error":"invalid_grant"}"#);
        assert!(matches!(dead, OAuthError::InvalidGrant(_)));
        for reason in SIGN_IN_REQUIRED {
            let body = format!(
                r#"{{"error":"{}","suberror":"basic_action"}}"#,
                reason.as_str()
            );
            let ended = |status| refusal(status, body.as_bytes()).grant_ended();
            assert_eq!(ended(StatusCode::BAD_REQUEST), Some(reason));
            assert_eq!(ended(StatusCode::BAD_GATEWAY), None);
        }
        for (status, body) in [
            (
                StatusCode::UNAUTHORIZED,
                &br#"{"error":"invalid_client"}"#[..],
            ),
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                br#"{"error":"invalid_grant"}"#,
            ),
            (StatusCode::BAD_GATEWAY, b"<html>"),
            (StatusCode::BAD_REQUEST, br#"{"error":7}"#),
        ] {
            assert!(matches!(refusal(status, body), OAuthError::Refused { .. }));
        }
    }

    #[test]
    fn lives_of_tokens_in_both_spellings() {
        for (json, expected) in [
            ("3600", 3_600),
            ("\"3600\"", 3_600),
            ("3599.5", 3_599),
            ("\" 3599.5 \"", 3_599),
            ("0", 0),
            ("-1", 0),
            ("\"-9000000000000\"", 0),
            ("9000000000000", 31_536_000),
            ("\"9000000000000\"", 31_536_000),
            ("1e300", 31_536_000),
            ("\"inf\"", 31_536_000),
            ("\"nan\"", 3_600),
            ("\"soon\"", 3_600),
            ("null", 3_600),
        ] {
            let seconds: Option<Seconds> = serde_json::from_str(json).unwrap_or_default();
            assert_eq!(life(seconds.as_ref()).num_seconds(), expected, "{json}");
        }
    }

    #[test]
    fn scopes_are_plain_words() {
        assert_eq!(
            scopes("a  https://b/c\n\u{0}d \u{fc} e"),
            ["a", "https://b/c", "e"]
        );
    }

    proptest! {
        #[test]
        fn no_life_is_longer_than_a_year(number: f64, integer: i64, text in "-?[0-9]{1,40}|.{0,20}") {
            let json = [
                serde_json::to_string(&number),
                serde_json::to_string(&integer),
                serde_json::to_string(&text),
            ];
            for json in json.into_iter().flatten() {
                let seconds: Option<Seconds> = serde_json::from_str(&json).unwrap_or_default();
                let expires_at = DateTime::<Utc>::UNIX_EPOCH + life(seconds.as_ref());
                prop_assert!((0..=31_536_000).contains(&expires_at.timestamp()));
            }
        }

        #[test]
        fn any_answer_is_survived(body in ".{0,200}", status in 100_u16..600) {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            let _ = refusal(status, body.as_bytes());
        }
    }
}
