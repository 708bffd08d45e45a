//! Requests that create a subscription, as they fail: some arrive when nobody waits for them any more, others are
//! answered with an error that the provider keeps for their idempotency key (as Stripe does with a 500).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};

use super::{Held, PayprovProxy};

/// What becomes of them.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    #[default]
    Pass,
    /// They are kept, and their callers hear of a failure.
    Detain,
    /// They fail at the provider.
    Break,
}

#[derive(Default)]
pub(super) struct Creations {
    mode: Mutex<Mode>,
    detained: Mutex<Vec<Late>>,
    /// The keys that an error is kept for.
    broken: Mutex<BTreeSet<String>>,
    held: Mutex<Option<Arc<Held>>>,
}

/// A request that is still on its way.
pub struct Late {
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl Creations {
    /// What a request is answered that goes no further.
    pub(super) fn stop(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Option<StatusCode> {
        if !is_one(method, uri) {
            return None;
        }
        let key = headers["idempotency-key"].to_str().unwrap().to_owned();
        match *self.mode.lock().unwrap() {
            Mode::Pass => {}
            Mode::Detain => {
                self.detained.lock().unwrap().push(Late {
                    uri: uri.clone(),
                    headers: headers.clone(),
                    body: body.clone(),
                });
                return Some(StatusCode::BAD_GATEWAY);
            }
            Mode::Break => {
                self.broken.lock().unwrap().insert(key.clone());
            }
        }
        let is_broken = self.broken.lock().unwrap().contains(&key);
        is_broken.then_some(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns once a request may go on.
    pub(super) async fn hold(&self, method: &Method, uri: &Uri) {
        let held = if is_one(method, uri) {
            self.held.lock().unwrap().take()
        } else {
            None
        };
        if let Some(held) = held {
            held.reached.notify_one();
            held.released.notified().await;
        }
    }
}

fn is_one(method: &Method, uri: &Uri) -> bool {
    *method == Method::POST && uri.path().ends_with("/v1/subscriptions")
}

impl PayprovProxy {
    /// Requests that create a subscription arrive late from now on.
    pub fn detain_creations(&self) {
        *self.shared.creations.mode.lock().unwrap() = Mode::Detain;
    }

    /// Holds the next one before the provider has it.
    pub fn hold_next_creation(&self) -> Arc<Held> {
        let held = Arc::new(Held::default());
        *self.shared.creations.held.lock().unwrap() = Some(Arc::clone(&held));
        held
    }

    /// They fail at the provider from now on.
    pub fn break_creations(&self) {
        *self.shared.creations.mode.lock().unwrap() = Mode::Break;
    }

    /// They pass from now on; returns those that were detained.
    pub fn pass_creations(&self) -> Vec<Late> {
        *self.shared.creations.mode.lock().unwrap() = Mode::Pass;
        std::mem::take(&mut self.shared.creations.detained.lock().unwrap())
    }

    /// A detained request arrives; returns what it is answered.
    pub async fn arrive(&self, late: Late) -> u16 {
        let upstream = self.shared.upstream.lock().unwrap().clone();
        let mut request = self
            .shared
            .http
            .post(format!("{upstream}{}", late.uri.path()));
        for name in [
            "authorization",
            "content-type",
            "idempotency-key",
            "stripe-version",
        ] {
            request = request.header(name, &late.headers[name]);
        }
        let answer = request.body(late.body).send().await.unwrap();
        answer.status().as_u16()
    }
}
