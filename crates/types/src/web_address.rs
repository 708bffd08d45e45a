//! Addresses that customers give: of a logo, a webhook receiver, a page to come back to.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::public_address::is_public;

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
    /// Of this machine, or a private network.
    #[error("must be an address of the public internet, not of a private network or this machine")]
    Private,
}

/// Checks an address that a customer gives: `https`, no user info, 2,048 bytes at most. With
/// `allow_loopback`, `http` to this machine too. What it resolves to is checked when it is called.
pub fn check_web_address(text: &str, allow_loopback: bool) -> Result<(), InvalidWebAddress> {
    check(text, |host| allow_loopback && is_loopback(host)).map(drop)
}

/// Checks an address that is to receive webhooks: as [`check_web_address`], and none that says itself that
/// it is of this machine or a private network. With `allow_private` all of that, by `http` too.
pub fn check_webhook_address(text: &str, allow_private: bool) -> Result<(), InvalidWebAddress> {
    let url = check(text, |_| allow_private)?;
    if !allow_private && names_private(&url) {
        return Err(InvalidWebAddress::Private);
    }
    Ok(())
}

/// Whether an address says itself that it leads to this machine or a private network, in whatever notation.
/// What a name leads to, only a resolver knows.
#[must_use]
pub fn names_private(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => !is_public(address.into()),
        Some(Host::Ipv6(address)) => !is_public(address.into()),
        Some(name) => is_loopback(&name),
        None => false,
    }
}

/// What holds for all of them; `http` goes to hosts that `allows_http` says.
fn check(
    text: &str,
    allows_http: impl FnOnce(&Host<&str>) -> bool,
) -> Result<Url, InvalidWebAddress> {
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
        "http" if allows_http(&host) => {}
        _ => return Err(InvalidWebAddress::Scheme),
    }
    // An at sign is fine behind the host.
    if authority.contains('@') {
        return Err(InvalidWebAddress::UserInfo);
    }
    Ok(url)
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
        Host::Domain(name) => {
            // With a dot at its end it is the same name.
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
