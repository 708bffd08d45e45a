//! Identifies the account of a grant: the address that the provider has verified, and the further ones in Exchange's
//! directory.
//!
//! Apps choose mailboxes by address, so an address that its holder could make up would let one user impersonate
//! another.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

use reqwest::StatusCode;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;

use super::id_token::{decode, is_for};
use super::response::{Fields, NamedError, fields, names, text};
use super::{OAuthClient, OAuthError, Tokens, read, refusal, unreachable};
use mailgate_settings::{ProviderKind, UserinfoAuthentication};

/// An account's claims, from a userinfo endpoint, Graph's `/me` or an id token.
#[derive(Debug)]
struct Claims {
    email: Option<String>,
    email_verified: Option<bool>,
    /// Microsoft: the domain of `email` is verified as the tenant's.
    xms_edov: Option<bool>,
    preferred_username: Option<String>,
    mail: Option<String>,
    user_principal_name: Option<String>,
    /// None for accounts without a directory.
    proxy_addresses: Option<Vec<String>>,
    /// The names of all fields, for the error about a missing one.
    names: String,
}

/// The claim with the address: the field in the settings, or the usual ones if the settings name none.
#[derive(Debug, Clone, Copy)]
struct AddressField<'a>(&'a str);

impl AddressField<'_> {
    fn is_usual(self) -> bool {
        self.0.is_empty()
    }

    /// The missing field, for the error.
    fn name(self) -> String {
        let name = if self.is_usual() { "email" } else { self.0 };
        name.to_owned()
    }
}

impl Claims {
    fn of(fields: &Fields, field: AddressField<'_>) -> Self {
        let address = |found: Option<&str>| found.map(|text| text.trim().to_owned());
        let email = if field.is_usual() {
            text(fields, "email")
        } else {
            at(fields, field.0).and_then(Value::as_str)
        };
        Self {
            email: address(email.filter(|email| !email.trim().is_empty())),
            email_verified: flag(fields, "email_verified"),
            xms_edov: flag(fields, "xms_edov"),
            preferred_username: address(text(fields, "preferred_username")),
            // A configured field has no substitute.
            mail: address(text(fields, "mail").filter(|_| field.is_usual())),
            user_principal_name: address(text(fields, "userPrincipalName")),
            proxy_addresses: (fields.get("proxyAddresses"))
                .and_then(Value::as_array)
                .map(|entries| entries.iter().filter_map(Value::as_str))
                .map(|entries| entries.map(str::to_owned).collect()),
            names: names(fields),
        }
    }
}

/// A flag, which some providers send as a string or a number; an unreadable one isn't set.
fn flag(fields: &Fields, name: &str) -> Option<bool> {
    Some(match fields.get(name)? {
        Value::Null => return None,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_i64().is_some_and(|number| number != 0),
        Value::String(text) => ["true", "1"]
            .iter()
            .any(|set| text.trim().eq_ignore_ascii_case(set)),
        Value::Array(_) | Value::Object(_) => false,
    })
}

/// The value at a path of names and positions, separated by dots. A name may contain dots, as some claims do.
fn at<'a>(fields: &'a Fields, path: &str) -> Option<&'a Value> {
    fields.get(path).or_else(|| {
        let (name, rest) = path.split_once('.')?;
        within(fields.get(name)?, rest)
    })
}

