//! Warns of the configured certificates that expire soon, at the start and each day, and updates the metric; and has
//! the OAuth client secrets looked at as often.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use metrics::gauge;
use tokio_util::sync::CancellationToken;

use super::client_secrets::ClientSecrets;
use super::pause;
use crate::config::Settings;
use crate::providers::tls::expiry;
use mailgate_types::clock::SharedClock;
use mailgate_types::plugin::Plugin;

/// How often to check; a certificate that has changed is reported again.
const EVERY: Duration = Duration::from_mins(1);

/// How long before its expiry a certificate is reported, and how long before it is an error.
const SOON: TimeDelta = TimeDelta::days(21);
const NEAR: TimeDelta = TimeDelta::days(3);

/// The time between two log lines about the same certificate.
const AGAIN: TimeDelta = TimeDelta::days(1);

/// A file of certificates.
#[derive(Debug)]
struct Named {
    setting: &'static str,
    path: Option<PathBuf>,
    /// The expiry that was last reported, and when.
    said: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

/// All certificates in the settings.
#[derive(Debug)]
pub struct Certificates(Vec<Named>);

impl Certificates {
    /// Collects the certificates of these settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self(named(settings))
    }

    /// Reads all files, and reports what is due.
    pub async fn look(&mut self, now: DateTime<Utc>) {
        for named in &mut self.0 {
            let expires = match &named.path {
                // Whatever uses the file reports that it can't be read.
                Some(path) => tokio::fs::read(path).await.ok(),
                None => None,
            };
            let expires = expires.and_then(|pem| expiry::soonest(&pem));
            #[expect(clippy::cast_precision_loss, reason = "seconds of any date are exact")]
            let seconds = expires.map_or(f64::NAN, |expires| expires.timestamp() as f64);
            gauge!("mailgate_certificate_expiry_timestamp_seconds", "setting" => named.setting)
                .set(seconds);
            if let Some(expires) = expires
                && named.is_due(expires, now)
            {
                named.tell(expires, now);
            }
        }
    }
}

/// The settings that name certificates.
fn named(settings: &Settings) -> Vec<Named> {
    let of_plugin = |plugin: Plugin| {
        let mut plugins = settings.plugins.iter();
        let found = plugins.find(|settings| settings.plugin == plugin);
        found.and_then(|settings| settings.ca_file.clone())
    };
    let relay = settings.relay.as_ref();
    [
        ("tls.certificate", Some(settings.tls_certificate.clone())),
        ("plugins.plugin_a.ca_file", of_plugin(Plugin::A)),
        ("plugins.plugin_b.ca_file", of_plugin(Plugin::B)),
        (
            "relay.ca_file",
            relay.and_then(|relay| relay.ca_file.clone()),
        ),
    ]
    .map(|(setting, path)| Named {
        setting,
        path,
        said: None,
    })
    .into()
}

impl Named {
    /// Whether it expires soon, and was not reported in the last day.
    fn is_due(&mut self, expires: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        let is_known = self
            .said
            .is_some_and(|(said, at)| said == expires && (now - at).abs() < AGAIN);
        if is_known || expires - now > SOON {
            return false;
        }
        self.said = Some((expires, now));
        true
    }

    fn tell(&self, expires: DateTime<Utc>, now: DateTime<Utc>) {
        let setting = self.setting;
        let file = self.path.as_deref().map(Path::to_string_lossy);
        let left = expires - now;
        let advice = if setting == "tls.certificate" {
            "put a renewed one and its key in place of the files: they are read again within a minute"
        } else {
            "put what the server's operator has renewed into the file, take out what has expired, and restart"
        };
        if left <= TimeDelta::zero() {
            tracing::error!(setting, file = file.as_deref(), %expires, "a certificate has expired, and clients that check it refuse the connection; {advice}");
        } else if left <= NEAR {
            let days = left.num_days();
            tracing::error!(setting, file = file.as_deref(), %expires, days, "a certificate expires within days; {advice}");
        } else {
            let days = left.num_days();
            tracing::warn!(setting, file = file.as_deref(), %expires, days, "a certificate expires soon; {advice}");
        }
    }
}

/// Runs until `stop`.
pub async fn run(
    mut certificates: Certificates,
    mut secrets: ClientSecrets,
    clock: SharedClock,
    stop: CancellationToken,
) {
    while pause(EVERY, &stop).await {
        certificates.look(clock.now()).await;
        secrets.look(clock.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_a_day_and_again_when_it_has_changed() {
        let mut named = Named {
            setting: "tls.certificate",
            path: None,
            said: None,
        };
        let expires = DateTime::UNIX_EPOCH + TimeDelta::days(100);
        let days_before = |days| expires - TimeDelta::days(days);
        assert!(!named.is_due(expires, days_before(22)));
        assert!(named.is_due(expires, days_before(21)));
        assert!(!named.is_due(expires, days_before(21) + TimeDelta::hours(23)));
        for day in [20, 10, 3, 0, -1, -30] {
            assert!(named.is_due(expires, days_before(day)), "{day}");
            assert!(!named.is_due(expires, days_before(day)), "{day}");
        }
        let renewed = expires + TimeDelta::days(90);
        assert!(!named.is_due(renewed, days_before(0)));
        let other = expires + TimeDelta::days(1);
        assert!(named.is_due(other, days_before(0)));
    }
}
