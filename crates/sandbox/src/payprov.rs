//! The sandbox's payment provider: customers, subscriptions with trials, invoices, and working and declined cards, with
//! the paths, parameters and objects of Stripe's API, its signed events, and pages for users. No money moves.
//!
//! This module has its settings, handle and routes. `api` serves the gateway, `lifecycle` applies time and payments,
//! `delivery` sends events, `pages` are for users, and `steering` and `faults` for tests. All state is one `ledger`,
//! saved as a whole after each change.

mod api;
mod customers;
mod delivery;
mod faults;
mod invoices;
mod ledger;
mod lifecycle;
mod objects;
mod pages;
mod parameters;
mod refusal;
mod sessions;
mod steering;
mod subscriptions;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn;
use axum::routing::{any, get, post};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Notify;
use toml::{Table, Value};

use self::delivery::Deliveries;
use self::faults::Faults;
use self::ledger::Ledger;
use crate::same_site;
use mailgate_server::shutdown::Shutdown;
use mailgate_types::clock::SharedClock;

pub use delivery::{DeliveryError, DeliveryMode, signature};
pub use faults::{Fault, FaultKind};
pub use steering::Action;

/// The key for its API, which is reached from this machine only, so the key need not be a secret.
pub const SECRET_KEY: &str = "sk_test_sandbox";

/// Signs its events; it need not be a secret either.
pub const WEBHOOK_SECRET: &str = "whsec_sandbox";

/// Largest accepted body, in bytes.
const BODY_MAX: usize = 256 * 1024;

/// The provider's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its base URL, ending in `/payprov`.
    pub address: String,
    /// The key for its API.
    pub secret_key: SecretString,
    /// Signs its events.
    pub webhook_secret: SecretString,
    /// The file for its state; `None`: it isn't saved.
    pub file: Option<PathBuf>,
    /// The time.
    pub clock: SharedClock,
}

/// The provider can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum PaymentProviderError {
    /// Its file.
    #[error("the sandbox's payments can't be read from {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Its HTTP client.
    #[error("the sandbox's events can't be sent: {0}")]
    Http(#[from] reqwest::Error),
}

/// The provider. Clones share one.
#[derive(Debug, Clone)]
pub struct PaymentProvider {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    ledger: Mutex<Ledger>,
    /// The state, and the file that holds it.
    saved: tokio::sync::Mutex<String>,
    /// The state has changed, and events may be due.
    happened: Notify,
    deliveries: Deliveries,
    faults: Faults,
    http: reqwest::Client,
}

