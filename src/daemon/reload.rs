//! SIGHUP: applies the settings that can change at runtime, and names those that can't.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use toml::Table;
use tracing::field::display;

use mailgate_server::tls::ServerCertificate;
use mailgate_settings::{Fingerprint, Settings};

/// The one setting that takes effect immediately.
const FILTER: &str = "log.filter";

/// Handles the signal once created: it no longer ends the process.
#[derive(Debug)]
pub struct Reload {
    hangup: Signal,
    file: Option<PathBuf>,
    /// The settings in force.
    in_force: Fingerprint,
}

impl Reload {
    /// Creates the handler for settings that were just read from this file and the environment.
    ///
    /// # Errors
    ///
    /// The signal handler can't be installed.
    pub fn new(file: Option<PathBuf>, in_force: Fingerprint) -> std::io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            file,
            in_force,
        })
    }

    /// Handles the signal until `stop`.
    pub async fn run(
        mut self,
        certificate: Option<Arc<ServerCertificate>>,
        stop: CancellationToken,
    ) {
        while let Some(Some(())) = stop.run_until_cancelled(self.hangup.recv()).await {
            if let Some(certificate) = &certificate {
                crate::certificates::reload::look(certificate).await;
            }
            let file = self.file.clone();
            // A listen address may need a DNS lookup.
            let read = tokio::task::spawn_blocking(move || {
                mailgate_settings::load(Table::new(), file.as_deref(), std::env::vars_os())
            });
            let Some(read) = stop.run_until_cancelled(read).await else {
                return;
            };
            match read {
                Ok(Ok(settings)) => self.take(&settings),
                Ok(Err(error)) => {
                    tracing::error!(%error, "SIGHUP: the settings can't be used; those before stay in force");
                }
                Err(error) => tracing::error!(%error, "SIGHUP: the settings were not read"),
            }
        }
    }

    fn take(&mut self, settings: &Settings) {
        let newer = &settings.fingerprint;
        let mut changed = self.in_force.changed(newer);
        if changed.iter().any(|name| name == FILTER) {
            mailgate_telemetry::set_filter(&settings.log.filter);
            self.in_force.adopt(newer, FILTER);
            changed.retain(|name| name != FILTER);
        }
        let file = self.file.as_ref().map(|file| display(file.display()));
        tracing::info!(file, "SIGHUP: the settings were read again");
        if !changed.is_empty() {
            let settings = changed.join(", ");
            tracing::warn!(
                settings,
                "these settings have changed, and take effect at the next start"
            );
        }
    }
}
