//! URLs from customers: logos, webhook receivers, return pages.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::public_address::is_public;

/// Longest URL, in bytes.
const MAXIMUM_LENGTH: usize = 2_048;

/// Why a URL is rejected.
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
    /// It contains a user name or a password.
    #[error("must not hold a user name or password")]
    UserInfo,
    /// It leads to this machine, or a private network.
    #[error("must be an address of the public internet, not of a private network or this machine")]
    Private,
}

/// Checks a URL that a customer provides: `https`, no user info, at most 2,048 bytes. With `allow_loopback`, `http` to
/// this machine too. The addresses that it resolves to are checked when it is called.
pub fn check_web_address(text: &str, allow_loopback: bool) -> Result<(), InvalidWebAddress> {
    check(text, |host| allow_loopback && is_loopback(host)).map(drop)
}

/// Checks a URL for receiving webhooks: like [`check_web_address`], and it must not name this machine or a private
/// network. With `allow_private` it may, with `http` too.
pub fn check_webhook_address(text: &str, allow_private: bool) -> Result<(), InvalidWebAddress> {
    let url = check(text, |_| allow_private)?;
    if !allow_private && names_private(&url) {
        return Err(InvalidWebAddress::Private);
    }
    Ok(())
}

/// Whether a URL itself names this machine or a private network, in any notation. Host names are not resolved.
#[must_use]
pub fn names_private(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => !is_public(address.into()),
        Some(Host::Ipv6(address)) => !is_public(address.into()),
        Some(name) => is_loopback(&name),
        None => false,
    }
}

/// The checks common to all URLs; `http` is allowed for hosts that satisfy `allows_http`.
fn check(
    text: &str,
    allows_http: impl FnOnce(&Host<&str>) -> bool,
) -> Result<Url, InvalidWebAddress> {
    if text.len() > MAXIMUM_LENGTH {
        return Err(InvalidWebAddress::TooLong);
    }
    // A parser that repairs its input would let spaces and line breaks through.
    if text
        .chars()
        .any(|letter| letter.is_control() || letter.is_whitespace())
    {
        return Err(InvalidWebAddress::Form);
    }
    let url = Url::parse(text).map_err(|_| InvalidWebAddress::Form)?;
    let host = url.host().ok_or(InvalidWebAddress::Form)?;
    // The parser accepts `https:host` and backslashes too; user info would then escape the check below.
    let authority = text
        .get(url.scheme().len()..)
        .and_then(|rest| rest.strip_prefix("://"))
        .and_then(|rest| rest.split(['/', '\\', '?', '#']).next())
        .filter(|authority| !authority.is_empty())
        .ok_or(InvalidWebAddress::Form)?;
    match url.scheme() {
        "https" => {}
        "http" if allows_http(&host) => {}
        _ => return Err(InvalidWebAddress::Scheme),
    }
    // An at sign is fine after the host.
    if authority.contains('@') {
        return Err(InvalidWebAddress::UserInfo);
    }
    Ok(url)
}

/// Whether a URL names this machine: `localhost` itself, or a loopback address.
#[must_use]
pub fn names_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Like [`names_loopback`], including the names that RFC 6761 §6.3 reserves for it.
fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            // A trailing dot doesn't change the name.
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
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

    #[test]
    fn webhooks_go_to_the_internet() {
        use InvalidWebAddress as Invalid;
        for (text, expected, in_development) in [
            ("https://example.com/hook", Ok(()), Ok(())),
            ("https://8.8.8.8/", Ok(()), Ok(())),
            ("https://[2606:4700:4700::1111]/", Ok(()), Ok(())),
            ("http://example.com/hook", Err(Invalid::Scheme), Ok(())),
            ("http://receiver:3000/", Err(Invalid::Scheme), Ok(())),
            ("https://localhost/", Err(Invalid::Private), Ok(())),
            ("https://LOCALHOST./", Err(Invalid::Private), Ok(())),
            ("https://a.localhost:8443/", Err(Invalid::Private), Ok(())),
            ("https://127.0.0.1/", Err(Invalid::Private), Ok(())),
            ("https://0x7f.1/", Err(Invalid::Private), Ok(())),
            ("https://2130706433/", Err(Invalid::Private), Ok(())),
            ("https://10.0.0.1/", Err(Invalid::Private), Ok(())),
            (
                "https://169.254.169.254/latest",
                Err(Invalid::Private),
                Ok(()),
            ),
            ("https://[::1]/", Err(Invalid::Private), Ok(())),
            ("https://[::ffff:127.0.0.1]/", Err(Invalid::Private), Ok(())),
            ("https://[fd00::1]/", Err(Invalid::Private), Ok(())),
            (
                "http://user@10.0.0.1/",
                Err(Invalid::Scheme),
                Err(Invalid::UserInfo),
            ),
            (
                "ftp://10.0.0.1/",
                Err(Invalid::Scheme),
                Err(Invalid::Scheme),
            ),
        ] {
            assert_eq!(check_webhook_address(text, false), expected, "{text}");
            assert_eq!(check_webhook_address(text, true), in_development, "{text}");
        }
    }
}