fn within<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => at(fields, path),
        Value::Array(entries) => match path.split_once('.') {
            Some((position, rest)) => within(entries.get(position.parse::<usize>().ok()?)?, rest),
            None => entries.get(path.parse::<usize>().ok()?),
        },
        _ => None,
    }
}

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
        let response = request
            .timeout(self.limit)
            .header("accept", "application/json")
            .send()
            .await
            .map_err(unreachable)?;
        let status = response.status();
        Ok((status, read(response).await?))
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
            let claims = claims(token).ok_or(OAuthError::Nonsense("the id token can't be read"))?;
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

    fn address(self, kind: ProviderKind, field: AddressField<'_>) -> Result<String, OAuthError> {
        let proxies = self.proxies();
        let lacks = |fields| OAuthError::Lacks {
            what: field.name(),
            fields,
        };
        // Microsoft's users may write anything into `mail` and `email`, but not into their sign-in name.
        let name = self.user_principal_name.or(self.preferred_username);
        if let (ProviderKind::Microsoft, Some(name)) = (kind, name) {
            let is_theirs = |address: &String| {
                let mut names = proxies.iter().chain(std::iter::once(&name));
                names.any(|known| known.eq_ignore_ascii_case(address))
            };
            let is_vouched = [self.email_verified, self.xms_edov].contains(&Some(true));
            let email = self.email.filter(|_| is_vouched);
            let chosen = email.or(self.mail.filter(is_theirs)).unwrap_or(name);
            // A sign-in name that isn't an address is of no use.
            if chosen.contains('@') {
                return Ok(chosen);
            }
            return Err(lacks(self.names));
        }
        if self.email_verified == Some(false) {
            return Err(OAuthError::Unverified);
        }
        self.email.or(self.mail).ok_or_else(|| lacks(self.names))
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

/// The claims of a JSON Web Token (RFC 7519 §3); the signature isn't checked.
fn claims(token: &str) -> Option<Fields> {
    serde_json::from_slice(&decode(token.split('.').nth(1)?)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
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
            (
                json!({"email": " a@x.example\n", "email_verified": " true "}),
                Some("a@x.example"),
            ),
            (json!({"email": ["a@x.example"]}), None),
            (
                json!({"email": " ", "mail": "a@x.example"}),
                Some("a@x.example"),
            ),
            (json!({"email": "a@x.example", "email_verified": {}}), None),
            (
                json!({"email": "a@x.example", "email_verified": null}),
                Some("a@x.example"),
            ),
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
            let read = claims
                .as_object()
                .map(|it| Claims::of(it, AddressField("")));
            let kind = if UPN.iter().any(|name| claims.get(name).is_some()) {
                ProviderKind::Microsoft
            } else {
                ProviderKind::Generic
            };
            let address = read.and_then(|read| read.address(kind, AddressField("")).ok());
            assert_eq!(address.as_deref(), expected, "{claims}");
        }
    }

    #[test]
    fn an_id_token_is_read_or_not() {
        let token = |payload: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(payload));
        let read = claims(&token(r#"{"aud":"us","preferred_username":"a@x.example"}"#));
        assert!(read.is_some_and(|claims| is_for(&claims, "us") && !is_for(&claims, "u")));
        for bad in ["", "a", "a.b", "a.!!.c", &token("[1]"), &token("{")] {
            assert!(claims(bad).is_none(), "{bad}");
        }
    }

    // SocialiteProviders/Yandex#1, grafana/grafana#15311: the address is in another field.
    #[test]
    fn the_address_stands_where_the_settings_say() {
        let yandex = json!({
            "id": "1", "login": "ada", "default_email": " ada@x.example ",
            "emails": ["ada@x.example", "ada@y.example"],
        });
        let nested = json!({
            "email": "other@x.example",
            "data": { "user": { "mail": "ada@x.example" }, "emails": [{ "value": "ada@y.example" }] },
            "https://x.example/email": "ada@z.example",
            "dotted.name": "ada@w.example",
            "number": 7, "empty": " ",
        });
        for (claims, field, expected) in [
            (&yandex, "default_email", Ok("ada@x.example")),
            (&yandex, "emails.1", Ok("ada@y.example")),
            (
                &yandex,
                "",
                Err("email; its fields: default_email, emails, id, login"),
            ),
            (
                &yandex,
                "emails.2",
                Err("emails.2; its fields: default_email, emails, id, login"),
            ),
            (&nested, "data.user.mail", Ok("ada@x.example")),
            (&nested, "data.emails.0.value", Ok("ada@y.example")),
            (&nested, "https://x.example/email", Ok("ada@z.example")),
            (&nested, "dotted.name", Ok("ada@w.example")),
            (&nested, "", Ok("other@x.example")),
            (&nested, "number", Err("number; ")),
            (&nested, "empty", Err("empty; ")),
            (&nested, "data", Err("data; ")),
            (&nested, "data.", Err("data.; ")),
            (&nested, "data.emails.-1", Err("data.emails.-1; ")),
            (&nested, "email.x", Err("email.x; ")),
        ] {
            let field = AddressField(field);
            let read = claims.as_object().map(|it| Claims::of(it, field));
            let address = read.map(|it| it.address(ProviderKind::Generic, field));
            match (address, expected) {
                (Some(Ok(address)), Ok(expected)) => assert_eq!(address, expected),
                (Some(Err(error)), Err(expected)) => {
                    let error = error.to_string();
                    assert!(
                        error.contains(expected) && !error.contains("@x.ex"),
                        "{error}"
                    );
                }
                (found, _) => panic!("{field:?}: {found:?}"),
            }
        }
    }
}
