//! The authorization URL where a user grants access (RFC 6749 §4.1.1, PKCE by RFC 7636 §4.3).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use url::Url;

use super::OAuthClient;
use super::id_token::claims::nonce;
use mailgate_settings::ProviderKind;
use mailgate_types::language::Language;

/// The parameters of an authorization request, besides the client's own.
#[derive(Debug, Clone, Copy)]
pub struct AuthorizationRequest<'a> {
    /// The redirect URI.
    pub redirect_uri: &'a str,
    /// The state, returned with the code.
    pub state: &'a str,
    /// The code verifier; only its digest is sent.
    pub code_verifier: &'a str,
    /// The account that the user is expected to choose.
    pub login_hint: Option<&'a str>,
    /// The requested language, unless it is the browser's own, which the provider sees itself.
    pub language: Option<Language>,
}

impl OAuthClient {
    /// The provider's page for this request; `None` if the configured URL is invalid.
    #[must_use]
    pub fn authorization_url(&self, request: &AuthorizationRequest<'_>) -> Option<Url> {
        let mut url = Url::parse(&self.settings.authorize_url).ok()?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(request.code_verifier));
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &self.settings.client_id)
                .append_pair("redirect_uri", request.redirect_uri)
                .append_pair("scope", &self.settings.scopes.join(" "))
                .append_pair("state", request.state)
                .append_pair("code_challenge", &challenge)
                .append_pair("code_challenge_method", "S256");
            match self.settings.kind {
                // Unless consent is requested, Google returns a refresh token only the first time.
                ProviderKind::Google => {
                    query
                        .append_pair("access_type", "offline")
                        .append_pair("prompt", "consent");
                }
                // Always prompt: with a login hint, Microsoft skips the page for a user who has consented before, and
                // one click on a stranger's link would connect the mailbox. It asks for new consent itself.
                ProviderKind::Microsoft => {
                    query
                        .append_pair("response_mode", "query")
                        .append_pair("prompt", "select_account");
                }
                // OpenID Connect Core §11: offline access requires consent.
                ProviderKind::Generic => {
                    query.append_pair("prompt", "consent");
                }
            }
            if !self.settings.account.jwks_url.is_empty() {
                query.append_pair("nonce", &nonce(request.code_verifier));
            }
            if let Some(hint) = request.login_hint {
                query.append_pair("login_hint", hint);
            }
            if let (Some(language), Some(name)) = (request.language, self.language_parameter()) {
                query.append_pair(name, language.tag());
            }
        }
        Some(url)
    }

    /// The provider's parameter for the language; `None` if none is known.
    fn language_parameter(&self) -> Option<&'static str> {
        let is_openid = self.settings.scopes.iter().any(|scope| scope == "openid");
        match self.settings.kind {
            ProviderKind::Google => Some("hl"),
            // Its maintainers say that ui_locales isn't supported; its pages use the browser's language.
            ProviderKind::Microsoft => None,
            // OpenID Connect Core §3.1.2.1: an unsupported language isn't an error.
            ProviderKind::Generic => is_openid.then_some("ui_locales"),
        }
    }
}
