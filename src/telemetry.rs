//! Log lines and metrics.

pub mod addresses;
pub mod lines;
pub mod metrics;
pub mod open_files;
pub mod process;
pub mod throttle;

use std::io::IsTerminal;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use self::addresses::Hashing;
use self::lines::SingleLines;
use crate::config::{LogAddresses, LogFormat, LogSettings};
use mailgate_types::seal::{AddressHash, SealKeys};

/// Writes log lines to standard error, one for each event, so that standard output is left to the command's own output.
/// Addresses in them are hashed if `addresses` is given.
///
/// Only the first call in a process has an effect; tests may call it as often as they like.
pub fn start_logging(format: LogFormat, filter: &str, addresses: Option<AddressHash>) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let writer = match addresses {
        None => BoxMakeWriter::new(SingleLines(std::io::stderr)),
        Some(hash) => BoxMakeWriter::new(SingleLines(Hashing::new(std::io::stderr, hash))),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match format {
        LogFormat::Pretty => builder.try_init(),
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            // It is in the list of spans already.
            .with_current_span(false)
            .try_init(),
    };
    // On a second call the first one's settings stay in force, which is fine.
    drop(started);
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
pub fn metrics_router(handle: PrometheusHandle) -> Router {
    let render = move || std::future::ready(handle.render() + &process::render());
    Router::new().route("/metrics", get(render))
}
