//! Calls to the payment provider: form-encoded requests with an API key and JSON responses. Each is bounded in time; a
//! call that failed temporarily is retried with the same idempotency key.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::CONTENT_LENGTH;
use reqwest::{Client, Method};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::answer::{ProviderResponse, no_answer, one_line};
use crate::proxy;
use crate::tls::{self, ClientTlsError};
use mailgate_settings::PayprovSettings;
use mailgate_types::clock::SharedClock;

/// The largest response that is read: a hundred invoices with their lines.
const MAXIMUM_ANSWER: usize = 8 << 20;

/// Attempts before a call has failed, the first pause between them, and the longest pause that the provider may ask
/// for.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(400);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_mins(1);

/// Why a call to the provider failed.
#[derive(Debug, thiserror::Error)]
pub enum PayprovError {
    /// No response, or one that asks for a retry: the call may or may not have taken effect.
    #[error("the payment provider is unavailable: {reason}")]
    Unavailable {
        /// A description.
        reason: String,
        /// When it asks for a retry.
        retry_after: Option<Duration>,
    },
    /// It refused.
    #[error("the payment provider refuses ({status} {code}): {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Its error code, or empty.
        code: String,
        /// Its error message, for the log.
        message: String,
    },
    /// A malformed response.
    #[error("the payment provider's answer can't be read: {0}")]
    Nonsense(String),
}

impl PayprovError {
    /// Whether the provider reports that the object doesn't exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
            || matches!(self, Self::Refused { code, .. } if code == "resource_missing")
    }

    /// Whether the request has certainly had no effect and won't have one: the provider itself has refused it, with a
    /// code of its own. A proxy's response, a rejected API key, and a reused or contended idempotency key (which have
    /// no code) prove nothing about an earlier attempt that may still be in progress.
    #[must_use]
    pub const fn is_definite(&self) -> bool {
        match self {
            Self::Refused { status, code, .. } => {
                matches!(*status, 400 | 402 | 404) && !code.is_empty()
            }
            Self::Unavailable { .. } | Self::Nonsense(_) => false,
        }
    }

    /// The label used in metrics: never text chosen by the provider.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "away",
            Self::Refused { .. } => "refused",
            Self::Nonsense(_) => "nonsense",
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorAnswer {
    error: ErrorObject,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorObject {
    code: Option<String>,
    decline_code: Option<String>,
    message: Option<String>,
}

/// Why the client can't be created.
#[derive(Debug, thiserror::Error)]
pub enum PayprovClientError {
    /// TLS.
    #[error("payprov: {0}")]
    Tls(#[from] ClientTlsError),
    /// The HTTP client.
    #[error("payprov: the HTTP client can't be set up: {0}")]
    Http(#[from] reqwest::Error),
}

/// The payment provider.
#[derive(Debug)]
pub struct PayprovClient {
    http: Client,
    pub(super) settings: PayprovSettings,
    clock: SharedClock,
}

/// The fields of a form or a query.
pub(super) type Form = Vec<(String, String)>;

/// One field.
#[expect(clippy::needless_pass_by_value, reason = "a call reads better so")]
pub(super) fn field(name: &str, value: impl ToString) -> (String, String) {
    (name.to_owned(), value.to_string())
}

impl PayprovClient {
    /// Creates a client for the provider in these settings.
    pub fn new(settings: &PayprovSettings, clock: SharedClock) -> Result<Self, PayprovClientError> {
        let tls = tls::client(None)?;
        let http = proxy::by_environment(Client::builder(), &settings.base_url)
            .tls_backend_preconfigured(tls.as_ref().clone())
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(settings.request)
            .pool_idle_timeout(IDLE)
            .user_agent(concat!("mailgate/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self {
            http,
            settings: settings.clone(),
            clock,
        })
    }

    /// The provider's id of the price of one connected mailbox.
    #[must_use]
    pub fn price(&self) -> &str {
        &self.settings.price
    }

    /// Longest duration of one call, with all its attempts and pauses.
    #[must_use]
    pub fn patience(&self) -> Duration {
        (self.settings.request + LONGEST_PAUSE) * ATTEMPTS
    }

    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(String, String)],
    ) -> Result<T, PayprovError> {
        self.call(&Method::GET, path, query, None).await
    }

    /// `key` makes all attempts take effect only once.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        form: &[(String, String)],
        key: &str,
    ) -> Result<T, PayprovError> {
        self.call(&Method::POST, path, form, Some(key)).await
    }

    pub(super) async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, PayprovError> {
        self.call(&Method::DELETE, path, &[], None).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: &Method,
        path: &str,
        fields: &[(String, String)],
        key: Option<&str>,
    ) -> Result<T, PayprovError> {
        let mut pause = PAUSE;
        for attempt in 1.. {
            let error = match self.attempt(method, path, fields, key).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            metrics::counter!("mailgate_payprov_failures_total", "reason" => error.reason())
                .increment(1);
            match error {
                PayprovError::Unavailable { retry_after, .. } if attempt < ATTEMPTS => {
                    // Give up for now if the provider asks for a longer pause.
                    let wait = retry_after.map_or(pause, |asked| asked.max(pause));
                    if wait > LONGEST_PAUSE {
                        return Err(error);
                    }
                    tokio::time::sleep(wait).await;
                    pause *= 2;
                }
                error => return Err(error),
            }
        }
        Err(PayprovError::Nonsense("there was no attempt".to_owned()))
    }

    async fn attempt<T: DeserializeOwned>(
        &self,
        method: &Method,
        path: &str,
        fields: &[(String, String)],
        key: Option<&str>,
    ) -> Result<T, PayprovError> {
        let url = format!("{}/v1/{path}", self.settings.base_url);
        let mut request = self
            .http
            .request(method.clone(), url)
            .timeout(self.settings.request)
            .bearer_auth(self.settings.secret_key.expose_secret())
            .header("stripe-version", &self.settings.api_version);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        request = if *method == Method::POST && fields.is_empty() {
            // RFC 9110 §8.6: servers may reject a POST without a Content-Length (411).
            request.header(CONTENT_LENGTH, 0)
        } else if *method == Method::POST {
            request.form(fields)
        } else {
            request.query(fields)
        };
        let response = request
            .send()
            .await
            .map_err(|error| PayprovError::Unavailable {
                reason: no_answer(error),
                retry_after: None,
            })?;
        let should_retry = response
            .headers()
            .get("stripe-should-retry")
            .and_then(|value| value.to_str().ok())
            .map(|value| value == "true");
        let now: DateTime<Utc> = self.clock.now();
        let answer = ProviderResponse::read(response, MAXIMUM_ANSWER, now).await;
        if (200..300).contains(&answer.status) {
            if answer.body.is_null() {
                // The response was cut off: a retry with the same key returns it again.
                return Err(PayprovError::Unavailable {
                    reason: "the response was cut off, or isn't valid JSON".to_owned(),
                    retry_after: None,
                });
            }
            return serde_json::from_value(answer.body)
                .map_err(|error| PayprovError::Nonsense(one_line(&error.to_string())));
        }
        Err(refusal(answer, should_retry))
    }
}

