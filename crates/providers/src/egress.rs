//! The guarded HTTP client for customers' URLs. A URL must not give its author access to hosts that only this machine
//! can reach: the parsed URL is checked, and so is each address that its host resolves to, on every connection.
//! Redirects are not followed, proxies from the environment not used, and one timeout and one size limit bound the
//! whole exchange.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod resolver;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response};
use url::Url;

use self::resolver::{ASKER, GuardedResolver, ResolveError};
use super::answer;
use super::tls::{self, ClientTlsError};
use mailgate_types::ids::SubscriberId;
use mailgate_types::web_address::names_private;

/// Bytes of a response that are kept.
pub const ANSWER_BYTES: usize = 16 * 1_024;

/// The `User-Agent` of all requests.
pub const USER_AGENT: &str = concat!("mailgate/", env!("CARGO_PKG_VERSION"));

/// The `Content-Type` of all requests.
pub const MEDIA_TYPE: &str = "application/json";

/// How long an unused connection is kept.
const IDLE: Duration = Duration::from_secs(15);

/// Why a URL is rejected. A retry won't change this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not a URL with a host.
    #[error("the URL can't be called")]
    Form,
    /// Not https.
    #[error("the URL isn't https")]
    Scheme,
    /// It contains a user name or a password.
    #[error("the URL holds a user name or password")]
    UserInfo,
    /// It leads to this machine, a private network, or another address that customers must not reach.
    #[error("the URL leads to an address that isn't public")]
    Address,
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// The address is not allowed.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The exchange took too long.
    #[error("no answer within {} seconds", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The connection failed or broke.
    #[error("{0}")]
    Failed(String),
}

/// A receiver's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressAnswer {
    /// HTTP status.
    pub status: u16,
    /// The delay that its Retry-After asks for, at most a day.
    pub retry_after: Option<Duration>,
    /// The first [`ANSWER_BYTES`] of its body, as far as they arrived in time; invalid UTF-8 and NUL are replaced.
    pub body: String,
}

/// The guarded client.
#[derive(Debug, Clone)]
pub struct Egress {
    client: Client,
    allow_private: bool,
    exchange: Duration,
}

/// Why the client can't be created.
#[derive(Debug, thiserror::Error)]
pub enum EgressSetupError {
    /// TLS.
    #[error(transparent)]
    Tls(#[from] ClientTlsError),
    /// The client itself.
    #[error("the client for webhooks can't be created: {0}")]
    Client(#[from] reqwest::Error),
}

impl Egress {
    /// `exchange` bounds the whole exchange: connection, TLS, request and response.
    ///
    /// # Errors
    ///
    /// If TLS can't be set up.
    pub fn new(allow_private: bool, exchange: Duration) -> Result<Self, EgressSetupError> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls::client(None)?.as_ref().clone())
            .https_only(!allow_private)
            .dns_resolver(Arc::new(GuardedResolver::new(allow_private)))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .tcp_nodelay(true)
            .pool_idle_timeout(IDLE)
            .user_agent(USER_AGENT)
            .build()?;
        Ok(Self {
            client,
            allow_private,
            exchange,
        })
    }

    /// Posts JSON on behalf of a subscriber. `now` is for a Retry-After with a date.
    ///
    /// # Errors
    ///
    /// [`EgressError`]; once a receiver has responded with a status it isn't an error, even if reading the rest fails.
    pub async fn post(
        &self,
        subscriber: Option<SubscriberId>,
        url: &str,
        headers: [(HeaderName, HeaderValue); 3],
        body: Bytes,
        now: DateTime<Utc>,
    ) -> Result<EgressAnswer, EgressError> {
        let url = self.check(url)?;
        let mut all = HeaderMap::from_iter(headers);
        all.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        let deadline = tokio::time::Instant::now() + self.exchange;
        let request = self.client.post(url).headers(all).body(body).send();
        let request = ASKER.scope(subscriber, request);
        let response = tokio::time::timeout_at(deadline, request)
            .await
            .map_err(|_| EgressError::TimedOut(self.exchange))?
            .map_err(failure)?;
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| answer::retry_after(value, Some(now)));
        let mut content = Vec::new();
        // The part that arrived in time is kept; only the status matters.
        let _ = tokio::time::timeout_at(deadline, read(response, &mut content)).await;
        Ok(EgressAnswer {
            status,
            retry_after,
            body: as_text(&content),
        })
    }

    /// The URL as the client parses it, which normalizes all notations of an address.
    fn check(&self, text: &str) -> Result<Url, Refusal> {
        let url = Url::parse(text).map_err(|_| Refusal::Form)?;
        match url.scheme() {
            "https" => {}
            "http" if self.allow_private => {}
            _ => return Err(Refusal::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::UserInfo);
        }
        if url.host().is_none() {
            return Err(Refusal::Form);
        }
        if !self.allow_private && names_private(&url) {
            return Err(Refusal::Address);
        }
        Ok(url)
    }
}

