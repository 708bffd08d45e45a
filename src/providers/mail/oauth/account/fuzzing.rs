//! The fuzz target of a provider's OAuth endpoints.

use chrono::TimeDelta;
use reqwest::StatusCode;

use super::super::{OAuthError, refusal, tokens};
use super::{Claims, claims};
use crate::config::ProviderKind;
use crate::providers::answer::fuzzing::{is_told, moment};
use crate::providers::mail::aliases::fuzzing::check_kept;
use mailgate_types::fuzzing::Input;

/// Upper bound of a token's lifetime.
const YEAR: TimeDelta = TimeDelta::days(366);

/// Any response of a token or userinfo endpoint, and any id token.
pub(crate) fn token_answers(data: &[u8]) {
    let mut input = Input::new(data);
    let asked_at = moment(&mut input);
    let status = 300 + u16::try_from(input.number() % 300).unwrap_or_default();
    let body = input.rest();
    match tokens(body, asked_at) {
        Ok(tokens) => {
            assert!(tokens.expires_at >= asked_at, "{}", tokens.expires_at);
            assert!(
                tokens.expires_at <= asked_at + YEAR,
                "{}",
                tokens.expires_at
            );
        }
        Err(error) => assert!(matches!(error, OAuthError::Nonsense(_))),
    }
    let status = StatusCode::from_u16(status).unwrap_or_default();
    let refusal = refusal(status, body);
    assert!(is_told(&refusal.to_string()), "{refusal}");
    assert!(
        !matches!(refusal, OAuthError::InvalidGrant(_)) || status.is_client_error(),
        "{refusal}"
    );
    for kind in [
        ProviderKind::Google,
        ProviderKind::Microsoft,
        ProviderKind::Generic,
    ] {
        if let Ok(claims) = serde_json::from_slice::<Claims>(body) {
            look(claims, kind);
        }
        if let Some(claims) = std::str::from_utf8(body).ok().and_then(claims) {
            look(claims, kind);
        }
    }
}

/// For a Microsoft account, an address that its user could make up is never accepted.
fn look(claims: Claims, kind: ProviderKind) {
    let name = claims
        .user_principal_name
        .clone()
        .or(claims.preferred_username.clone());
    let proxied = claims.proxy_addresses.clone();
    let is_vouched = [&claims.email_verified, &claims.xms_edov]
        .into_iter()
        .flatten()
        .any(super::Flag::is_set);
    check_kept(&claims.proxies());
    let Ok(address) = claims.address(kind) else {
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
