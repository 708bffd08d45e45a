//! The fuzz target of a provider's OAuth endpoints.

#![expect(
    clippy::missing_panics_doc,
    reason = "fuzz targets panic where an invariant breaks"
)]

use chrono::TimeDelta;
use reqwest::StatusCode;
use secrecy::ExposeSecret;

use super::super::id_token::jwk::public_keys;
use super::super::id_token::{SignedToken, unverified_claims};
use super::super::response::{fields, tokens};
use super::super::{OAuthError, refusal};
use super::claims::{AddressField, Claims};
use crate::answer::fuzzing::{is_told, moment};
use crate::mail::aliases::fuzzing::check_kept;
use mailgate_settings::ProviderKind;
use mailgate_types::fuzzing::Input;

/// Upper bound of a token's lifetime.
const YEAR: TimeDelta = TimeDelta::days(366);

/// Any response of a token or userinfo endpoint, and any id token.
pub fn token_answers(data: &[u8]) {
    let mut input = Input::new(data);
    let asked_at = moment(&mut input);
    let status = 200 + u16::try_from(input.number() % 400).unwrap_or_default();
    let status = StatusCode::from_u16(status).unwrap_or_default();
    let body = input.rest();
    match tokens(status, body, asked_at, &[]) {
        Ok(tokens) => {
            assert!(status.is_success(), "{status}");
            let refresh_token = tokens
                .refresh_token
                .as_ref()
                .unwrap_or(&tokens.access_token);
            for token in [&tokens.access_token, refresh_token] {
                assert!(!token.expose_secret().trim().is_empty());
            }
            let is_scope = |scope: &String| scope.bytes().all(|it| it.is_ascii_graphic());
            assert!(tokens.scopes.iter().flatten().all(is_scope));
            assert!(tokens.expires_at >= asked_at, "{}", tokens.expires_at);
            assert!(
                tokens.expires_at <= asked_at + YEAR,
                "{}",
                tokens.expires_at
            );
        }
        Err(error) => look_at_error(&error, status, body),
    }
    look_at_error(&refusal(status, body), status, body);
    if let Some(keys) = public_keys(body) {
        assert!(!keys.is_empty() && keys.len() <= 100);
    }
    let token = std::str::from_utf8(body).ok().map(SignedToken::parse);
    if let Some(Ok(token)) = token {
        assert!(token.verify(&[]).is_err());
    }
    for kind in [
        ProviderKind::Google,
        ProviderKind::Microsoft,
        ProviderKind::Generic,
    ] {
        let told = fields(body);
        let in_token = std::str::from_utf8(body).ok().and_then(unverified_claims);
        for claims in [told, in_token].into_iter().flatten() {
            look(Claims::of(&claims, AddressField("")), kind);
            let chosen = AddressField("data.0.email");
            let _ = Claims::of(&claims, chosen).address(kind, chosen);
        }
    }
}

/// An error is short, and ends a grant only if the provider itself says so.
fn look_at_error(error: &OAuthError, status: StatusCode, body: &[u8]) {
    assert!(is_told(&error.to_string()), "{error}");
    if let OAuthError::InvalidGrant { error: word, .. } = error {
        assert!(status.is_client_error() || status.is_success(), "{error}");
        let body = String::from_utf8_lossy(body).to_ascii_lowercase();
        // JSON and forms may escape its letters.
        let is_there = body.contains(word.as_str()) || body.contains(['\\', '%']);
        assert!(is_there, "{error}");
    }
}

/// For a Microsoft account, an address that its user could make up is never accepted.
fn look(claims: Claims, kind: ProviderKind) {
    let name = claims
        .user_principal_name
        .clone()
        .or(claims.preferred_username.clone());
    let proxied = claims.proxy_addresses.clone();
    let is_vouched = [claims.email_verified, claims.xms_edov].contains(&Some(true));
    check_kept(&claims.proxies());
    let Ok(address) = claims.address(kind, AddressField("")) else {
        return;
    };
    if let (ProviderKind::Microsoft, Some(name)) = (kind, name) {
        let is_known = address.eq_ignore_ascii_case(&name)
            || proxied.iter().flatten().any(|proxy| {
                let known = proxy.split_once(':').map_or("", |(_, known)| known);
                known.eq_ignore_ascii_case(&address)
            });
        assert!(is_known || is_vouched, "{address:?}");
    }
}
