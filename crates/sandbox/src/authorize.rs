//! Goes through the sandbox's authorization as a user's browser would, without interaction.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::provider::{CLIENT_ID, SandboxProvider};
use mailgate_types::plugin::Plugin;
use mailgate_types::secrets::{NoRandomness, random_bytes};

/// The timeout for one page of the sandbox.
const PAGE: Duration = Duration::from_secs(10);

/// No code was issued.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizeError {
    /// The request failed.
    #[error("the sandbox can't be asked: {0}")]
    Http(#[from] reqwest::Error),
    /// The response isn't a redirect with a code.
    #[error("the sandbox answers {0}")]
    Answer(String),
    /// No verifier could be generated.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

/// An authorization code and its PKCE verifier (RFC 7636).
#[derive(Debug)]
pub struct Granted {
    /// The code.
    pub code: String,
    /// The PKCE verifier.
    pub code_verifier: String,
}

impl SandboxProvider {
    /// Requests a code for `mailbox`.
    pub async fn authorize(
        &self,
        redirect_uri: &str,
        mailbox: &str,
    ) -> Result<Granted, AuthorizeError> {
        let code_verifier = URL_SAFE_NO_PAD.encode(random_bytes::<32>()?);
        let code_challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(code_verifier.as_bytes()));
        let state = URL_SAFE_NO_PAD.encode(random_bytes::<16>()?);
        // For either plugin.
        let mut scopes = self.scopes(Plugin::A);
        for scope in self.scopes(Plugin::B) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        let browser = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(PAGE)
            .build()?;
        let response = browser
            .get(format!("{}/oauth/authorize", self.url()))
            .query(&[
                ("response_type", "code"),
                ("client_id", CLIENT_ID),
                ("redirect_uri", redirect_uri),
                ("scope", &scopes.join(" ")),
                ("state", &state),
                ("code_challenge", &code_challenge),
                ("code_challenge_method", "S256"),
                ("login_hint", mailbox),
            ])
            .send()
            .await?;
        let answer = response
            .headers()
            .get("location")
            .and_then(|location| location.to_str().ok())
            .and_then(|location| url::Url::parse(location).ok())
            .ok_or_else(|| AuthorizeError::Answer(response.status().to_string()))?;
        let parameter = |name: &str| {
            answer
                .query_pairs()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.into_owned())
        };
        match (parameter("state"), parameter("code")) {
            (Some(echo), Some(code)) if echo == state => Ok(Granted {
                code,
                code_verifier,
            }),
            _ => Err(AuthorizeError::Answer(
                parameter("error").unwrap_or_else(|| "another question".to_owned()),
            )),
        }
    }
}
