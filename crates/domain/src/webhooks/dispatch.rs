//! Delivers queued messages: leases ready deliveries, serves the endpoints in turn, and hands the outcomes to the
//! recorder.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::TimeDelta;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::arrivals::ahead;
use super::backoff::wait_after;
use super::claim::{Claimer, Ready, Seen};
use super::full_scan::{FullScan, Step};
use super::lanes::Lanes;
use super::ready_set::ReadySet;
use super::recorder::recorder;
use super::sign::SigningKeys;
use super::{Attempt, Webhooks, secret_context};
use mailgate_storage::database::outage::trouble;
use mailgate_storage::signing_secrets::SealedSecrets;
use mailgate_storage::webhook_queue::claim::Wanted;
use mailgate_storage::webhook_queue::{self, Attempted, Claimed};
use mailgate_types::ids::{EndpointId, WebhookDeliveryId, WebhookMessageId};

/// How often to poll, for retries that are due and for rows whose announcement was missed.
const POLL: Duration = Duration::from_secs(1);

/// The largest number of deliveries leased per claim, and of endpoints.
const CLAIM: usize = 1_024;
const ENDPOINTS: usize = 512;

/// With this many deliveries in flight, polls are spaced out so that each one gathers more.
const BUSY: usize = 16;
const GATHER: Duration = Duration::from_millis(10);

/// Ended deliveries received per wakeup.
const ENDINGS: usize = 256;

/// Signing keys kept in memory.
const KEYS: usize = 10_000;

/// How much longer than an exchange a lease must last when the exchange begins: the recorder needs time too, and
/// clocks differ.
const MARGIN: Duration = Duration::from_secs(15);

type Looking = Pin<Box<dyn Future<Output = (Claimer, Result<Seen, sqlx::Error>)> + Send>>;
type Scanning = Pin<Box<dyn Future<Output = Step> + Send>>;

/// Reports the end of a delivery to its lane. It reports on drop, however the delivery ended.
struct LaneSlot {
    ended: mpsc::Sender<Ended>,
    endpoint: EndpointId,
    success: bool,
    began: Instant,
}

struct Ended {
    endpoint: EndpointId,
    success: bool,
    took: Duration,
}

impl Drop for LaneSlot {
    fn drop(&mut self) {
        // The channel has room for all deliveries in flight.
        let _ = self.ended.try_send(Ended {
            endpoint: self.endpoint,
            success: self.success,
            took: self.began.elapsed(),
        });
    }
}

impl Webhooks {
    /// Makes the dispatcher poll the queue soon.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Delivers until `stop`, then finishes deliveries in flight and releases the others. Attempts run on `tracker`.
    pub async fn dispatch(self, tracker: TaskTracker, stop: CancellationToken) {
        let concurrency = self.settings.concurrency;
        let (attempts, recorder) = recorder(self.pool.clone(), concurrency.max(512));
        tracker.spawn(recorder.run());
        let (ended, endings) = mpsc::channel(concurrency);
        let dispatcher = Dispatcher {
            lanes: Lanes::new(concurrency, self.settings.endpoint_concurrency),
            ready: ReadySet::default(),
            full_scan: FullScan::new(&self),
            keys: HashMap::new(),
            webhooks: self,
            tracker,
            attempts,
            ended,
        };
        dispatcher.run(endings, stop).await;
    }

    /// How long a lease must still last when its exchange begins.
    fn shortest_lease(&self) -> Duration {
        self.settings.exchange + MARGIN
    }

    /// How long leases last: deliveries also wait for a place while leased.
    pub(super) fn lease(&self) -> Duration {
        self.shortest_lease() * 2
    }
}

struct Dispatcher {
    webhooks: Webhooks,
    lanes: Lanes<Ready>,
    /// The endpoints that have something in the queue.
    ready: ReadySet,
    full_scan: FullScan,
    /// Signing keys by endpoint, so that each secret is unsealed once.
    keys: HashMap<EndpointId, (SealedSecrets, SigningKeys)>,
    tracker: TaskTracker,
    attempts: mpsc::Sender<Attempted>,
    ended: mpsc::Sender<Ended>,
}