/// Reads until the end, an error, or the limit.
async fn read(mut response: Response, content: &mut Vec<u8>) {
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = ANSWER_BYTES.saturating_sub(content.len());
        content.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() >= room {
            break;
        }
    }
}

/// At most [`ANSWER_BYTES`], made safe for a database.
fn as_text(content: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(content).replace('\0', "\u{fffd}");
    text.truncate(text.floor_char_boundary(ANSWER_BYTES));
    text
}

/// The cause, without the addresses that the receiver's name resolves to.
fn failure(error: reqwest::Error) -> EgressError {
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        if let Some(ResolveError::Refused(refusal)) = cause.downcast_ref() {
            return EgressError::Refused(*refusal);
        }
        source = cause.source();
    }
    EgressError::Failed(answer::no_answer(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn egress(allow_private: bool) -> Option<Egress> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Egress::new(allow_private, Duration::from_secs(1)).ok()
    }

    #[test]
    fn urls_in_every_notation() {
        let Some(egress) = egress(false) else {
            panic!("a client can be made");
        };
        for (url, refusal) in [
            ("https://example.com/hook", None),
            ("https://1.1.1.1/", None),
            ("https://example.com:8443/a@b?c#d", None),
            ("http://example.com/", Some(Refusal::Scheme)),
            ("ftp://example.com/", Some(Refusal::Scheme)),
            ("file:///etc/passwd", Some(Refusal::Scheme)),
            ("gopher://example.com/", Some(Refusal::Scheme)),
            ("https://user@example.com/", Some(Refusal::UserInfo)),
            ("https://:secret@example.com/", Some(Refusal::UserInfo)),
            ("https://1.1.1.1@127.0.0.1/", Some(Refusal::UserInfo)),
            ("https://", Some(Refusal::Form)),
            ("", Some(Refusal::Form)),
            ("https://127.0.0.1/", Some(Refusal::Address)),
            ("https://127.1/", Some(Refusal::Address)),
            ("https://0x7f.1/", Some(Refusal::Address)),
            ("https://0x7f000001/", Some(Refusal::Address)),
            ("https://0177.0.0.1/", Some(Refusal::Address)),
            ("https://2130706433/", Some(Refusal::Address)),
            ("https://017700000001/", Some(Refusal::Address)),
            ("https://127.0.0.1./", Some(Refusal::Address)),
            ("https://%31%32%37.0.0.1/", Some(Refusal::Address)),
            ("https://①②⑦.0.0.1/", Some(Refusal::Address)),
            ("https://127。0。0。1/", Some(Refusal::Address)),
            ("https:127.0.0.1", Some(Refusal::Address)),
            ("https:\\\\127.0.0.1\\", Some(Refusal::Address)),
            ("https://0/", Some(Refusal::Address)),
            ("https://10.0.0.1/", Some(Refusal::Address)),
            ("https://169.254.169.254/latest", Some(Refusal::Address)),
            ("https://[::1]/", Some(Refusal::Address)),
            ("https://[::]/", Some(Refusal::Address)),
            ("https://[::ffff:127.0.0.1]/", Some(Refusal::Address)),
            ("https://[::ffff:7f00:1]/", Some(Refusal::Address)),
            ("https://[64:ff9b::127.0.0.1]/", Some(Refusal::Address)),
            ("https://[2002:7f00:1::]/", Some(Refusal::Address)),
            ("https://[fd00::1]/", Some(Refusal::Address)),
            ("https://[fe80::1]/", Some(Refusal::Address)),
            ("https://localhost/", Some(Refusal::Address)),
            ("https://LOCALHOST.:8443/", Some(Refusal::Address)),
            ("https://any.localhost/", Some(Refusal::Address)),
            ("https://localhost.example.com/", None),
        ] {
            assert_eq!(egress.check(url).err(), refusal, "{url}");
        }
    }

    #[test]
    fn texts_are_fit_for_a_database() {
        assert_eq!(as_text(b"a\0b\xff"), "a\u{fffd}b\u{fffd}");
        let long = as_text(&[0xff; ANSWER_BYTES]);
        assert!(long.len() <= ANSWER_BYTES && long.len() > ANSWER_BYTES - 3);
    }
}
