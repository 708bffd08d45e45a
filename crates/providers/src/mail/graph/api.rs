//! Calls to Graph: URLs, bounded responses, and the errors of failed calls.

use std::time::Duration;

use bytes::Bytes;
use chrono::DateTime;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response};
use secrecy::ExposeSecret;
use serde_json::Value;
use tokio::time::Instant;
use url::Url;
use url::form_urlencoded::byte_serialize;

use crate::answer::{self, causes};
use crate::mail::transport::{MailboxAccess, SendPermit};
use crate::mail::withheld::{self, Unanswered};
use mailgate_types::web_address::names_loopback;

/// Requests ids that don't change when a draft is sent or mail is moved (outlook-immutable-id). The header applies to
/// one request, so every request sends it.
const IMMUTABLE_IDS: &str = r#"IdType="ImmutableId""#;

/// The content type of a MIME message in base64 (user-sendmail, "MIME format").
const MIME: &str = "text/plain";

/// The largest response that is read: a page of headers, or a draft with its text.
const MAXIMUM_ANSWER: usize = 16 * 1024 * 1024;

/// A response.
#[derive(Debug)]
pub(super) struct GraphResponse {
    pub(super) status: u16,
    /// The Retry-After that the provider sent.
    pub(super) retry_after: Option<Duration>,
    /// As much of it as was received.
    pub(super) body: Vec<u8>,
}

impl GraphResponse {
    /// The body, parsed as JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// The connection failed, so nothing of the request was sent.
    #[error("{0}")]
    NotSent(String),
    /// The request may have been received.
    #[error("{0}")]
    Broken(String),
    /// We withheld it, for this reason.
    #[error("{0}")]
    Withheld(String),
}

/// The content of a request.
#[derive(Debug)]
pub(super) enum GraphContent {
    Nothing,
    /// A MIME message in base64.
    Mime(String),
    Json(Value),
}

/// The timeouts of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Limit of each call.
    pub(super) each: Duration,
    /// Deadline of the whole operation that it belongs to.
    pub(super) until: Instant,
}

impl Patience {
    fn left(self) -> Duration {
        self.each
            .min(self.until.saturating_duration_since(Instant::now()))
    }
}

/// Graph, at its base address.
#[derive(Debug)]
pub(super) struct Api {
    http: Client,
    /// Without a trailing slash.
    base: String,
}

impl Api {
    pub(super) fn new(http: Client, base: &str) -> Self {
        Self {
            http,
            base: base.to_owned(),
        }
    }

    /// A URL below the mailbox's; `path` begins with a slash, and untrusted parts of it must be [`encoded`].
    pub(super) fn address(&self, path: &str) -> String {
        format!("{}/v1.0/me{path}", self.base)
    }

    /// Whether a URL from a response belongs to Graph itself, so that the token may be sent to it.
    pub(super) fn is_own(&self, address: &str) -> bool {
        match (Url::parse(&self.base), Url::parse(address)) {
            (Ok(base), Ok(address)) => {
                base.origin() == address.origin()
                    && address.username().is_empty()
                    && address.password().is_none()
            }
            _ => false,
        }
    }

    /// Whether content may be uploaded to a URL from a response.
    pub(super) fn may_upload_to(&self, address: &str) -> bool {
        let Ok(address) = Url::parse(address) else {
            return false;
        };
        match address.scheme() {
            "https" => true,
            "http" => {
                names_loopback(&address)
                    && Url::parse(&self.base).is_ok_and(|base| names_loopback(&base))
            }
            _ => false,
        }
    }