impl Dispatcher {
    async fn run(mut self, mut endings: mpsc::Receiver<Ended>, stop: CancellationToken) {
        let wake = Arc::clone(&self.webhooks.wake);
        let mut tick = interval(POLL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut idle = Some(Claimer::new(&self.webhooks));
        let mut looking: Option<Looking> = None;
        let mut scanning: Option<Scanning> = None;
        let mut look = true;
        let mut ended = Vec::new();
        let mut looked_at = Instant::now();
        while !stop.is_cancelled() {
            let busy = self.lanes.in_flight() >= BUSY;
            if look
                && self.lanes.room() > 0
                && (!busy || looked_at.elapsed() >= GATHER)
                && let Some(claimer) = idle.take()
            {
                look = false;
                looked_at = Instant::now();
                looking = Some(Box::pin(claimer.arrived()));
            }
            if scanning.is_none() {
                scanning = self.full_scan.next(self.ready.room());
            }
            tokio::select! {
                () = stop.cancelled() => {}
                _ = endings.recv_many(&mut ended, ENDINGS) => {
                    for Ended { endpoint, success, took } in ended.drain(..) {
                        look |= self.lanes.end(endpoint, success, took);
                    }
                }
                (idle_again, seen) = step(&mut looking) => {
                    looking = None;
                    match seen {
                        Ok(Seen::Arrived { arrived, has_more, has_gap }) => {
                            look |= has_more;
                            let wanted = self.arrived(&arrived, has_gap);
                            if wanted.is_empty() {
                                idle = Some(idle_again);
                            } else {
                                looking = Some(Box::pin(idle_again.claim(wanted)));
                            }
                        }
                        Ok(Seen::Leased { claimed, bodies, left }) => {
                            idle = Some(idle_again);
                            // Keep polling until nothing is left.
                            look |= !claimed.is_empty();
                            for (wanted, left) in left {
                                look |= self.ready.finish(&wanted, left);
                            }
                            self.take(claimed, &bodies);
                        }
                        Err(error) => {
                            trouble!(error, error, "due webhooks can't be read");
                            idle = Some(idle_again);
                            self.full_scan.hurry();
                        }
                    }
                }
                scanned = step(&mut scanning) => {
                    scanning = None;
                    self.full_scan.take(scanned, &mut self.ready);
                    look = true;
                }
                () = wake.notified() => look = true,
                // Time for a postponed poll.
                () = tokio::time::sleep(GATHER), if look && looking.is_none() => {}
                _ = tick.tick() => {
                    look = true;
                    self.look_after();
                }
            }
            self.start();
        }
        // Release deliveries that a running poll leases, rather than let the leases expire.
        if let Some(looking) = looking
            && let (
                _,
                Ok(Seen::Leased {
                    claimed, bodies, ..
                }),
            ) = looking.await
        {
            self.take(claimed, &bodies);
        }
        self.finish(endings).await;
    }

    /// Adds newly ready deliveries; returns the next claim.
    fn arrived(&mut self, arrived: &[webhook_queue::ready::Ready], has_gap: bool) -> Vec<Wanted> {
        let mut is_missing = has_gap;
        for ready in arrived {
            is_missing |= !self.ready.admit(*ready);
        }
        if is_missing {
            self.full_scan.hurry();
        }
        let ahead = ahead(self.webhooks.clock.now());
        let endpoints = self.ready.next(ENDPOINTS);
        let places = self.lanes.share_out(&endpoints, CLAIM);
        let wanted = places.into_iter();
        let wanted =
            wanted.filter_map(|(endpoint, number)| self.ready.wanted(endpoint, number, ahead));
        wanted.collect()
    }

    fn take(&mut self, claimed: Vec<Claimed>, bodies: &HashMap<WebhookMessageId, Bytes>) {
        for claimed in claimed {
            let body = bodies.get(&claimed.message).cloned();
            let keys = self.keys(&claimed);
            self.lanes.push(
                claimed.endpoint,
                claimed.subscriber,
                Ready {
                    claimed,
                    body,
                    keys,
                },
            );
        }
    }

    fn keys(&mut self, claimed: &Claimed) -> Option<SigningKeys> {
        if let Some((secrets, keys)) = self.keys.get(&claimed.endpoint)
            && *secrets == claimed.secrets
        {
            return Some(keys.clone());
        }
        let context = secret_context(claimed.app, claimed.endpoint);
        let keys = SigningKeys::unseal(&self.webhooks.seal_keys, &context, &claimed.secrets)?;
        let known = (claimed.secrets.clone(), keys.clone());
        self.keys.insert(claimed.endpoint, known);
        Some(keys)
    }

    fn start(&mut self) {
        while let Some(ready) = self.lanes.start() {
            let place = LaneSlot {
                ended: self.ended.clone(),
                endpoint: ready.claimed.endpoint,
                success: false,
                began: Instant::now(),
            };
            let (webhooks, attempts) = (self.webhooks.clone(), self.attempts.clone());
            self.tracker
                .spawn(async move { deliver(webhooks, ready, place, attempts).await });
        }
    }

    /// Periodic housekeeping.
    fn look_after(&mut self) {
        let until = Instant::now() + self.webhooks.shortest_lease();
        let short = self.lanes.take_short(until);
        if !short.is_empty() {
            self.tracker.spawn(self.webhooks.clone().release(short));
        }
        self.lanes.forget_idle();
        if self.keys.len() > KEYS {
            self.keys.clear();
        }
    }

    async fn finish(mut self, mut endings: mpsc::Receiver<Ended>) {
        self.webhooks
            .clone()
            .release(self.lanes.take_waiting())
            .await;
        while self.lanes.in_flight() > 0 {
            let Some(Ended { endpoint, .. }) = endings.recv().await else {
                return;
            };
            self.lanes.end(endpoint, true, Duration::ZERO);
        }
    }
}

/// The end of a running step; pending for ever if none is running.
async fn step<T>(running: &mut Option<Pin<Box<dyn Future<Output = T> + Send>>>) -> T {
    match running {
        Some(running) => running.await,
        None => std::future::pending().await,
    }
}

fn report(attempted: &Attempted) {
    let outcome = match (attempted.success, attempted.next_at) {
        (true, _) => "delivered",
        (false, Some(_)) => "failed",
        (false, None) => "given_up",
    };
    let took = Duration::from_millis(u64::try_from(attempted.duration_ms).unwrap_or(0));
    metrics::counter!("mailgate_webhook_attempts_total", "outcome" => outcome).increment(1);
    if outcome == "given_up" {
        let claimed = &attempted.claimed;
        tracing::warn!(
            message_id = %claimed.message,
            app_id = %claimed.app,
            webhook_id = claimed.endpoint.config(claimed.app).map(tracing::field::display),
            log_id = claimed.log.map(tracing::field::display),
            event = claimed.event,
            attempts = claimed.attempts.saturating_add(1),
            http_status = attempted.http_status,
            error = attempted.error_message,
            "a webhook is given up"
        );
    }
    metrics::histogram!("mailgate_webhook_seconds", "outcome" => outcome).record(took);
}

/// Attempts one delivery and hands its outcome to the recorder.
async fn deliver(
    webhooks: Webhooks,
    ready: Ready,
    mut place: LaneSlot,
    attempts: mpsc::Sender<Attempted>,
) {
    let Ready {
        claimed,
        body,
        keys,
    } = ready;
    let began_at = webhooks.clock.now();
    let attempt = match (body, keys) {
        (Some(body), Some(keys)) => {
            webhooks
                .attempt_with(
                    claimed.subscriber,
                    &claimed.url,
                    &keys,
                    claimed.message,
                    began_at,
                    body,
                )
                .await
        }
        (None, _) => Attempt::failed("the message is no longer kept".to_owned(), 0, true),
        (_, None) => Attempt::failed("the secret can't be read".to_owned(), 0, false),
    };
    place.success = attempt.success;
    let number = claimed.attempts.saturating_add(1);
    let wait = wait_after(&attempt, number, &webhooks.settings.retry, rand::random());
    let next_at = wait
        .and_then(|wait| TimeDelta::from_std(wait).ok())
        .map(|wait| webhooks.clock.now() + wait);
    let attempted = Attempted {
        claimed,
        id: WebhookDeliveryId::at(began_at),
        began_at,
        duration_ms: attempt.duration_ms,
        http_status: attempt.http_status,
        response_body: attempt.response_body,
        success: attempt.success,
        error_message: attempt.error_message,
        next_at,
    };
    report(&attempted);
    // The recorder outlives all attempts; if it is behind, they wait for it.
    let _ = attempts.send(attempted).await;
}
