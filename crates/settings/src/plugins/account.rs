//! How the address of a connected account is found at a provider of kind generic.

use mailgate_types::web_address::names_loopback;
use url::Url;

use super::ProviderKind;
use crate::reader::Reader;

/// How the access token is sent to the userinfo endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserinfoAuthentication {
    /// In the Authorization header (RFC 6750 §2.1).
    Bearer,
    /// In the query, as `access_token` (RFC 6750 §2.3).
    Query,
}

/// How an account's address is found.
#[derive(Debug, Clone)]
pub struct AccountSettings {
    /// The path of its field, names and positions separated by dots; empty for the usual fields.
    pub email_field: String,
    /// How the token is sent to the userinfo endpoint.
    pub userinfo_auth: UserinfoAuthentication,
    /// The URL of the keys for ID tokens (RFC 7517); empty if the userinfo endpoint is used.
    pub jwks_url: String,
    /// The exact issuer of ID tokens (`OpenID` Connect Core §2).
    pub issuer: String,
}

/// The error for settings of the kind generic in another kind.
const GENERIC_ALONE: &str = "is for a plugin of kind generic alone";

/// Reads these settings; `None` if one of them is invalid.
pub(super) fn read(
    reader: &mut Reader<'_>,
    name: &impl Fn(&str) -> String,
    kind: Option<ProviderKind>,
) -> Option<AccountSettings> {
    let userinfo_auth = reader.choice(
        &name("userinfo_auth"),
        &[
            ("bearer", UserinfoAuthentication::Bearer),
            ("query", UserinfoAuthentication::Query),
        ],
    );
    let settings = AccountSettings {
        email_field: reader.text(&name("email_field")),
        userinfo_auth: userinfo_auth?,
        jwks_url: reader.url(&name("jwks_url")),
        issuer: reader.text(&name("issuer")),
    };
    let is_query = settings.userinfo_auth == UserinfoAuthentication::Query;
    for (key, is_given) in [
        ("email_field", !settings.email_field.is_empty()),
        ("userinfo_auth", is_query),
        ("jwks_url", !settings.jwks_url.is_empty()),
        ("issuer", !settings.issuer.is_empty()),
    ] {
        if is_given && kind.is_some_and(|kind| kind != ProviderKind::Generic) {
            reader.problem(&name(key), GENERIC_ALONE);
        }
    }
    match (settings.jwks_url.is_empty(), settings.issuer.is_empty()) {
        (false, true) => reader.problem(&name("issuer"), "is required with jwks_url"),
        (true, false) => reader.problem(&name("issuer"), "has no meaning without jwks_url"),
        _ => {}
    }
    if !settings.jwks_url.is_empty() {
        let is_open = |url: Url| url.scheme() == "http" && !names_loopback(&url);
        if Url::parse(&settings.jwks_url).is_ok_and(is_open) {
            let text = "must be an https:// address: who can change the keys on their way signs in as anybody";
            reader.problem(&name("jwks_url"), text);
        }
        if !reader.text(&name("userinfo_url")).is_empty() {
            let text = "must be empty with jwks_url: the ID token has the address";
            reader.problem(&name("userinfo_url"), text);
        }
        let scopes = reader.texts(&name("scopes"));
        let mut words = scopes.iter().flat_map(|scopes| scopes.split_whitespace());
        if !scopes.is_empty() && !words.any(|scope| scope == "openid") {
            let text = "must have openid with jwks_url: there is no ID token without it";
            reader.problem(&name("scopes"), text);
        }
    }
    Some(settings)
}