impl PaymentProvider {
    /// Opens it with the state in its file. Blocks: it reads the file.
    ///
    /// # Errors
    ///
    /// The file can't be read or parsed.
    pub fn open(settings: Settings) -> Result<Self, PaymentProviderError> {
        let (mut ledger, saved) = match &settings.file {
            Some(path) => read(path).map_err(|source| PaymentProviderError::File {
                path: path.clone(),
                source,
            })?,
            None => (Ledger::default(), String::new()),
        };
        settings.address.clone_into(&mut ledger.address);
        // Its only receiver is on this machine.
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self {
            shared: Arc::new(Shared {
                settings,
                ledger: Mutex::new(ledger),
                saved: tokio::sync::Mutex::new(saved),
                happened: Notify::new(),
                deliveries: Deliveries::default(),
                faults: Faults::default(),
                http,
            }),
        })
    }

    /// Advances time and delivers events until shutdown.
    pub fn spawn(&self, shutdown: &Shutdown) {
        shutdown
            .tracker
            .spawn(self.clone().run(shutdown.soft.clone()));
    }

    /// `/payprov` and all paths below it.
    pub fn router(&self) -> Router {
        let for_people = Router::new()
            .route("/payprov", get(pages::overview::show))
            .route("/payprov/subscriptions/{id}", post(pages::overview::act))
            .route(
                "/payprov/checkout/{id}",
                get(pages::checkout::show).post(pages::checkout::enter),
            )
            .route(
                "/payprov/portal/{id}",
                get(pages::portal::show).post(pages::portal::act),
            )
            .route(
                "/payprov/invoices/{id}",
                get(pages::invoice::show).post(pages::invoice::pay),
            )
            .merge(steering::router())
            .layer(from_fn(same_site::guard));
        Router::new()
            .route("/payprov/v1/{*path}", any(api::answer))
            .merge(for_people)
            .layer(DefaultBodyLimit::max(BODY_MAX))
            .with_state(self.clone())
    }

    /// The section `payprov` in the settings of a gateway that uses it.
    #[must_use]
    pub fn section(&self) -> Table {
        let settings = &self.shared.settings;
        [
            ("base_url", settings.address.as_str()),
            ("secret_key", settings.secret_key.expose_secret()),
            ("webhook_secret", settings.webhook_secret.expose_secret()),
            ("price", subscriptions::PRICE),
        ]
        .into_iter()
        .map(|(name, text)| (name.to_owned(), Value::String(text.to_owned())))
        .collect()
    }

    /// The URL of its pages.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.shared.settings.address
    }

    /// Sets the receiver of events.
    pub fn tell(&self, url: &str) {
        self.shared.deliveries.set_receiver(url);
        self.shared.happened.notify_one();
    }

    /// Sets whether events are delivered automatically.
    pub fn set_delivery(&self, mode: DeliveryMode) {
        self.shared.deliveries.set_mode(mode);
        self.shared.happened.notify_one();
    }

    /// Adds a fault; `false` if too many are pending.
    #[must_use]
    pub fn add_fault(&self, fault: Fault) -> bool {
        self.shared.faults.add(fault)
    }

    /// Clears all faults.
    pub fn clear_faults(&self) {
        self.shared.faults.clear();
    }

    /// Its entire state.
    #[must_use]
    pub fn snapshot(&self) -> serde_json::Value {
        self.read(|ledger| serde_json::json!(ledger))
    }

    /// Advances time to now. Every change by time is an event, so nothing is saved without one.
    pub async fn look(&self) {
        let now = self.now();
        let newest = |ledger: &Ledger| ledger.events.back().map(|event| event.id.clone());
        let has_passed = {
            let mut ledger = self.ledger();
            let before = newest(&ledger);
            ledger.pass_time(now);
            newest(&ledger) != before
        };
        if has_passed {
            self.shared.happened.notify_one();
            self.save().await;
        }
    }

    fn now(&self) -> i64 {
        self.shared.settings.clock.now().timestamp()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        let ledger = self.shared.ledger.lock();
        ledger.unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, look: impl FnOnce(&Ledger) -> T) -> T {
        look(&self.ledger())
    }

    /// Advances time to now, and then changes the ledger; it is saved when this returns.
    async fn change<T>(&self, change: impl FnOnce(&mut Ledger, i64) -> T) -> T {
        let now = self.now();
        let (changed, is_told) = {
            let mut ledger = self.ledger();
            let before = ledger.waiting.len();
            ledger.forget_answers(now);
            ledger.pass_time(now);
            let changed = change(&mut ledger, now);
            (changed, ledger.waiting.len() <= before)
        };
        if !is_told {
            self.shared.happened.notify_one();
        }
        self.save().await;
        changed
    }

    /// Writers wait for each other, and each writes the latest state.
    async fn save(&self) {
        let Some(path) = self.shared.settings.file.clone() else {
            return;
        };
        let mut saved = self.shared.saved.lock().await;
        let text = self.read(serde_json::to_string);
        let Ok(text) = text else { return };
        if *saved == text {
            return;
        }
        let copy = text.clone();
        let written = tokio::task::spawn_blocking(move || write(&path, &copy)).await;
        match written.map_err(io::Error::from).and_then(|done| done) {
            Ok(()) => *saved = text,
            Err(error) => tracing::error!(%error, "the sandbox's payments can't be saved"),
        }
    }
}

fn read(path: &Path) -> io::Result<(Ledger, String)> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((serde_json::from_str(&text)?, text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok((Ledger::default(), String::new()))
        }
        Err(error) => Err(error),
    }
}

/// Writes the file atomically.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension("new");
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&temporary, text)?;
    std::fs::rename(&temporary, path)
}
