//! Whose account a grant opens: the address that the provider itself vouches for.
//!
//! Apps choose mailboxes by address, so an address that its holder could make up would let one user
//! stand in for another.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::StatusCode;
use secrecy::ExposeSecret;
use serde::Deserialize;

use super::{OAuthClient, OAuthError, Tokens, read, refusal, unreachable};
use crate::config::ProviderKind;

/// What a userinfo endpoint, Graph's `/me` or an id token says of an account.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Claims {
    email: Option<String>,
    email_verified: Option<Flag>,
    /// Microsoft: the domain of `email` was shown to be the tenant's.
    xms_edov: Option<Flag>,
    preferred_username: Option<String>,
    mail: Option<String>,
    #[serde(rename = "userPrincipalName")]
    user_principal_name: Option<String>,
    /// Null for accounts of no directory.
    #[serde(rename = "proxyAddresses")]
    proxy_addresses: Option<Vec<String>>,
    aud: Option<Audience>,
}

/// Some providers write it as a text or a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Flag {
    Boolean(bool),
    Number(i64),
    Text(String),
}

impl Flag {
    fn is_set(&self) -> bool {
        match self {
            Self::Boolean(flag) => *flag,
            Self::Number(number) => *number != 0,
            Self::Text(text) => matches!(text.as_str(), "true" | "1"),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl OAuthClient {
    /// The address of the account that the tokens open: from the userinfo endpoint, or from the id
    /// token where there is no such endpoint. The id token came from the token endpoint itself, over
    /// TLS, so its signature says nothing more (`OpenID` Connect Core §3.1.3.7).
    ///
    /// # Errors
    ///
    /// [`OAuthError`].
    pub async fn address(&self, tokens: &Tokens) -> Result<String, OAuthError> {
        let claims = if self.settings.userinfo_url.is_empty() {
            self.id_token_claims(tokens)?
        } else {
            self.userinfo(tokens).await?
        };
        claims.address(self.settings.kind)
    }

    async fn userinfo(&self, tokens: &Tokens) -> Result<Claims, OAuthError> {
        let (status, body) = self.ask_for_account(tokens, self.selection()).await?;
        // Not every account's directory has all that is asked for: then what it tells unasked must do.
        let (status, body) = match status.as_u16() {
            400 | 403 if !self.selection().is_empty() => self.ask_for_account(tokens, "").await?,
            _ => (status, body),
        };
        if !status.is_success() {
            return Err(refusal(status, &body));
        }
        serde_json::from_slice(&body)
            .map_err(|_| OAuthError::Nonsense("the account's data is no JSON object"))
    }

    /// What Graph's `/me` has to be asked for, since it doesn't tell `proxyAddresses` by itself (user-get).
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
        tokens: &Tokens,
        selection: &str,
    ) -> Result<(StatusCode, Vec<u8>), OAuthError> {
        let response = self
            .http
            .get(format!("{}{selection}", self.settings.userinfo_url))
            .bearer_auth(tokens.access_token.expose_secret())
            .timeout(self.limit)
            .header("accept", "application/json")
            .send()
            .await
            .map_err(unreachable)?;
        let status = response.status();
        Ok((status, read(response).await?))
    }

    fn id_token_claims(&self, tokens: &Tokens) -> Result<Claims, OAuthError> {
        let token = tokens
            .id_token
            .as_ref()
            .ok_or(OAuthError::Nonsense("no id token is in the answer"))?;
        let claims = claims(token.expose_secret())
            .ok_or(OAuthError::Nonsense("the id token can't be read"))?;
        let is_ours = match &claims.aud {
            Some(Audience::One(audience)) => *audience == self.settings.client_id,
            Some(Audience::Several(audiences)) => audiences.contains(&self.settings.client_id),
            None => false,
        };
        if is_ours {
            Ok(claims)
        } else {
            Err(OAuthError::Nonsense("the id token is for another client"))
        }
    }
}

impl Claims {
    fn address(self, kind: ProviderKind) -> Result<String, OAuthError> {
        // Microsoft's users may write anything into `mail` and `email`; their log-in name they can't.
        let name = self.user_principal_name.or(self.preferred_username);
        if let (ProviderKind::Microsoft, Some(name)) = (kind, name) {
            let is_theirs = |address: &String| {
                let proxied = self.proxy_addresses.iter().flatten().any(|proxy| {
                    proxy.split_once(':').is_some_and(|(kind, proxy)| {
                        kind.eq_ignore_ascii_case("smtp") && proxy.eq_ignore_ascii_case(address)
                    })
                });
                proxied || address.eq_ignore_ascii_case(&name)
            };
            let vouched = |flag: &Option<Flag>| flag.as_ref().is_some_and(Flag::is_set);
            let email = self
                .email
                .filter(|_| vouched(&self.email_verified) || vouched(&self.xms_edov));
            let chosen = email.or(self.mail.filter(is_theirs)).unwrap_or(name);
            // A log-in name that is no address tells us nothing.
            if chosen.contains('@') {
                return Ok(chosen);
            }
            return Err(OAuthError::Nonsense("the account's data has no address"));
        }
        if self.email_verified.is_some_and(|flag| !flag.is_set()) {
            return Err(OAuthError::Unverified);
        }
        self.email
            .or(self.mail)
            .ok_or(OAuthError::Nonsense("the account's data has no address"))
    }
}

/// The claims of a JSON Web Token (RFC 7519 §3), its signature aside.
fn claims(token: &str) -> Option<Claims> {
    let payload = token.split('.').nth(1)?;
    let json = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    serde_json::from_slice(&json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const UPN: [&str; 2] = ["userPrincipalName", "preferred_username"];

    #[test]
    fn the_address_that_the_provider_vouches_for() {
        for (claims, expected) in [
            (json!({"email": "a@x.example"}), Some("a@x.example")),
            (
                json!({"email": "a@x.example", "email_verified": true}),
                Some("a@x.example"),
            ),
            (
                json!({"email": "a@x.example", "email_verified": false}),
                None,
            ),
            (
                json!({"email": "a@x.example", "email_verified": "false"}),
                None,
            ),
            (json!({"sub": "1"}), None),
            // Microsoft: what a tenant's administrator can write is not believed.
            (
                json!({"preferred_username": "eve@eve.example", "email": "victim@x.example"}),
                Some("eve@eve.example"),
            ),
            (
                json!({"preferred_username": "a@x.onmicrosoft.example", "email": "a@x.example",
                       "xms_edov": 1}),
                Some("a@x.example"),
            ),
            (
                json!({"userPrincipalName": "eve@eve.example", "mail": "victim@x.example"}),
                Some("eve@eve.example"),
            ),
            (
                json!({"userPrincipalName": "a@x.onmicrosoft.example", "mail": "a@x.example",
                       "proxyAddresses": ["smtp:b@x.example", "SMTP:A@x.example"]}),
                Some("a@x.example"),
            ),
            (
                json!({"userPrincipalName": "a@x.example", "mail": null, "proxyAddresses": null}),
                Some("a@x.example"),
            ),
            (json!({"preferred_username": "ada"}), None),
        ] {
            let read: Result<Claims, _> = serde_json::from_value(claims.clone());
            let kind = if UPN.iter().any(|name| claims.get(name).is_some()) {
                ProviderKind::Microsoft
            } else {
                ProviderKind::Generic
            };
            let address = read.ok().and_then(|read| read.address(kind).ok());
            assert_eq!(address.as_deref(), expected, "{claims}");
        }
    }

    #[test]
    fn an_id_token_is_read_or_not() {
        let token = |payload: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(payload));
        let read = claims(&token(r#"{"aud":"us","preferred_username":"a@x.example"}"#));
        assert!(read.is_some_and(|claims| matches!(claims.aud, Some(Audience::One(_)))));
        for bad in ["", "a", "a.b", "a.!!.c", &token("[1]"), &token("{")] {
            assert!(claims(bad).is_none(), "{bad}");
        }
    }
}
