//! Cookies that only this gateway reads.

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};

/// The values of a request's cookies with this name.
pub fn cookies<'a>(
    headers: &'a HeaderMap,
    name: &str,
    base_url: &str,
) -> impl Iterator<Item = &'a str> {
    cookies_under(headers, name, base_url)
        .filter(|(rest, _)| rest.is_empty())
        .map(|(_, value)| value)
}

/// The request's cookies with this name prefix: the rest of their names, and their values.
pub fn cookies_under<'a>(
    headers: &'a HeaderMap,
    name: &str,
    base_url: &str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let name = full_name(name, base_url);
    let cookies = headers.get_all(COOKIE).into_iter();
    cookies
        .filter_map(|cookies| cookies.to_str().ok())
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter_map(move |(found, value)| Some((found.strip_prefix(name.as_str())?, value)))
}

/// A `SameSite=Lax` cookie that lasts for `life` seconds. `None` if the value isn't valid in a cookie.
#[must_use]
pub fn set_cookie(name: &str, value: &str, life: u32, base_url: &str) -> Option<HeaderValue> {
    let secure = if is_secure(base_url) { "; Secure" } else { "" };
    let name = full_name(name, base_url);
    HeaderValue::try_from(format!(
        "{name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Lax{secure}"
    ))
    .ok()
}

/// With https, a prefix keeps other hosts of the domain from setting it (RFC 6265bis §4.1.3.2). Browsers reject the
/// prefix over plain http, as on a developer's machine.
fn full_name(name: &str, base_url: &str) -> String {
    let prefix = if is_secure(base_url) { "__Host-" } else { "" };
    format!("{prefix}{name}")
}

/// Whether browsers reach the gateway over https, so that its cookies are `Secure`.
#[must_use]
pub fn is_secure(base_url: &str) -> bool {
    base_url.starts_with("https:")
}
