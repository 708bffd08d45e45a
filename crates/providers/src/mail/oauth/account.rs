//! Identifies the account of a grant: the address that the provider has verified, and the further ones in Exchange's
//! directory.
//!
//! Apps choose mailboxes by address, so an address that its holder could make up would let one user impersonate
//! another.

mod claims;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

use reqwest::StatusCode;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use self::claims::{AddressField, Claims};
use super::id_token::claims::is_for;
use super::id_token::unverified_claims;
use super::response::{NamedError, fields};
use super::{OAuthClient, OAuthError, Tokens, read, refusal};
use mailgate_settings::{ProviderKind, UserinfoAuthentication};

/// The addresses of an account that its provider has verified.
#[derive(Debug)]
pub struct AccountAddresses {
    /// The primary address.
    pub primary: String,
    /// The further addresses in Exchange's directory, of any form and number; empty if there is no directory.
    pub proxies: Vec<String>,
}

impl OAuthClient {
    /// The address of the account that the tokens belong to, which were exchanged with `code_verifier`: from the
    /// userinfo endpoint, or from the id token if there is no such endpoint. If the settings name a JWKS URL, the id
    /// token's signature is verified. Microsoft's came from the token endpoint itself, over TLS, so its signature need
    /// not be checked (`OpenID` Connect Core §3.1.3.7).
    pub async fn address(
        &self,
        tokens: &Tokens,
        code_verifier: &str,
    ) -> Result<AccountAddresses, OAuthError> {
        let claims = if self.settings.userinfo_url.is_empty() {
            self.id_token_claims(tokens, code_verifier).await?
        } else {
            self.userinfo(&tokens.access_token).await?
        };
        let proxies = claims.proxies();
        let primary = claims.address(self.settings.kind, self.address_field())?;
        Ok(AccountAddresses { primary, proxies })
    }

    /// The further addresses of an account in Exchange's directory.
    pub async fn proxies(&self, access_token: &SecretString) -> Result<Vec<String>, OAuthError> {
        let asked = self.ask_for_account(access_token, self.selection()).await;
        let (status, body) = asked?;
        // The account has no directory, or one that doesn't report them.
        if matches!(status.as_u16(), 400 | 403) {
            return Ok(Vec::new());
        }
        Ok(self.read_claims(status, &body)?.proxies())
    }

    /// Whether the account may have a directory that reports further addresses.
    #[must_use]
    pub fn tells_proxies(&self) -> bool {
        !self.selection().is_empty()
    }

    async fn userinfo(&self, access_token: &SecretString) -> Result<Claims, OAuthError> {
        let asked = self.ask_for_account(access_token, self.selection()).await;
        // Not every account's directory has all the requested properties, or returns them in reasonable size: fall back
        // to the default ones.
        let is_too_much = match &asked {
            Ok((status, _)) => matches!(status.as_u16(), 400 | 403),
            Err(error) => matches!(error, OAuthError::Nonsense(_)),
        };
        let (status, body) = if is_too_much && !self.selection().is_empty() {
            self.ask_for_account(access_token, "").await?
        } else {
            asked?
        };
        self.read_claims(status, &body)
    }

    fn address_field(&self) -> AddressField<'_> {
        AddressField(&self.settings.account.email_field)
    }

    fn read_claims(&self, status: StatusCode, body: &[u8]) -> Result<Claims, OAuthError> {
        read_claims(status, body, self.address_field())
    }

    /// The `$select` for Graph's `/me`, which doesn't return `proxyAddresses` by default (user-get).
    fn selection(&self) -> &'static str {
        let is_graph = self.settings.kind == ProviderKind::Microsoft
            && self.settings.userinfo_url.ends_with("/me");
        if is_graph {
            "?$select=mail,userPrincipalName,proxyAddresses"
        } else {
            ""
        }
    }

    async fn ask_for_account(
        &self,
        access_token: &SecretString,
        selection: &str,
    ) -> Result<(StatusCode, Vec<u8>), OAuthError> {
        let address = format!("{}{selection}", self.settings.userinfo_url);
        let token = access_token.expose_secret();
        let request = match (self.settings.account.userinfo_auth, Url::parse(&address)) {
            (UserinfoAuthentication::Query, Ok(mut address)) => {
                address.query_pairs_mut().append_pair("access_token", token);
                self.http.get(address)
            }
            _ => self.http.get(address).bearer_auth(token),
        };
        read(self.send(request).await?).await
    }

    async fn id_token_claims(
        &self,
        tokens: &Tokens,
        code_verifier: &str,
    ) -> Result<Claims, OAuthError> {
        let token = tokens
            .id_token
            .as_ref()
            .ok_or(OAuthError::Nonsense("no id token is in the answer"))?
            .expose_secret();
        let claims = if self.settings.account.jwks_url.is_empty() {
            let claims = unverified_claims(token)
                .ok_or(OAuthError::Nonsense("the id token can't be read"))?;
            if !is_for(&claims, &self.settings.client_id) {
                return Err(OAuthError::Nonsense("the id token is for another client"));
            }
            claims
        } else {
            self.verified_claims(token, code_verifier).await?
        };
        Ok(Claims::of(&claims, self.address_field()))
    }
}

fn read_claims(
    status: StatusCode,
    body: &[u8],
    field: AddressField<'_>,
) -> Result<Claims, OAuthError> {
    if !status.is_success() {
        return Err(refusal(status, body));
    }
    let fields = fields(body).ok_or(OAuthError::Nonsense(
        "the account's data isn't a JSON object",
    ))?;
    match NamedError::of(&fields) {
        Some(error) => Err(error.meaning(status, false)),
        None => Ok(Claims::of(&fields, field)),
    }
}
