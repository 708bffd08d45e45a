//! Where a user is sent to grant access (RFC 6749 §4.1.1, PKCE by RFC 7636 §4.3).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use url::Url;

use super::OAuthClient;
use super::id_token::nonce;
use mailgate_settings::ProviderKind;
use mailgate_types::language::Language;

/// What an authorization request says beside the client's own data.
#[derive(Debug, Clone, Copy)]
pub struct AuthorizationRequest<'a> {
    /// Where the code is to be brought.
    pub redirect_uri: &'a str,
    /// Comes back with it.
    pub state: &'a str,
    /// The secret that the code will be exchanged with; its digest is told.
    pub code_verifier: &'a str,
    /// The account that the user is expected to choose.
    pub login_hint: Option<&'a str>,
    /// The language that was asked for, where it isn't the browser's own, which the provider sees itself.
    pub language: Option<Language>,
}

impl OAuthClient {
    /// The provider's page for this request; `None` where the settings' address can't be read.
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
                // Without consent asked for, Google gives a refresh token the first time only.
                ProviderKind::Google => {
                    query
                        .append_pair("access_type", "offline")
                        .append_pair("prompt", "consent");
                }
                // Always asked: with an account named, Microsoft lets through at once whoever has agreed before,
                // and one click on a stranger's link would connect the mailbox. It asks for consent where it is new.
                ProviderKind::Microsoft => {
                    query
                        .append_pair("response_mode", "query")
                        .append_pair("prompt", "select_account");
                }
                // OpenID Connect Core §11: offline access takes consent.
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

    /// The parameter by which the provider takes a language; `None` where none is known.
    fn language_parameter(&self) -> Option<&'static str> {
        let is_openid = self.settings.scopes.iter().any(|scope| scope == "openid");
        match self.settings.kind {
            ProviderKind::Google => Some("hl"),
            // Its maintainers say that ui_locales isn't supported; its pages go by the browser.
            ProviderKind::Microsoft => None,
            // OpenID Connect Core §3.1.2.1: no error where a language isn't supported.
            ProviderKind::Generic => is_openid.then_some("ui_locales"),
        }
    }
}
