//! HTTP requests to an ACME server: HTTPS only, no redirects, with limits on every wait and every response.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{Request, Response};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use rustls::ClientConfig;

use crate::answer::{no_answer, retry_after};
use crate::proxy;
use mailgate_types::clock::SharedClock;

/// How long one exchange may take.
const EXCHANGE: Duration = Duration::from_secs(30);

/// How long an unused connection is kept.
const IDLE: Duration = Duration::from_secs(15);

/// Largest answer: a chain has a few kilobytes.
const ANSWER: usize = 256 * 1024;

/// The client, and the clock for a Retry-After with a date.
#[derive(Debug, Clone)]
pub(super) struct Http {
    client: Client,
    clock: SharedClock,
}

/// The Retry-After of the server's last refusal.
#[derive(Debug, Default)]
pub(super) struct Pause(Mutex<Option<Duration>>);

impl Pause {
    /// Takes it: it applies to one refusal.
    pub(super) fn take(&self) -> Option<Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, wait: Option<Duration>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = wait;
    }
}

/// The client of one account, with the pause that its server asks for.
struct Watched {
    http: Http,
    pause: Arc<Pause>,
}

impl Http {
    pub(super) fn new(
        tls: &ClientConfig,
        directory_url: &str,
        clock: SharedClock,
    ) -> Result<Self, reqwest::Error> {
        let client = proxy::by_environment(Client::builder(), directory_url)
            .tls_backend_preconfigured(tls.clone())
            .https_only(true)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .timeout(EXCHANGE)
            .pool_idle_timeout(IDLE)
            .user_agent(concat!("mailgate/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { client, clock })
    }

    pub(super) fn watched(&self) -> (Box<dyn HttpClient>, Arc<Pause>) {
        let pause = Arc::new(Pause::default());
        let watched = Watched {
            http: self.clone(),
            pause: Arc::clone(&pause),
        };
        (Box::new(watched), pause)
    }
}

impl HttpClient for Watched {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let (http, pause) = (self.http.clone(), Arc::clone(&self.pause));
        Box::pin(async move {
            let exchanged = exchange(&http, request, &pause).await;
            exchanged.map_err(|reason| Error::Other(reason.into()))
        })
    }
}

async fn exchange(
    http: &Http,
    request: Request<BodyWrapper<Bytes>>,
    pause: &Pause,
) -> Result<BytesResponse, String> {
    let (parts, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => match error {},
    };
    let request =
        reqwest::Request::try_from(Request::from_parts(parts, body)).map_err(no_answer)?;
    let mut response = http.client.execute(request).await.map_err(no_answer)?;
    let mut content = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(no_answer)? {
        if content.len() + chunk.len() > ANSWER {
            return Err(format!("the answer is longer than {ANSWER} bytes"));
        }
        content.extend_from_slice(&chunk);
    }
    let is_refusal = response.status().as_u16() >= 400;
    let wait = response.headers().get(RETRY_AFTER);
    let wait = wait
        .and_then(|value| value.to_str().ok())
        .and_then(|value| retry_after(value, Some(http.clock.now())));
    pause.set(wait.filter(|_| is_refusal));
    let (mut parts, _) = Response::from(response).into_parts();
    replace_retry_after(&mut parts.headers, wait);
    Ok(BytesResponse {
        parts,
        body: Box::new(Bytes::from(content)),
    })
}

/// Replaces a `Retry-After` by its parsed, bounded value: instant-acme adds any number of seconds to the clock, and
/// panics if that overflows.
fn replace_retry_after(headers: &mut HeaderMap, read: Option<Duration>) {
    headers.remove(RETRY_AFTER);
    if let Some(wait) = read {
        headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_given_no_pause_that_overflows() {
        for (said, left) in [
            ("120", Some("120")),
            ("18446744073709551615", Some("86400")),
            ("99999999999999999999999", Some("86400")),
            ("soon", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(said));
            replace_retry_after(&mut headers, retry_after(said, None));
            let found = headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok());
            assert_eq!(found, left, "{said}");
        }
    }
}
