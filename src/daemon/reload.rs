//! SIGHUP: what can be changed while the gateway runs is read again, and what can't be is named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use toml::Table;

use crate::config::{self, ConfigError, Fingerprint};
use crate::telemetry;
use crate::workers;
use mailgate_server::tls::ServerCertificate;

/// The one setting that takes effect at once.
const FILTER: &str = "log.filter";

/// Takes the signal from its making on: it ends the process no more.
#[derive(Debug)]
pub struct Reload {
    hangup: Signal,
    file: Option<PathBuf>,
    /// The settings in force.
    in_force: Fingerprint,
}

impl Reload {
    /// For settings that were just read from this file and the environment.
    ///
    /// # Errors
    ///
    /// When the signal can't be listened to.
    pub fn new(file: Option<PathBuf>, in_force: Fingerprint) -> std::io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            file,
            in_force,
        })
    }

    /// Follows the signal until `stop`.
    pub async fn run(
        mut self,
        certificate: Option<Arc<ServerCertificate>>,
        stop: CancellationToken,
    ) {
        while let Some(Some(())) = stop.run_until_cancelled(self.hangup.recv()).await {
            if let Some(certificate) = &certificate {
                workers::look_at_certificate(certificate).await;
            }
            let file = self.file.clone();
            // A name to listen on may have to be looked up.
            let read = tokio::task::spawn_blocking(move || read(file.as_deref()));
            match read.await {
                Ok(Ok((filter, newer))) => self.take(&filter, &newer),
                Ok(Err(error)) => {
                    tracing::error!(%error, "SIGHUP: the settings can't be used; those before stay in force");
                }
                Err(error) => tracing::error!(%error, "SIGHUP: the settings were not read"),
            }
        }
    }

    fn take(&mut self, filter: &str, newer: &Fingerprint) {
        let mut changed = self.in_force.changed(newer);
        if changed.iter().any(|name| name == FILTER) {
            telemetry::set_filter(filter);
            self.in_force.adopt(newer, FILTER);
            changed.retain(|name| name != FILTER);
        }
        tracing::info!("SIGHUP: the certificate's files and log.filter are read again");
        if !changed.is_empty() {
            let settings = changed.join(", ");
            tracing::warn!(
                settings,
                "these settings have changed, and take effect at the next start"
            );
        }
    }
}

/// The filter, and all settings.
fn read(file: Option<&Path>) -> Result<(String, Fingerprint), ConfigError> {
    let settings = config::load(Table::new(), file, std::env::vars_os())?;
    let fingerprint = config::fingerprint(file, std::env::vars_os())?;
    Ok((settings.log.filter, fingerprint))
}
