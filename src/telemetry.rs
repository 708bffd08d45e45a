//! Log lines and metrics.

pub mod addresses;
pub mod metrics;
pub mod throttle;

use std::io::IsTerminal;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use self::addresses::Hashing;
use crate::config::{LogAddresses, LogFormat, Settings};
use crate::types::seal::AddressHash;

/// Sends log lines to standard error, so that standard output stays a command's own. Addresses in them are
/// hashed where there is a hash for them.
///
/// The first call of a process counts; tests may call it as often as they like.
pub fn start_logging(format: LogFormat, filter: &str, addresses: Option<AddressHash>) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let writer = match addresses {
        None => BoxMakeWriter::new(std::io::stderr),
        Some(hash) => BoxMakeWriter::new(Hashing::new(std::io::stderr, hash)),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match format {
        LogFormat::Pretty => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    // A second start finds the first one's settings in force, which is as good.
    drop(started);
}

/// What log lines are written with, by the settings.
pub fn start_logging_by(settings: &Settings) {
    let hash = match settings.log_addresses {
        LogAddresses::Plain => None,
        LogAddresses::Hashed => Some(settings.seal_keys.address_hash()),
    };
    start_logging(settings.log_format, &settings.log_filter, hash);
}

/// `GET /metrics` in Prometheus's text form.
pub fn metrics_router(handle: PrometheusHandle) -> Router {
    Router::new().route("/metrics", get(move || std::future::ready(handle.render())))
}
