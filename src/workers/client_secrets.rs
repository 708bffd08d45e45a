//! Warns of OAuth client secrets that expire soon, by the dates in the settings, at startup and daily, and updates the
//! metric. Providers don't announce the expiry.

use chrono::{DateTime, TimeDelta, Utc};
use metrics::gauge;

use mailgate_settings::Settings;
use mailgate_types::plugin::Plugin;

/// How long before its expiry a secret is a warning, and how long before it is an error.
const SOON: TimeDelta = TimeDelta::days(30);
const NEAR: TimeDelta = TimeDelta::days(7);

/// The time between two log lines about the same secret.
const AGAIN: TimeDelta = TimeDelta::days(1);

/// One plugin's secret.
#[derive(Debug)]
struct Secret {
    plugin: Plugin,
    expires: Option<DateTime<Utc>>,
    /// When it was last reported.
    said: Option<DateTime<Utc>>,
}

/// A report about a secret.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    Soon,
    Near,
    Expired,
}

/// The secrets of all plugins.
#[derive(Debug)]
pub struct ClientSecrets(Vec<Secret>);

impl ClientSecrets {
    /// The secrets in these settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let of_plugin = |plugin: Plugin| {
            let mut plugins = settings.plugins.iter();
            let found = plugins.find(|settings| settings.plugin == plugin);
            Secret {
                plugin,
                expires: found.and_then(|settings| settings.client_secret_expires),
                said: None,
            }
        };
        Self([Plugin::A, Plugin::B].map(of_plugin).into())
    }

    /// Reports what is due.
    pub fn look(&mut self, now: DateTime<Utc>) {
        for secret in &mut self.0 {
            #[expect(clippy::cast_precision_loss, reason = "seconds of any date are exact")]
            let seconds = secret
                .expires
                .map_or(f64::NAN, |expires| expires.timestamp() as f64);
            let plugin = secret.plugin.as_str();
            gauge!("mailgate_client_secret_expiry_timestamp_seconds", "plugin" => plugin)
                .set(seconds);
            if let Some(due) = secret.due(now) {
                secret.said = Some(now);
                secret.tell(&due, now);
            }
        }
    }
}

impl Secret {
    /// The report, if there was none in the last day.
    fn due(&self, now: DateTime<Utc>) -> Option<Due> {
        let left = self.expires? - now;
        let is_known = self.said.is_some_and(|said| (now - said).abs() < AGAIN);
        if is_known || left > SOON {
            None
        } else if left <= TimeDelta::zero() {
            Some(Due::Expired)
        } else if left <= NEAR {
            Some(Due::Near)
        } else {
            Some(Due::Soon)
        }
    }

    fn tell(&self, due: &Due, now: DateTime<Utc>) {
        let Some(expires) = self.expires else {
            return;
        };
        let days = (expires - now).num_days();
        let plugin = self.plugin.as_str();
        let advice = format!(
            "make a new one at the provider, set plugins.{plugin}.client_secret and client_secret_expires, and restart"
        );
        match due {
            Due::Expired => {
                tracing::error!(plugin, %expires, "by its date, an OAuth client secret has expired, and no token can be refreshed with it; {advice}");
            }
            Due::Near => {
                tracing::error!(plugin, %expires, days, "an OAuth client secret expires within days; {advice}");
            }
            Due::Soon => {
                tracing::warn!(plugin, %expires, days, "an OAuth client secret expires soon; {advice}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_a_day_from_a_month_before() {
        let expires = DateTime::UNIX_EPOCH + TimeDelta::days(100);
        let secret = |said| Secret {
            plugin: Plugin::B,
            expires: Some(expires),
            said,
        };
        for (days_left, expected) in [
            (31, None),
            (30, Some(Due::Soon)),
            (8, Some(Due::Soon)),
            (7, Some(Due::Near)),
            (1, Some(Due::Near)),
            (0, Some(Due::Expired)),
            (-30, Some(Due::Expired)),
        ] {
            let now = expires - TimeDelta::days(days_left);
            assert_eq!(secret(None).due(now), expected, "{days_left}");
            let an_hour_ago = Some(now - TimeDelta::hours(1));
            assert_eq!(secret(an_hour_ago).due(now), None, "{days_left}");
            let yesterday = Some(now - TimeDelta::days(1));
            assert_eq!(secret(yesterday).due(now), expected, "{days_left}");
        }
        let unknown = Secret {
            expires: None,
            ..secret(None)
        };
        assert_eq!(unknown.due(expires), None);
    }
}