    /// A call with the mailbox's token.
    pub(super) async fn call(
        &self,
        account: &MailboxAccess,
        method: Method,
        address: &str,
        content: GraphContent,
        patience: Patience,
    ) -> Result<GraphResponse, CallError> {
        let has_content = method == Method::POST;
        let request = self.request(account, method, address);
        let request = match content {
            // RFC 9110 §8.6: a request whose method anticipates content sends a Content-Length even if it is empty;
            // message-send requires it, and the HTTP client omits it.
            GraphContent::Nothing if has_content => request.header(CONTENT_LENGTH, 0),
            GraphContent::Nothing => request,
            GraphContent::Mime(base64) => request.header(CONTENT_TYPE, MIME).body(base64),
            GraphContent::Json(value) => request.json(&value),
        };
        finish(request, patience).await
    }

    /// Sends a MIME message in base64; its last piece is sent only after `permit` allows it.
    pub(super) async fn send_mime(
        &self,
        account: &MailboxAccess,
        address: &str,
        base64: String,
        patience: Patience,
        permit: &dyn SendPermit,
    ) -> Result<GraphResponse, CallError> {
        let limit = patience.left();
        let request = self
            .request(account, Method::POST, address)
            .header(CONTENT_TYPE, MIME)
            .timeout(limit);
        match withheld::WithheldContent::text(base64)
            .send(request, permit)
            .await
        {
            Ok(response) => Ok(answer_of(response).await),
            Err(Unanswered::Withheld(why)) => Err(CallError::Withheld(why)),
            Err(Unanswered::NotWhole(error)) => {
                Err(CallError::NotSent(failed(error, limit).to_string()))
            }
            Err(Unanswered::Broken(error)) => Err(failed(error, limit)),
        }
    }

    fn request(&self, account: &MailboxAccess, method: Method, address: &str) -> RequestBuilder {
        self.http
            .request(method, address)
            .bearer_auth(account.access_token.expose_secret())
            .header("accept", "application/json")
            .header("prefer", IMMUTABLE_IDS)
    }

    /// A GET request, with a header for the maximum page size.
    pub(super) async fn page(
        &self,
        account: &MailboxAccess,
        address: &str,
        entries: usize,
        patience: Patience,
    ) -> Result<GraphResponse, CallError> {
        let request = self
            .http
            .get(address)
            .bearer_auth(account.access_token.expose_secret())
            .header("accept", "application/json")
            .header(
                "prefer",
                format!("odata.maxpagesize={entries}, {IMMUTABLE_IDS}"),
            );
        finish(request, patience).await
    }

    /// The beginning of the content at a URL, `limit` bytes at most: a message in MIME.
    pub(super) async fn beginning(
        &self,
        account: &MailboxAccess,
        address: &str,
        limit: usize,
        patience: Patience,
    ) -> Result<GraphResponse, CallError> {
        let time = patience.left();
        let request = self
            .http
            .get(address)
            .bearer_auth(account.access_token.expose_secret())
            .header("prefer", IMMUTABLE_IDS)
            .timeout(time);
        let mut response = request.send().await.map_err(|error| failed(error, time))?;
        let (status, retry_after) = (response.status().as_u16(), retry_after(response.headers()));
        let mut body = Vec::new();
        while let Some(chunk) = (response.chunk().await).map_err(|error| failed(error, time))? {
            body.extend_from_slice(&chunk);
            if body.len() >= limit {
                body.truncate(limit);
                break;
            }
        }
        Ok(GraphResponse {
            status,
            retry_after,
            body,
        })
    }

    /// Uploads a piece of an attachment, without the token: the URL itself authorizes it.
    pub(super) async fn upload(
        &self,
        address: &str,
        range: String,
        piece: Bytes,
        patience: Patience,
    ) -> Result<GraphResponse, CallError> {
        let request = self
            .http
            .put(address)
            .header("content-type", "application/octet-stream")
            .header("content-range", range)
            .body(piece);
        finish(request, patience).await
    }
}

async fn finish(request: RequestBuilder, patience: Patience) -> Result<GraphResponse, CallError> {
    let limit = patience.left();
    let response = request
        .timeout(limit)
        .send()
        .await
        .map_err(|error| failed(error, limit))?;
    Ok(answer_of(response).await)
}

