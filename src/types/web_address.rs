//! Addresses that customers give: of a logo, a webhook receiver, a page to come back to.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Longest address, in bytes.
const MAXIMUM_LENGTH: usize = 2_048;

/// Why an address is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWebAddress {
    /// Too long.
    #[error("may have 2,048 characters at most")]
    TooLong,
    /// Not a URL with a host.
    #[error("must be an absolute https:// address")]
    Form,
    /// Another scheme.
    #[error("must begin with https://")]
    Scheme,
    /// A name or a password in it.
    #[error("must not hold a user name or password")]
    UserInfo,
}

/// Checks an address that a customer gives: `https`, no user info, 2,048 bytes at most. With
/// `allow_loopback`, `http` to this machine too. What it resolves to is checked when it is called.
///
/// # Errors
///
/// [`InvalidWebAddress`].
pub fn check_web_address(text: &str, allow_loopback: bool) -> Result<(), InvalidWebAddress> {
    if text.len() > MAXIMUM_LENGTH {
        return Err(InvalidWebAddress::TooLong);
    }
    // A parser that mends what it reads would let spaces and line ends through.
    if text
        .chars()
        .any(|letter| letter.is_control() || letter.is_whitespace())
    {
        return Err(InvalidWebAddress::Form);
    }
    let url = Url::parse(text).map_err(|_| InvalidWebAddress::Form)?;
    let host = url.host().ok_or(InvalidWebAddress::Form)?;
    // The parser takes `https:host` and back slashes too; then user info would hide from the check below.
    let authority = text
        .get(url.scheme().len()..)
        .and_then(|rest| rest.strip_prefix("://"))
        .and_then(|rest| rest.split(['/', '\\', '?', '#']).next())
        .filter(|authority| !authority.is_empty())
        .ok_or(InvalidWebAddress::Form)?;
    match url.scheme() {
        "https" => {}
        "http" if allow_loopback && is_loopback(&host) => {}
        _ => return Err(InvalidWebAddress::Scheme),
    }
    // An at sign is fine behind the host.
    if authority.contains('@') {
        return Err(InvalidWebAddress::UserInfo);
    }
    Ok(())
}

/// Whether an address names this machine: `localhost` itself, or a loopback address.
#[must_use]
pub fn names_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// As [`names_loopback`], and the names that RFC 6761 §6.3 keeps for it.
fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(address) => Ipv4Addr::is_loopback(address),
        Host::Ipv6(address) => Ipv6Addr::is_loopback(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        use InvalidWebAddress as Invalid;
        for (text, expected) in [
            ("https://example.com", Ok(())),
            ("https://example.com:8443/a/b?c=d@e#f", Ok(())),
            ("HTTPS://EXAMPLE.COM/", Ok(())),
            ("http://example.com", Err(Invalid::Scheme)),
            ("http://localhost:3000/x", Err(Invalid::Scheme)),
            ("ftp://example.com", Err(Invalid::Scheme)),
            ("javascript:alert(1)", Err(Invalid::Form)),
            ("example.com", Err(Invalid::Form)),
            ("https://", Err(Invalid::Form)),
            ("https:example.com", Err(Invalid::Form)),
            ("https:user:pass@example.com", Err(Invalid::Form)),
            ("https:\\\\user@example.com", Err(Invalid::Form)),
            ("https:///user@example.com", Err(Invalid::Form)),
            ("https://user@example.com/", Err(Invalid::UserInfo)),
            ("https://user:pass@example.com/", Err(Invalid::UserInfo)),
            ("https://@example.com/", Err(Invalid::UserInfo)),
            ("https://example.com/a b", Err(Invalid::Form)),
            ("https://example.com/\r\nX: y", Err(Invalid::Form)),
            ("", Err(Invalid::Form)),
        ] {
            assert_eq!(check_web_address(text, false), expected, "{text:?}");
        }
        let long = format!("https://example.com/{}", "x".repeat(MAXIMUM_LENGTH));
        assert_eq!(check_web_address(&long, false), Err(Invalid::TooLong));
    }

    #[test]
    fn loopback_only_where_it_is_allowed() {
        for (text, allowed) in [
            ("http://localhost:3000/x", true),
            ("http://127.0.0.1/x", true),
            ("http://[::1]:80/", true),
            ("http://10.0.0.1/", false),
            ("http://example.com/", false),
        ] {
            assert_eq!(check_web_address(text, true).is_ok(), allowed, "{text}");
        }
    }
}
