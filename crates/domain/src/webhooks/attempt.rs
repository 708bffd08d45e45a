//! One delivery attempt: sign, post, and derive from the response whether to retry.

use std::time::Instant;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use secrecy::SecretString;

use super::Webhooks;
use super::sign::SigningKeys;
use mailgate_providers::egress::EgressError;
use mailgate_types::ids::{SubscriberId, WebhookMessageId};

/// The outcome of one delivery attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The response status; `None` if there was no response.
    pub http_status: Option<u16>,
    /// The beginning of the response body, 16 KiB at most.
    pub response_body: String,
    /// How long it took.
    pub duration_ms: i64,
    /// Whether the receiver accepted it: 2xx.
    pub success: bool,
    /// Why it failed, in a sentence for the subscriber.
    pub error_message: Option<String>,
    /// The wait that the receiver asks for, if the attempt failed.
    pub retry_after: Option<std::time::Duration>,
    /// Whether no further attempt can succeed: the URL is refused, or the receiver answers 410 Gone.
    pub is_final: bool,
}

impl Webhooks {
    /// Signs and posts a body once, without recording the attempt.
    pub async fn attempt(
        &self,
        url: &str,
        secret: &SecretString,
        id: WebhookMessageId,
        body: Bytes,
    ) -> Attempt {
        match SigningKeys::new(secret) {
            Some(keys) => {
                let now = self.clock.now();
                self.attempt_with(None, url, &keys, id, now, body).await
            }
            None => Attempt::failed("the secret can't sign".to_owned(), 0, true),
        }
    }

    /// An attempt that begins `now`.
    pub(super) async fn attempt_with(
        &self,
        subscriber: Option<SubscriberId>,
        url: &str,
        keys: &SigningKeys,
        id: WebhookMessageId,
        now: DateTime<Utc>,
        body: Bytes,
    ) -> Attempt {
        let headers = keys.headers(id, now, &body);
        let began = Instant::now();
        let outcome = self.egress.post(subscriber, url, headers, body, now).await;
        let duration_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        match outcome {
            Ok(answer) => {
                let success = (200..300).contains(&answer.status);
                Attempt {
                    http_status: Some(answer.status),
                    response_body: answer.body,
                    duration_ms,
                    success,
                    error_message: (!success).then(|| refused_by_status(answer.status)),
                    retry_after: answer.retry_after.filter(|_| !success),
                    is_final: answer.status == 410,
                }
            }
            Err(error) => Attempt::failed(
                error.to_string(),
                duration_ms,
                matches!(error, EgressError::Refused(_)),
            ),
        }
    }
}

impl Attempt {
    /// An attempt that got no response.
    pub(super) fn failed(error: String, duration_ms: i64, is_final: bool) -> Self {
        Self {
            http_status: None,
            response_body: String::new(),
            duration_ms,
            success: false,
            error_message: Some(error),
            retry_after: None,
            is_final,
        }
    }
}

fn refused_by_status(status: u16) -> String {
    match status {
        300..=399 => {
            format!("the receiver answered with HTTP status {status}: redirects are not followed")
        }
        410 => "the receiver answered with HTTP status 410, so there are no further attempts"
            .to_owned(),
        _ => format!("the receiver answered with HTTP status {status}"),
    }
}
