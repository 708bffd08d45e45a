//! The link back to the site from which a user opened a connect link, for the last page: on a phone it is the only way
//! back, since no window can be closed. The browser keeps the site in a cookie, and the page shows its host, since
//! anyone with a link can send others to it.

use axum::http::header::REFERER;
use axum::http::{HeaderMap, HeaderValue};
use url::Url;

use crate::http::browser::LIFE;
use mailgate_server::cookie::{cookies, is_secure, set_cookie};
use mailgate_server::page::is_source;

const NAME: &str = "mailgate_back";

/// Longest address of a site: a scheme, a host (RFC 1035 §2.3.4) and a port.
const LENGTH: usize = 280;

/// The site that a user came from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Back(Url);

impl Back {
    /// The site that a link was opened from, according to the browser; `None` for the gateway's own pages, and if the
    /// browser doesn't send it.
    fn from_referrer(headers: &HeaderMap, base_url: &str) -> Option<Self> {
        let site = Self::site(headers.get(REFERER)?.to_str().ok()?)?;
        let own = Url::parse(base_url).ok()?;
        let is_safe = site.0.scheme() == "https" || !is_secure(base_url);
        (is_safe && site.0.origin() != own.origin()).then_some(site)
    }

    /// The `Set-Cookie` for an app's link that was just opened: if it was opened from no known site, the cookie of an
    /// earlier visit is deleted. `None` for a user who comes from the gateway's own pages, to try again.
    pub(crate) fn kept(
        headers: &HeaderMap,
        base_url: &str,
        pushable_key: &str,
    ) -> Option<HeaderValue> {
        let (value, life) = match Self::from_referrer(headers, base_url) {
            Some(Self(site)) => {
                let site = site.origin().ascii_serialization();
                (format!("{pushable_key}~{site}"), LIFE)
            }
            None if headers
                .get("sec-fetch-site")
                .is_some_and(|it| it == "same-origin") =>
            {
                return None;
            }
            None => {
                cookies(headers, NAME, base_url).next()?;
                (String::new(), 0)
            }
        };
        set_cookie(NAME, &value, life, base_url)
    }

    /// The site that the browser keeps for this app.
    pub(crate) fn of(headers: &HeaderMap, base_url: &str, pushable_key: &str) -> Option<Self> {
        cookies(headers, NAME, base_url)
            .filter_map(|value| value.split_once('~'))
            .find(|(key, _)| *key == pushable_key)
            .and_then(|(_, site)| Self::site(site))
    }

    /// Its address, for a link.
    pub(crate) fn address(&self) -> &str {
        self.0.as_str()
    }

    /// Its host, with any non-default port.
    pub(crate) fn host(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        match self.0.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    fn site(address: &str) -> Option<Self> {
        let address = Url::parse(address).ok()?;
        let is_web = matches!(address.scheme(), "http" | "https") && address.has_host();
        let origin = address.origin().ascii_serialization();
        let is_kept = is_web && is_source(&origin) && origin.len() <= LENGTH;
        is_kept
            .then(|| Url::parse(&origin).ok().map(Self))
            .flatten()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use axum::http::header::COOKIE;

    use super::*;

    const BASE_URL: &str = "https://gateway.example";

    fn referred(from: &str) -> HeaderMap {
        HeaderMap::from_iter([(REFERER, from.parse().unwrap())])
    }

    #[test]
    fn a_site_is_kept_for_its_app_alone() {
        let headers = referred("https://app.example:8443/settings?a=b#c");
        let back = Back::from_referrer(&headers, BASE_URL).unwrap();
        assert_eq!(back.0.as_str(), "https://app.example:8443/");
        let cookie = Back::kept(&headers, BASE_URL, "pk_1").unwrap();
        let cookie = cookie.to_str().unwrap();
        assert!(cookie.ends_with("; SameSite=Lax; Secure"), "{cookie}");
        let pair = cookie.split(';').next().unwrap();
        let headers = HeaderMap::from_iter([(COOKIE, pair.parse().unwrap())]);
        assert_eq!(Back::of(&headers, BASE_URL, "pk_1"), Some(back));
        assert_eq!(Back::of(&headers, BASE_URL, "pk_2"), None);
        assert_eq!(Back::of(&headers, "http://127.0.0.1:1", "pk_1"), None);
    }

    #[test]
    fn what_is_no_other_site_is_not_kept() {
        for from in [
            "",
            "about:blank",
            "https://gateway.example/connect/pk_1",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "android-app://com.example/",
            "http://app.example/",
            "https://a;b/",
            "https://a,b/",
        ] {
            let mut headers = referred(from);
            assert_eq!(Back::from_referrer(&headers, BASE_URL), None, "{from}");
            assert_eq!(Back::kept(&headers, BASE_URL, "pk_1"), None, "{from}");
            let left = HeaderValue::from_static("__Host-mailgate_back=pk_1~https://x.example");
            headers.insert(COOKIE, left);
            let cookie = Back::kept(&headers, BASE_URL, "pk_1").unwrap();
            let cookie = cookie.to_str().unwrap();
            assert!(
                cookie.starts_with("__Host-mailgate_back=; Path=/; Max-Age=0;"),
                "{from}"
            );
            headers.insert("sec-fetch-site", HeaderValue::from_static("same-origin"));
            assert_eq!(Back::kept(&headers, BASE_URL, "pk_1"), None, "{from}");
        }
        let headers = referred("http://app.example/");
        assert!(Back::from_referrer(&headers, "http://127.0.0.1:1").is_some());
        let headers = HeaderMap::from_iter([(
            COOKIE,
            "__Host-mailgate_back=pk_1~javascript:alert(1)"
                .parse()
                .unwrap(),
        )]);
        assert_eq!(Back::of(&headers, BASE_URL, "pk_1"), None);
    }
}
