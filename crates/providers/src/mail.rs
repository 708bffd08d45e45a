//! Mail providers: one file per transport, and their OAuth endpoints.

pub mod aliases;
pub mod bcc_from_envelope;
mod bearer;
pub mod gmail;
pub mod graph;
pub mod imap;
pub mod mailbox_limiter;
pub mod oauth;
mod own_headers;
pub mod reader;
pub mod received;
pub mod sent_copy;
pub mod smtp;
mod taken;
pub mod transport;
pub mod verdict;
mod withheld;

use std::collections::HashMap;
use std::sync::Arc;

use reqwest::Client;
use rustls::ClientConfig;

use crate::proxy;
use crate::tls::{self, ClientTlsError};
use mailgate_settings::{PluginSettings, ProviderKind, SendingSettings};
use mailgate_types::clock::SharedClock;
use mailgate_types::plugin::Plugin;
use mailgate_types::plugin::TransportKind;

use gmail::GmailApi;
use gmail::send_as::SendAs;
use graph::Graph;
use imap::ImapReader;
use oauth::OAuthClient;
use reader::MailReader;
use smtp::SmtpTransport;
use transport::MailTransport;

/// The clients of one provider.
#[derive(Debug)]
pub struct MailProvider {
    /// Its settings.
    pub settings: PluginSettings,
    /// Tokens.
    pub oauth: OAuthClient,
    /// How mail is sent.
    pub transport: Arc<dyn MailTransport>,
    /// How mailboxes are read, if they can be.
    pub reader: Option<Arc<dyn MailReader>>,
    /// Reads the addresses that a Gmail mailbox may send as.
    send_as: Option<SendAs>,
}

/// The enabled providers.
#[derive(Debug)]
pub struct MailProviders {
    by_plugin: HashMap<Plugin, MailProvider>,
}

/// Why a provider can't be set up.
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
    /// Sets up every enabled provider. `hello` is the name given in EHLO.
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
            let http = http_client(settings, sending, &tls)
                .map_err(|source| ProviderError::Http { plugin, source })?;
            let oauth = OAuthClient::new(settings, http.clone(), sending.oauth, Arc::clone(clock));
            let send_as = has_send_as(settings)
                .then(|| SendAs::new(settings, http.clone(), sending.oauth, Arc::clone(clock)));
            let (transport, reader) = ways(settings, sending, tls, http, clock, hello);
            by_plugin.insert(
                plugin,
                MailProvider {
                    settings: settings.clone(),
                    oauth,
                    transport,
                    reader,
                    send_as,
                },
            );
        }
        Ok(Self { by_plugin })
    }

    /// A provider, if it is enabled.
    #[must_use]
    pub fn get(&self, plugin: Plugin) -> Option<&MailProvider> {
        self.by_plugin.get(&plugin)
    }

    /// The enabled providers, in order.
    pub fn all(&self) -> impl Iterator<Item = &MailProvider> {
        Plugin::ALL
            .into_iter()
            .filter_map(|plugin| self.get(plugin))
    }

    /// Sets the number of gateways that share each mailbox's concurrency limit.
    pub fn share_among(&self, living: usize) {
        for provider in self.by_plugin.values() {
            provider.transport.share_among(living);
        }
    }

    /// Closes connections that have been idle for a while.
    pub fn drop_idle_connections(&self) {
        for provider in self.by_plugin.values() {
            provider.transport.drop_idle_connections();
        }
    }
}

/// The transport of a provider, and its reader.
fn ways(
    settings: &PluginSettings,
    sending: &SendingSettings,
    tls: Arc<ClientConfig>,
    http: Client,
    clock: &SharedClock,
    hello: &str,
) -> (Arc<dyn MailTransport>, Option<Arc<dyn MailReader>>) {
    match settings.transport {
        TransportKind::GmailApi => {
            let smtp = has_smtp_beside(settings)
                .then(|| SmtpTransport::new(settings, tls, sending, hello));
            let gmail = GmailApi::new(settings, sending, http, Arc::clone(clock), smtp);
            let gmail = Arc::new(gmail);
            (gmail.clone(), Some(gmail))
        }
        TransportKind::Graph => {
            let graph = Arc::new(Graph::new(settings, http, sending));
            (graph.clone(), Some(graph))
        }
        TransportKind::Smtp => {
            let reader = settings.imap.as_ref().map(|server| {
                let reader = ImapReader::new(server, settings, Arc::clone(&tls), sending);
                Arc::new(reader) as Arc<dyn MailReader>
            });
            let transport = SmtpTransport::new(settings, tls, sending, hello);
            (Arc::new(transport), reader)
        }
    }
}

/// Whether there is a submission server for messages that Gmail's API doesn't handle reliably. Google's own server is
/// paired only with Google's own API: an operator who configures a different one must configure both.
fn has_smtp_beside(settings: &PluginSettings) -> bool {
    let host = settings.smtp.host.as_str();
    let is_own_interface = settings.api_base_url == "https://gmail.googleapis.com";
    !host.is_empty() && is_own_interface == (host == "smtp.gmail.com")
}

/// Whether Gmail's API is available for listing the addresses that a mailbox may send as: also if mail is sent by
/// Google's SMTP server, or by another server whose API is configured.
fn has_send_as(settings: &PluginSettings) -> bool {
    match settings.transport {
        TransportKind::GmailApi => true,
        TransportKind::Smtp => settings.kind == ProviderKind::Google && has_smtp_beside(settings),
        TransportKind::Graph => false,
    }
}

/// One HTTP client for a provider's OAuth endpoints and REST API. Each request sets its own timeout.
fn http_client(
    settings: &PluginSettings,
    sending: &SendingSettings,
    tls: &ClientConfig,
) -> Result<Client, reqwest::Error> {
    proxy::by_environment(Client::builder(), &settings.token_url)
        .tls_backend_preconfigured(tls.clone())
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(sending.connect)
        .pool_idle_timeout(sending.idle_connection)
        .user_agent(concat!("mailgate/", env!("CARGO_PKG_VERSION")))
        .build()
}
