//! Remote checks: mail providers, ACME server, payment provider, relay.

use chrono::{TimeDelta, Utc};
use futures_util::future::BoxFuture;

use super::{Checked, LIMIT};
use mailgate_providers::reach::{self, Unreached};
use mailgate_settings::{CertificateSource, PluginSettings, Settings};
use mailgate_types::plugin::TransportKind;

/// The tolerated difference between a provider's clock and this machine's: tokens and signatures depend on it.
const SKEW: TimeDelta = TimeDelta::seconds(60);

/// All remote checks, to be run concurrently.
pub(super) fn all(settings: &Settings) -> Vec<BoxFuture<'_, Vec<Checked>>> {
    let mut checks: Vec<BoxFuture<'_, Vec<Checked>>> = Vec::new();
    for plugin in &settings.plugins {
        checks.push(Box::pin(token_endpoint(plugin)));
        match plugin.transport {
            TransportKind::Smtp => {
                checks.push(Box::pin(submission(plugin, &settings.smtp.host)));
                if plugin.imap.is_some() {
                    checks.push(Box::pin(imap(plugin)));
                }
            }
            TransportKind::GmailApi | TransportKind::Graph => {
                checks.push(Box::pin(interface(plugin)));
            }
        }
    }
    if let CertificateSource::Acme(acme) = &settings.certificates {
        checks.push(Box::pin(async {
            vec![http("acme", &acme.directory_url, acme.ca_file.as_deref()).await]
        }));
    }
    if let Some(payprov) = &settings.payprov {
        checks.push(Box::pin(async {
            vec![http("payprov", &payprov.base_url, None).await]
        }));
    }
    if settings.relay.is_some() {
        checks.push(Box::pin(relay(settings)));
    }
    checks
}

/// Whether the clocks of the servers that answered agree with this machine's.
pub(super) fn clock(checked: &[Checked]) -> Option<Checked> {
    let furthest = checked
        .iter()
        .filter_map(|check| Some((check, check.clock?)))
        .map(|(check, (theirs, ours))| (check, (theirs - ours).abs()))
        .max_by_key(|(_, apart)| *apart)?;
    let (check, apart) = furthest;
    let text = format!("{} s from {}", apart.num_seconds(), check.name);
    let outcome = if apart > SKEW { Err(text) } else { Ok(text) };
    Some(Checked::new("provider_clock", check.target.clone()).with(outcome))
}

async fn token_endpoint(plugin: &PluginSettings) -> Vec<Checked> {
    let name = format!("{}_oauth", plugin.plugin);
    vec![http(&name, &plugin.token_url, plugin.ca_file.as_deref()).await]
}

async fn interface(plugin: &PluginSettings) -> Vec<Checked> {
    let name = format!("{}_api", plugin.plugin);
    vec![http(&name, &plugin.api_base_url, plugin.ca_file.as_deref()).await]
}

async fn http(name: &str, url: &str, ca_file: Option<&std::path::Path>) -> Checked {
    let mut check = Checked::new(name, shown(url));
    match reach::http(url, ca_file, LIMIT).await {
        Ok(answer) => {
            check.clock = answer.date.map(|theirs| (theirs, Utc::now()));
            let text = format!("HTTP {}", answer.status);
            // Any other status shows that the server works: the request has no credentials.
            check.with(if answer.status >= 500 {
                Err(text)
            } else {
                Ok(text)
            })
        }
        Err(error) => check.with(Err(error.to_string())),
    }
}

/// A URL without parts that may be secret.
fn shown(url: &str) -> String {
    url::Url::parse(url).map_or_else(
        |_| String::new(),
        |url| format!("{}{}", url.origin().ascii_serialization(), url.path()),
    )
}

async fn submission(plugin: &PluginSettings, hello: &str) -> Vec<Checked> {
    let (server, ca_file) = (&plugin.smtp, plugin.ca_file.as_deref());
    let reached = reach::submission(server, plugin.smtp_tls, hello, ca_file, LIMIT).await;
    let check = Checked::new(
        format!("{}_smtp", plugin.plugin),
        format!("{}:{}", server.host, server.port),
    );
    vec![check.with(said(reached))]
}

async fn imap(plugin: &PluginSettings) -> Vec<Checked> {
    let Some(server) = &plugin.imap else {
        return Vec::new();
    };
    let reached = reach::imap(server, plugin.ca_file.as_deref(), LIMIT).await;
    let check = Checked::new(
        format!("{}_imap", plugin.plugin),
        format!("{}:{}", server.host, server.port),
    );
    vec![check.with(said(reached))]
}

async fn relay(settings: &Settings) -> Vec<Checked> {
    let Some(relay) = &settings.relay else {
        return Vec::new();
    };
    let (server, ca_file) = (&relay.server, relay.ca_file.as_deref());
    let reached = reach::submission(server, relay.tls, &settings.smtp.host, ca_file, LIMIT).await;
    let target = format!("{}:{}", server.host, server.port);
    vec![Checked::new("relay", target).with(said(reached))]
}

fn said(reached: Result<(), Unreached>) -> Result<String, String> {
    reached
        .map(|()| "reached".to_owned())
        .map_err(|error| error.to_string())
}