async fn answer_of(response: Response) -> GraphResponse {
    GraphResponse {
        status: response.status().as_u16(),
        retry_after: retry_after(response.headers()),
        body: read(response).await,
    }
}

/// The status is what matters, so a response that is cut off still counts.
async fn read(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > MAXIMUM_ANSWER {
            return Vec::new();
        }
    }
    body
}

fn failed(error: reqwest::Error, limit: Duration) -> CallError {
    let never_left = error.is_connect() || error.is_builder();
    let timed_out = error.is_timeout();
    let text = causes(error);
    if never_left {
        CallError::NotSent(format!("Microsoft Graph can't be reached: {text}"))
    } else if timed_out {
        CallError::Broken(format!(
            "Microsoft Graph did not answer within {} s",
            limit.as_secs()
        ))
    } else {
        CallError::Broken(format!("The connection to Microsoft Graph broke: {text}"))
    }
}

/// Retry-After, with a date taken relative to the response's own Date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let now = text(DATE).and_then(|date| DateTime::parse_from_rfc2822(date).ok());
    answer::retry_after(text(RETRY_AFTER)?, now.map(|now| now.to_utc()))
}

/// Text encoded for a path or a query, a space as `%20`.
pub(super) fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn times_to_wait() {
        const NOW: &str = "Wed, 21 Oct 2026 07:28:00 GMT";
        for (value, date, expected) in [
            ("17", None, Some(17)),
            (" 17 ", Some(NOW), Some(17)),
            ("Wed, 21 Oct 2026 07:30:00 GMT", Some(NOW), Some(120)),
            ("Wed, 21 Oct 2026 07:20:00 GMT", Some(NOW), None),
            ("Wed, 21 Oct 2026 07:30:00 GMT", None, None),
            ("99999999999", None, Some(86_400)),
            ("-1", None, None),
            ("soon", Some(NOW), None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            if let Some(date) = date {
                headers.insert(DATE, date.parse().unwrap());
            }
            let wait = retry_after(&headers).map(|wait| wait.as_secs());
            assert_eq!(wait, expected, "{value} {date:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn where_tokens_and_attachments_may_go() {
        drop(rustls::crypto::ring::default_provider().install_default());
        let real = Api::new(Client::new(), "https://graph.microsoft.com");
        let local = Api::new(Client::new(), "http://127.0.0.1:9000");
        for (address, own, upload, local_own, local_upload) in [
            (
                "https://graph.microsoft.com/v1.0/x",
                true,
                true,
                false,
                true,
            ),
            (
                "https://graph.microsoft.com:443/v1.0/x",
                true,
                true,
                false,
                true,
            ),
            (
                "http://graph.microsoft.com/v1.0/x",
                false,
                false,
                false,
                false,
            ),
            (
                "https://graph.microsoft.com:444/x",
                false,
                true,
                false,
                true,
            ),
            (
                "https://graph.microsoft.com.example/x",
                false,
                true,
                false,
                true,
            ),
            ("https://u@graph.microsoft.com/x", false, true, false, true),
            ("https://outlook.office.com/x", false, true, false, true),
            ("http://127.0.0.1:9000/x", false, false, true, true),
            ("http://127.0.0.1:9001/x", false, false, false, true),
            ("http://localhost/x", false, false, false, true),
            ("file:///etc/passwd", false, false, false, false),
            ("/v1.0/x", false, false, false, false),
        ] {
            assert_eq!(real.is_own(address), own, "{address}");
            assert_eq!(real.may_upload_to(address), upload, "{address}");
            assert_eq!(local.is_own(address), local_own, "{address}");
            assert_eq!(local.may_upload_to(address), local_upload, "{address}");
        }
    }

    #[test]
    fn pieces_of_addresses() {
        assert_eq!(encoded("AAMk/x+y== z'"), "AAMk%2Fx%2By%3D%3D%20z%27");
    }
}
