//! The browser in which a user connects a mailbox: a cookie identifies it, so that a flow that began in one browser
//! can't be completed in another (RFC 6749 §10.12).

use axum::http::{HeaderMap, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use mailgate_server::cookie::{cookies, set_cookie};
use mailgate_types::secrets::{NoRandomness, random_bytes};

const NAME: &str = "mailgate_browser";

/// Seconds that a cookie is kept: longer than the whole flow may take.
pub(crate) const LIFE: u32 = 3_600;

/// Characters of 32 bytes in base64url.
const LENGTH: usize = 43;

/// A browser's secret.
#[derive(Debug)]
pub(crate) struct Browser(String);

impl Browser {
    /// The browser that sent this header, if it has a secret.
    pub(crate) fn of(headers: &HeaderMap, base_url: &str) -> Option<Self> {
        let secret = cookies(headers, NAME, base_url).find(|secret| is_secret(secret))?;
        Some(Self(secret.to_owned()))
    }

    /// A new browser.
    pub(crate) fn new() -> Result<Self, NoRandomness> {
        Ok(Self(URL_SAFE_NO_PAD.encode(random_bytes::<32>()?)))
    }

    /// The public part, by which the browser is recognized.
    pub(crate) fn digest(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(&self.0))
    }

    /// The `Set-Cookie` that gives it its secret. The browser sends it when the provider redirects the user back, but
    /// not with other sites' requests.
    pub(crate) fn cookie(&self, base_url: &str) -> Option<HeaderValue> {
        set_cookie(NAME, &self.0, LIFE, base_url)
    }
}

fn is_secret(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    text.len() == LENGTH && text.bytes().all(is_letter)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use axum::http::header::COOKIE;

    use super::*;

    #[test]
    fn a_browser_is_known_again() {
        for (base_url, other, prefix, secure) in [
            ("https://gateway.example", "http://x", "__Host-", true),
            ("http://127.0.0.1:8080", "https://x", "mailgate_", false),
        ] {
            let browser = Browser::new().unwrap();
            let cookie = browser.cookie(base_url).unwrap();
            let cookie = cookie.to_str().unwrap();
            assert!(cookie.starts_with(prefix), "{cookie}");
            assert_eq!(cookie.ends_with("; Secure"), secure, "{cookie}");
            let pair = cookie.split(';').next().unwrap();
            for sent in [
                pair.to_owned(),
                format!("a=b; {pair}; c=d"),
                format!(" x;{pair} "),
            ] {
                let mut headers = HeaderMap::new();
                headers.append(COOKIE, HeaderValue::from_static("first=1"));
                headers.append(COOKIE, sent.parse().unwrap());
                let found = Browser::of(&headers, base_url).unwrap();
                assert_eq!(found.digest(), browser.digest(), "{sent}");
                assert!(Browser::of(&headers, other).is_none(), "another name");
            }
        }
    }

    #[test]
    fn what_it_was_not_given_is_no_secret() {
        let long = "a".repeat(44);
        for value in ["", "a", &long, &long[1..].replace('a', "."), &long[2..]] {
            let mut headers = HeaderMap::new();
            headers.append(COOKIE, format!("mailgate_browser={value}").parse().unwrap());
            assert!(Browser::of(&headers, "http://x").is_none(), "{value}");
        }
    }
}
