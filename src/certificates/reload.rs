//! Reloads a renewed certificate without a restart.

use std::sync::Arc;
use std::time::Duration;

use metrics::gauge;
use tokio_util::sync::CancellationToken;

use crate::workers::pause;
use mailgate_server::tls::ServerCertificate;

/// How often the files are checked.
pub const EVERY: Duration = Duration::from_mins(1);

/// Runs until `stop`, checking the files every `every`.
pub async fn run(certificate: Arc<ServerCertificate>, every: Duration, stop: CancellationToken) {
    while pause(every, &stop).await {
        look(&certificate).await;
    }
}

/// Warns of a certificate that some clients reject.
pub fn warn(certificate: &ServerCertificate) {
    if let Some(why) = certificate.unreliable() {
        tracing::warn!("tls.certificate: {why}");
    }
}

/// Checks the files, and logs a change.
pub async fn look(certificate: &ServerCertificate) {
    let refused = gauge!("mailgate_certificate_refused");
    match certificate.reload().await {
        Ok(false) => {}
        Ok(true) => {
            refused.set(0);
            tracing::info!("the certificate has changed; new connections see it");
            warn(certificate);
        }
        Err(error) => {
            refused.set(1);
            tracing::error!(%error, "the changed certificate can't be used; the former one is kept");
        }
    }
}
