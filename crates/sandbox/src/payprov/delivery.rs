//! Delivers signed events to the receiver until it accepts them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::json;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;

use super::PaymentProvider;
use mailgate_types::hex::hex;

/// How often due events are checked for and the passage of time is applied.
const TICK: Duration = Duration::from_millis(500);

/// Time limit for the receiver's response.
const ANSWER: Duration = Duration::from_secs(15);

/// The pauses between attempts; the last one is repeated.
const PAUSES: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
    Duration::from_mins(1),
];

/// Whether events are delivered automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryMode {
    /// Immediately, one after the other; failed deliveries are retried.
    #[default]
    Automatic,
    /// On request, in any order.
    ByHand,
}

/// Why an event was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// There is no such event, or it is no longer kept.
    #[error("there is no such event")]
    NoSuchEvent,
    /// No receiver is configured.
    #[error("no receiver is configured yet")]
    NoReceiver,
    /// The receiver could not be reached.
    #[error("the receiver can't be reached: {0}")]
    Http(#[from] reqwest::Error),
    /// The receiver's error status.
    #[error("the receiver answers {0}")]
    Refused(u16),
}

/// The state of deliveries outside the ledger.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    receiver: Option<String>,
    mode: DeliveryMode,
    /// The failed attempts of an event, and when the next one is due.
    attempts: HashMap<String, (usize, Instant)>,
}

impl Deliveries {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_receiver(&self, url: &str) {
        self.with(|state| {
            state.receiver = Some(url.to_owned());
            state.attempts.clear();
        });
    }

    pub(super) fn set_mode(&self, mode: DeliveryMode) {
        self.with(|state| state.mode = mode);
    }

    pub(super) fn receiver(&self) -> Option<String> {
        self.with(|state| state.receiver.clone())
    }

    fn is_automatic(&self) -> bool {
        self.with(|state| state.mode == DeliveryMode::Automatic && state.receiver.is_some())
    }

    fn is_due(&self, event: &str) -> bool {
        let now = Instant::now();
        self.with(|state| state.attempts.get(event).is_none_or(|(_, due)| *due <= now))
    }

    fn failed(&self, event: &str) {
        self.with(|state| {
            let attempt = state.attempts.entry(event.to_owned());
            let (attempts, due) = attempt.or_insert((0, Instant::now()));
            let pause = PAUSES[(*attempts).min(PAUSES.len() - 1)];
            *attempts += 1;
            *due = Instant::now() + pause;
        });
    }

    fn taken(&self, event: &str) {
        self.with(|state| state.attempts.remove(event));
    }
}

/// The `Stripe-Signature` header of a body.
#[must_use]
pub fn signature(secret: &str, timestamp: i64, body: &str) -> String {
    let signed = format!("{timestamp}.{body}");
    // HMAC takes keys of any length.
    let digest = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map(|mut mac| {
        mac.update(signed.as_bytes());
        mac.finalize().into_bytes()
    });
    let digest = digest.map(|digest| hex(&digest)).unwrap_or_default();
    format!("t={timestamp},v1={digest}")
}

impl PaymentProvider {
    /// Advances time and delivers until `stop`.
    pub(super) async fn run(self, stop: CancellationToken) {
        loop {
            self.look().await;
            if self.shared.deliveries.is_automatic() {
                tokio::select! {
                    () = self.deliver_due() => {}
                    () = stop.cancelled() => return,
                }
            }
            tokio::select! {
                () = tokio::time::sleep(TICK) => {}
                () = self.shared.happened.notified() => {}
                () = stop.cancelled() => return,
            }
        }
    }

    async fn deliver_due(&self) {
        for id in self.waiting_events() {
            if !self.shared.deliveries.is_due(&id) {
                continue;
            }
            if let Err(error) = self.deliver(&id).await {
                self.shared.deliveries.failed(&id);
                tracing::debug!(event_id = %id, %error, "the sandbox's event was not taken yet");
            }
        }
    }

    /// The ids of the events that the receiver has not accepted yet, oldest first.
    #[must_use]
    pub fn waiting_events(&self) -> Vec<String> {
        self.read(|ledger| ledger.waiting.iter().cloned().collect())
    }

    /// Delivers an event immediately, whether or not it was accepted before.
    ///
    /// # Errors
    ///
    /// [`DeliveryError`] if it was not accepted.
    pub async fn deliver(&self, id: &str) -> Result<(), DeliveryError> {
        let body = self
            .read(|ledger| ledger.event(id).map(|event| json!(event).to_string()))
            .ok_or(DeliveryError::NoSuchEvent);
        let body = match body {
            Ok(body) => body,
            Err(error) => {
                // It is no longer kept, so it no longer waits.
                self.settle_event(id).await;
                return Err(error);
            }
        };
        let shared = &self.shared;
        let receiver = shared.deliveries.receiver();
        let receiver = receiver.ok_or(DeliveryError::NoReceiver)?;
        let secret = shared.settings.webhook_secret.expose_secret();
        let now = self.now();
        let response = shared
            .http
            .post(receiver)
            .header("stripe-signature", signature(secret, now, &body))
            .header("content-type", "application/json; charset=utf-8")
            .timeout(ANSWER)
            .body(body)
            .send()
            .await?;
        if !response.status().is_success() {
            return Err(DeliveryError::Refused(response.status().as_u16()));
        }
        self.settle_event(id).await;
        Ok(())
    }

    async fn settle_event(&self, id: &str) {
        self.shared.deliveries.taken(id);
        self.change(|ledger, _| ledger.waiting.retain(|waiting| waiting != id))
            .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_that_another_program_has_made() {
        // printf '%s' '1492774577.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_test
        assert_eq!(
            signature("whsec_test", 1_492_774_577, r#"{"id":"evt_1"}"#),
            "t=1492774577,v1=7656fc2882a7ca0a651666b36bf2f2f22ee204f54f608f227498a2419f2890b2"
        );
    }
}
