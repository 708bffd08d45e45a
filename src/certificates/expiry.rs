//! Warns of configured certificates that expire soon, at startup and daily, and updates the metric. Checks the OAuth
//! client secrets as often.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use metrics::gauge;
use tokio_util::sync::CancellationToken;

use crate::workers::{ClientSecrets, pause};
use mailgate_domain::certificates::ServedName;
use mailgate_providers::tls::expiry;
use mailgate_settings::{CertificateSource, Settings};
use mailgate_types::clock::SharedClock;
use mailgate_types::plugin::Plugin;

/// How often to check; a certificate that has changed is reported again.
const EVERY: Duration = Duration::from_mins(1);

/// How long before its expiry a certificate is a warning, and how long before it is an error.
const SOON: TimeDelta = TimeDelta::days(21);
const NEAR: TimeDelta = TimeDelta::days(3);

/// The time between two log lines about the same certificate.
const AGAIN: TimeDelta = TimeDelta::days(1);

/// The location of a certificate.
#[derive(Debug)]
enum Place {
    /// The setting is empty.
    Nowhere,
    /// In a file.
    File(PathBuf),
    /// In the database, issued by an ACME server, and in use.
    Issued(ServedName),
}

/// A setting, and the certificate that it configures.
#[derive(Debug)]
struct Named {
    setting: &'static str,
    place: Place,
    /// The expiry that was last reported, and when.
    said: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

/// All certificates that may expire.
#[derive(Debug)]
pub struct Expiring(Vec<Named>);

impl Expiring {
    /// Adds the certificates from an ACME server.
    pub fn add(&mut self, served: &[ServedName]) {
        for served in served {
            let known = (self.0.iter_mut()).find(|it| it.setting == served.setting());
            if let Some(named) = known {
                named.place = Place::Issued(served.clone());
            }
        }
    }

    /// Checks all certificates, and reports those due.
    pub async fn look(&mut self, now: DateTime<Utc>) {
        for named in &mut self.0 {
            let (expires, life) = match &named.place {
                Place::Nowhere => (None, None),
                Place::File(path) => {
                    // An unreadable file is reported by the code that uses it.
                    let pem = tokio::fs::read(path).await.ok();
                    (pem.and_then(|pem| expiry::soonest(&pem)), None)
                }
                Place::Issued(served) => match served.validity() {
                    Some((begins, ends)) => (Some(ends), Some(ends - begins)),
                    None => (None, None),
                },
            };
            #[expect(clippy::cast_precision_loss, reason = "seconds of any date are exact")]
            let seconds = expires.map_or(f64::NAN, |expires| expires.timestamp() as f64);
            gauge!("mailgate_certificate_expiry_timestamp_seconds", "setting" => named.setting)
                .set(seconds);
            let (soon, near) = limits(life);
            if let Some(expires) = expires
                && named.is_due(expires, now, soon)
            {
                named.tell(expires, now, near);
            }
        }
    }
}

/// How long before its expiry a certificate is a warning, and how long before it is an error. The gateway renews its
/// own certificates when a third of their lifetime is left, which may be short.
fn limits(life: Option<TimeDelta>) -> (TimeDelta, TimeDelta) {
    let part = |of: i32, most: TimeDelta| life.map_or(most, |life| (life / of).min(most));
    (part(4, SOON), part(12, NEAR))
}

/// Collects the files named in the settings.
#[must_use]
pub fn files(settings: &Settings) -> Expiring {
    let of_plugin = |plugin: Plugin| {
        let mut plugins = settings.plugins.iter();
        let found = plugins.find(|settings| settings.plugin == plugin);
        found.and_then(|settings| settings.ca_file.clone())
    };
    let relay = settings.relay.as_ref();
    let (certificate, acme_ca) = match &settings.certificates {
        CertificateSource::Files { certificate, .. } => (Some(certificate.clone()), None),
        CertificateSource::Acme(acme) => (None, acme.ca_file.clone()),
    };
    let named = [
        ("tls.certificate", certificate),
        ("smtp.host", None),
        ("http.base_url", None),
        ("plugins.plugin_a.ca_file", of_plugin(Plugin::A)),
        ("plugins.plugin_b.ca_file", of_plugin(Plugin::B)),
        (
            "relay.ca_file",
            relay.and_then(|relay| relay.ca_file.clone()),
        ),
        ("acme.ca_file", acme_ca),
    ]
    .map(|(setting, path)| Named {
        setting,
        place: path.map_or(Place::Nowhere, Place::File),
        said: None,
    });
    Expiring(named.into())
}

impl Named {
    /// Whether it expires soon, and was not reported in the last day.
    fn is_due(&mut self, expires: DateTime<Utc>, now: DateTime<Utc>, soon: TimeDelta) -> bool {
        let is_known = self
            .said
            .is_some_and(|(said, at)| said == expires && (now - at).abs() < AGAIN);
        if is_known || expires - now > soon {
            return false;
        }
        self.said = Some((expires, now));
        true
    }

    fn tell(&self, expires: DateTime<Utc>, now: DateTime<Utc>, near: TimeDelta) {
        let setting = self.setting;
        let (file, name) = match &self.place {
            Place::Nowhere => (None, None),
            Place::File(path) => (Some(path.to_string_lossy()), None),
            Place::Issued(served) => (None, Some(served.name())),
        };
        let file = file.as_deref();
        let left = expires - now;
        let advice = match self.place {
            Place::Issued(_) => {
                "the ACME server has not renewed it: mailgate certificates list says why"
            }
            _ if setting == "tls.certificate" => {
                "put a renewed one and its key in place of the files: they are read again within a minute"
            }
            _ => {
                "put what the server's operator has renewed into the file, take out what has expired, and restart"
            }
        };
        if left <= TimeDelta::zero() {
            tracing::error!(setting, file, name, %expires, "a certificate has expired, and clients that check it refuse the connection; {advice}");
        } else if left <= near {
            let days = left.num_days();
            tracing::error!(setting, file, name, %expires, days, "a certificate expires within days; {advice}");
        } else {
            let days = left.num_days();
            tracing::warn!(setting, file, name, %expires, days, "a certificate expires soon; {advice}");
        }
    }
}

/// Runs until `stop`.
pub async fn run(
    mut certificates: Expiring,
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
            place: Place::Nowhere,
            said: None,
        };
        let (soon, _) = limits(None);
        let expires = DateTime::UNIX_EPOCH + TimeDelta::days(100);
        let days_before = |days| expires - TimeDelta::days(days);
        assert!(!named.is_due(expires, days_before(22), soon));
        assert!(named.is_due(expires, days_before(21), soon));
        assert!(!named.is_due(expires, days_before(21) + TimeDelta::hours(23), soon));
        for day in [20, 10, 3, 0, -1, -30] {
            assert!(named.is_due(expires, days_before(day), soon), "{day}");
            assert!(!named.is_due(expires, days_before(day), soon), "{day}");
        }
        let renewed = expires + TimeDelta::days(90);
        assert!(!named.is_due(renewed, days_before(0), soon));
        let other = expires + TimeDelta::days(1);
        assert!(named.is_due(other, days_before(0), soon));
    }
    #[test]
    fn a_short_life_is_reported_later() {
        let days = TimeDelta::days;
        assert_eq!(limits(None), (days(21), days(3)));
        assert_eq!(limits(Some(days(90))), (days(21), days(3)));
        assert_eq!(limits(Some(days(24))), (days(6), days(2)));
    }
}
