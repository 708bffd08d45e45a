//! Identifies the account of a grant: the address that the provider itself vouches for, and the further ones in
//! Exchange's directory.
//!
//! Apps choose mailboxes by address, so an address that its holder could make up would let one user impersonate
//! another.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::StatusCode;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{OAuthClient, OAuthError, Tokens, read, refusal, unreachable};
use crate::config::ProviderKind;

/// The claims of a userinfo endpoint, Graph's `/me` or an id token.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Claims {
    email: Option<String>,
    email_verified: Option<Flag>,
    /// Microsoft: the domain of `email` is verified as the tenant's.
    xms_edov: Option<Flag>,
    preferred_username: Option<String>,
    mail: Option<String>,
    #[serde(rename = "userPrincipalName")]
    user_principal_name: Option<String>,
    /// Null for accounts without a directory.
    #[serde(rename = "proxyAddresses", deserialize_with = "texts")]
    proxy_addresses: Option<Vec<String>>,
    aud: Option<Audience>,
}

/// Some providers send it as a string or a number.
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

/// The string entries of a list; null if there is none.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let Value::Array(entries) = Value::deserialize(deserializer)? else {
        return Ok(None);
    };
    let texts = entries.into_iter().filter_map(|entry| match entry {
        Value::String(text) => Some(text),
        _ => None,
    });
    Ok(Some(texts.collect()))
}

/// The addresses of an account, as its provider vouches for them.
#[derive(Debug)]
pub struct AccountAddresses {
    /// The primary address.
    pub primary: String,
    /// The further addresses in Exchange's directory, of any form and number; empty if there is no directory.
    pub proxies: Vec<String>,
}

impl OAuthClient {
    /// The address of the account that the tokens belong to: from the userinfo endpoint, or from the id token if there
    /// is no such endpoint. The id token came from the token endpoint itself, over TLS, so its signature need not be
    /// checked (`OpenID` Connect Core §3.1.3.7).
    pub async fn address(&self, tokens: &Tokens) -> Result<AccountAddresses, OAuthError> {
        let claims = if self.settings.userinfo_url.is_empty() {
            self.id_token_claims(tokens)?
        } else {
            self.userinfo(&tokens.access_token).await?
        };
        let proxies = claims.proxies();
        let primary = claims.address(self.settings.kind)?;
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
        Ok(read_claims(status, &body)?.proxies())
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
        read_claims(status, &body)
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
        let response = self
            .http
            .get(format!("{}{selection}", self.settings.userinfo_url))
            .bearer_auth(access_token.expose_secret())
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
    /// The directory's `smtp:` entries. `SMTP:` marks the primary one.
    fn proxies(&self) -> Vec<String> {
        let entries = self.proxy_addresses.iter().flatten();
        let addresses = entries.filter_map(|entry| {
            let (kind, address) = entry.split_once(':')?;
            kind.eq_ignore_ascii_case("smtp").then_some(address)
        });
        addresses.map(str::to_owned).collect()
    }

    fn address(self, kind: ProviderKind) -> Result<String, OAuthError> {
        let proxies = self.proxies();
        // Microsoft's users may write anything into `mail` and `email`, but not into their sign-in name.
        let name = self.user_principal_name.or(self.preferred_username);
        if let (ProviderKind::Microsoft, Some(name)) = (kind, name) {
            let is_theirs = |address: &String| {
                let mut names = proxies.iter().chain(std::iter::once(&name));
                names.any(|known| known.eq_ignore_ascii_case(address))
            };
            let vouched = |flag: &Option<Flag>| flag.as_ref().is_some_and(Flag::is_set);
            let email = self
                .email
                .filter(|_| vouched(&self.email_verified) || vouched(&self.xms_edov));
            let chosen = email.or(self.mail.filter(is_theirs)).unwrap_or(name);
            // A sign-in name that isn't an address is of no use.
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

fn read_claims(status: StatusCode, body: &[u8]) -> Result<Claims, OAuthError> {
    if !status.is_success() {
        return Err(refusal(status, body));
    }
    serde_json::from_slice(body)
        .map_err(|_| OAuthError::Nonsense("the account's data is no JSON object"))
}

/// The claims of a JSON Web Token (RFC 7519 §3); the signature isn't checked.
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
            // Microsoft: claims that a tenant's administrator can write are not trusted.
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
