//! Log lines and metrics.

pub mod addresses;
pub mod lines;
pub mod memory;
pub mod metrics;
pub mod open_files;
pub mod process;
pub mod throttle;
pub mod top_subscribers;

use std::io::IsTerminal;
use std::sync::OnceLock;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use self::addresses::Hashing;
use self::lines::SingleLines;
use self::top_subscribers::TopSubscribers;
use mailgate_settings::{LogAddresses, LogFormat, LogSettings};
use mailgate_types::seal::{AddressHash, SealKeys};

/// Changes the filter of the log that was started.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Writes log lines to standard error, one per event; standard output is for the command's own output. Addresses in
/// them are hashed if `addresses` is given.
///
/// Only the first call in a process has an effect, so tests may call it repeatedly.
pub fn start_logging(format: LogFormat, filter: &str, addresses: Option<AddressHash>) {
    let (filter, handle) = reload::Layer::new(parse(filter));
    let writer = match addresses {
        None => BoxMakeWriter::new(SingleLines(std::io::stderr)),
        Some(hash) => BoxMakeWriter::new(SingleLines(Hashing::new(std::io::stderr, hash))),
    };
    let lines = fmt::layer()
        .with_writer(writer)
        .with_ansi(std::io::stderr().is_terminal());
    let lines = match format {
        LogFormat::Pretty => lines.boxed(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            // The list of spans includes it already.
            .with_current_span(false)
            .boxed(),
    };
    // On a second call the first one's settings stay in force.
    if tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init()
        .is_ok()
    {
        let _ = FILTER.set(handle);
    }
}

/// Replaces the log's filter.
pub fn set_filter(filter: &str) {
    if let Some(handle) = FILTER.get()
        && let Err(error) = handle.reload(parse(filter))
    {
        tracing::error!(%error, "the log's filter can't be changed");
    }
}

fn parse(filter: &str) -> EnvFilter {
    EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"))
}

/// Like [`start_logging`], with the settings; addresses are hashed with the sealing keys.
pub fn start_logging_by(settings: &LogSettings, seal_keys: &SealKeys) {
    let hash = match settings.addresses {
        LogAddresses::Plain => None,
        LogAddresses::Hashed => Some(seal_keys.address_hash()),
    };
    start_logging(settings.format, &settings.filter, hash);
}

/// `GET /metrics` in Prometheus's text format.
pub fn metrics_router(handle: PrometheusHandle, top: TopSubscribers) -> Router {
    let render = move || std::future::ready(handle.render() + &top.render() + &process::render());
    Router::new().route("/metrics", get(render))
}