/// The error for a response that isn't a success.
fn refusal(answer: ProviderResponse, should_retry: Option<bool>) -> PayprovError {
    let ErrorAnswer { error } = serde_json::from_value(answer.body).unwrap_or_default();
    let code = error.code.clone().unwrap_or_default();
    let is_passing = match answer.status {
        // Another call holds the object, or the same key is in flight: the provider's own libraries retry after every
        // 409. A key that was used for another request is a 400.
        409 | 429 | 500.. => true,
        // Stripe also reports lock_timeout with a 400.
        _ => code == "lock_timeout",
    };
    if should_retry.unwrap_or(is_passing) {
        return PayprovError::Unavailable {
            reason: format!("it answers {} {}", answer.status, one_line(&code)),
            retry_after: answer.retry_after,
        };
    }
    PayprovError::Refused {
        status: answer.status,
        code: one_line(&error.decline_code.or(error.code).unwrap_or_default()),
        message: one_line(&error.message.unwrap_or_default()),
    }
}

/// The error for a response that isn't a success.
#[cfg(test)]
pub(crate) fn error_on(
    status: u16,
    body: serde_json::Value,
    should_retry: Option<bool>,
) -> PayprovError {
    let answer = ProviderResponse {
        status,
        retry_after: None,
        body,
        is_too_long: false,
    };
    refusal(answer, should_retry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn refused(status: u16, body: Value, should_retry: Option<bool>) -> PayprovError {
        let retry_after = Some(Duration::from_secs(7));
        let answer = ProviderResponse {
            status,
            retry_after,
            body,
            is_too_long: false,
        };
        refusal(answer, should_retry)
    }

    #[test]
    fn what_passes_is_tried_again() {
        for (status, body, should_retry) in [
            (500, Value::Null, None),
            (503, json!("<html>"), None),
            (429, json!({ "error": { "code": "rate_limit" } }), None),
            (
                409,
                json!({ "error": { "type": "invalid_request_error", "code": "lock_timeout" } }),
                None,
            ),
            (
                409,
                json!({ "error": { "type": "idempotency_error", "code": "idempotency_key_in_use" } }),
                None,
            ),
            (400, json!({ "error": { "code": "lock_timeout" } }), None),
            (402, Value::Null, Some(true)),
        ] {
            let error = refused(status, body, should_retry);
            let PayprovError::Unavailable { retry_after, .. } = error else {
                panic!("{status}: {error}");
            };
            assert_eq!(retry_after, Some(Duration::from_secs(7)));
        }
    }

    #[test]
    fn what_is_refused_is_told() {
        for (status, body, should_retry, expected) in [
            (
                402,
                json!({ "error": { "code": "card_declined", "decline_code": "insufficient_funds" } }),
                None,
                "insufficient_funds",
            ),
            (401, Value::Null, None, ""),
            (400, json!({ "error": "odd" }), None, ""),
            (
                400,
                json!({ "error": { "type": "idempotency_error" } }),
                None,
                "",
            ),
            (500, json!({ "error": { "code": "x" } }), Some(false), "x"),
            (
                404,
                json!({ "error": { "code": "resource_missing" } }),
                None,
                "resource_missing",
            ),
        ] {
            let error = refused(status, body, should_retry);
            assert_eq!(error.is_missing(), status == 404);
            let PayprovError::Refused { code, .. } = error else {
                panic!("{status}: {error}");
            };
            assert_eq!(code, expected);
        }
    }

    #[test]
    fn only_what_the_provider_itself_refuses_is_definite() {
        let coded = json!({ "error": { "type": "card_error", "code": "card_declined" } });
        let reused = json!({ "error": { "type": "idempotency_error" } });
        for (status, body, expected) in [
            (400, &coded, true),
            (402, &coded, true),
            (404, &coded, true),
            // A rejected API key, a proxy, a key in use, a key that was used for another request.
            (401, &coded, false),
            (403, &coded, false),
            (404, &Value::Null, false),
            (408, &coded, false),
            (409, &coded, false),
            (400, &reused, false),
            (413, &Value::Null, false),
            (500, &coded, false),
        ] {
            let error = refused(status, body.clone(), Some(false));
            assert_eq!(error.is_definite(), expected, "{status} {body}");
        }
        assert!(!refused(400, coded, Some(true)).is_definite());
        assert!(!PayprovError::Nonsense(String::new()).is_definite());
    }
}
