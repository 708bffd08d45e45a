//! Mail providers: one file per transport, and their OAuth endpoints.

pub mod oauth;
pub mod smtp;
pub mod verdict;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{PluginSettings, SendingSettings};
use crate::providers::tls::{self, ClientTlsError};
use crate::types::clock::SharedClock;
use crate::types::plugin::Plugin;

use oauth::OAuthClient;
use smtp::SmtpTransport;

/// One provider's ways in.
#[derive(Debug)]
pub struct MailProvider {
    /// Its settings.
    pub settings: PluginSettings,
    /// Tokens.
    pub oauth: OAuthClient,
    /// Mail.
    pub transport: SmtpTransport,
}

/// The providers that are on.
#[derive(Debug)]
pub struct MailProviders {
    by_plugin: HashMap<Plugin, MailProvider>,
}

/// A provider can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// Its root certificates.
    #[error("plugins.{plugin}.ca_file: {source}")]
    Tls {
        /// Which provider.
        plugin: Plugin,
        /// Why.
        source: ClientTlsError,
    },
    /// Its HTTP client.
    #[error("plugins.{plugin}: the HTTP client can't be set up: {source}")]
    Http {
        /// Which provider.
        plugin: Plugin,
        /// Why.
        source: reqwest::Error,
    },
}

impl MailProviders {
    /// Sets up every provider that is on. `hello` is the name that SMTP connections give.
    ///
    /// # Errors
    ///
    /// [`ProviderError`] for the first provider that can't be set up.
    pub fn new(
        plugins: &[PluginSettings],
        sending: &SendingSettings,
        hello: &str,
        clock: &SharedClock,
    ) -> Result<Self, ProviderError> {
        let mut by_plugin = HashMap::new();
        for settings in plugins {
            let plugin = settings.plugin;
            let tls = tls::client(settings.ca_file.as_deref())
                .map_err(|source| ProviderError::Tls { plugin, source })?;
            let oauth = OAuthClient::new(settings, &tls, sending.oauth, Arc::clone(clock))
                .map_err(|source| ProviderError::Http { plugin, source })?;
            let transport = SmtpTransport::new(settings, tls, sending, hello);
            by_plugin.insert(
                plugin,
                MailProvider {
                    settings: settings.clone(),
                    oauth,
                    transport,
                },
            );
        }
        Ok(Self { by_plugin })
    }

    /// A provider, where it is on.
    #[must_use]
    pub fn get(&self, plugin: Plugin) -> Option<&MailProvider> {
        self.by_plugin.get(&plugin)
    }

    /// The longest that one attempt may take: a submission, a refused token, the refresh with its
    /// confirmation, and the submission again.
    #[must_use]
    pub fn longest_attempt(&self) -> Duration {
        self.by_plugin
            .values()
            .map(|provider| provider.transport.longest() * 2 + provider.oauth.limit() * 4)
            .max()
            .unwrap_or_default()
    }

    /// Closes connections that nobody has used for a while.
    pub fn drop_idle_connections(&self) {
        for provider in self.by_plugin.values() {
            provider.transport.drop_idle_connections();
        }
    }
}
