//! The sandbox's mail provider: its listeners, and the settings with which a plugin uses it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::middleware::from_fn_with_state;
use secrecy::SecretString;
use tokio_rustls::TlsAcceptor;
use toml::{Table, Value};

use super::imap::ImapServer;
use super::inbox::Inbox;
use super::mail_api::MailApi;
use super::oauth::{self, Authorization, AuthorizationError};
use super::own_hosts;
use super::pages;
use super::payprov::{self, PaymentProvider, PaymentProviderError};
use super::returned::ReturnedMail;
use super::slow::SlowMail;
use super::smtp::{RELAY_ACCOUNT, RELAY_PASSWORD, SandboxMail};
use super::switches::Switches;
use mailgate_server::http::{self, HttpLimits, connectable};
use mailgate_server::own_hosts::OwnHosts;
use mailgate_server::shutdown::Shutdown;
use mailgate_server::{ListenError, bind};
use mailgate_smtp::connection::ConnectionSettings;
use mailgate_smtp::listener::{self, ConnectionLimits};
use mailgate_smtp::protocol::authentication::Mechanism;
use mailgate_smtp::protocol::data::BareNewline;
use mailgate_smtp::protocol::session::SessionSettings;
use mailgate_types::clock::SharedClock;
use mailgate_types::plugin::Plugin;
use mailgate_types::plugin::TransportKind;
use mailgate_types::trusted_peers::TrustedPeers;

/// Its one OAuth client. It is reached from this machine only, so its secret need not be one.
pub(super) const CLIENT_ID: &str = "mailgate-sandbox";
const CLIENT_SECRET: &str = "sandbox";

/// The scopes for connecting a mailbox. Only the last one has an effect.
const SCOPES: [&str; 4] = ["openid", "email", "offline_access", "mail.send"];

/// The additional scopes with the Gmail and Graph APIs.
const GMAIL_SCOPES: [&str; 3] = [
    "https://www.googleapis.com/auth/gmail.send",
    "https://www.googleapis.com/auth/gmail.metadata",
    "https://www.googleapis.com/auth/gmail.settings.basic",
];
const GRAPH_SCOPES: [&str; 3] = [
    "https://graph.microsoft.com/User.Read",
    "https://graph.microsoft.com/Mail.Send",
    "https://graph.microsoft.com/Mail.ReadWrite",
];

/// Largest accepted message, in bytes: more than the gateway's limit, so that the latter takes effect.
const MESSAGE_BYTES: usize = 64 * 1024 * 1024;

const CONNECTIONS: usize = 10_000;

/// The provider can't start.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// An address to listen on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Its grants.
    #[error(transparent)]
    Authorization(#[from] AuthorizationError),
    /// Its payments.
    #[error(transparent)]
    Payments(#[from] PaymentProviderError),
    /// The message files, or a listener's address.
    #[error("the sandbox's files can't be used: {0}")]
    Files(#[from] std::io::Error),
}

/// Its addresses, and the plugins' transports.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address of its page, OAuth server and JSON API.
    pub listen: SocketAddr,
    /// The address of its SMTP server.
    pub smtp_listen: SocketAddr,
    /// Lifetime of its access tokens, in seconds.
    pub access_token_seconds: u32,
    /// The transport of `plugin_a`: SMTP, or an API like Gmail's.
    pub plugin_a: TransportKind,
    /// The transport of `plugin_b`: SMTP, or an API like Microsoft Graph's.
    pub plugin_b: TransportKind,
    /// URLs with additional host names by which it may be reached.
    pub base_urls: Vec<String>,
}

/// The running provider.
#[derive(Debug, Clone)]
pub struct SandboxProvider {
    /// Its authorization server.
    pub authorization: Authorization,
    /// Received messages.
    pub inbox: Inbox,
    /// Delays mail to `slow@…`.
    pub slow: SlowMail,
    /// What becomes of the next message.
    pub switches: Switches,
    /// The payment provider. It sends events only once their receiver is set.
    pub payments: PaymentProvider,
    /// The address of its page, OAuth server and JSON API.
    pub address: SocketAddr,
    /// The address of its submission server.
    pub smtp_address: SocketAddr,
    /// The address of its IMAP server.
    pub imap_address: SocketAddr,
    /// The transport of `plugin_a`.
    pub plugin_a: TransportKind,
    /// The transport of `plugin_b`.
    pub plugin_b: TransportKind,
}

/// Starts the provider with its files in `directory`. It ends with `shutdown`.
pub async fn start(
    settings: &Settings,
    directory: &Path,
    tls: TlsAcceptor,
    clock: SharedClock,
    shutdown: &Shutdown,
) -> Result<SandboxProvider, SandboxError> {
    let http = bind("sandbox.listen", settings.listen).await?;
    let smtp = bind("sandbox.smtp_listen", settings.smtp_listen).await?;
    // Only the gateway's settings name it, so any port will do.
    let imap = bind(
        "sandbox.smtp_listen",
        SocketAddr::new(settings.smtp_listen.ip(), 0),
    )
    .await?;
    let imap_address = imap.local_addr()?;
    let (address, smtp_address) = (http.local_addr()?, smtp.local_addr()?);
    let authorization = Authorization::open(oauth::Settings {
        client_id: CLIENT_ID.to_owned(),
        client_secret: SecretString::from(CLIENT_SECRET),
        redirect_uris: Vec::new(),
        access_token_seconds: settings.access_token_seconds,
        directory: directory.join("grants"),
        clock: Arc::clone(&clock),
    })?;
    let inbox = Inbox::open(&directory.join("messages"))?;
    let payments = PaymentProvider::open(payprov::Settings {
        address: format!("{}/payprov", url(address)),
        secret_key: SecretString::from(payprov::SECRET_KEY),
        webhook_secret: SecretString::from(payprov::WEBHOOK_SECRET),
        file: Some(directory.join("payments.json")),
        clock: Arc::clone(&clock),
    })?;
    payments.spawn(shutdown);
    let slow = SlowMail::default();
    let switches = Switches::default();
    let returned = ReturnedMail::default();
    let imap_server = ImapServer {
        authorization: authorization.clone(),
        returned: returned.clone(),
        tls: tls.clone(),
        uid_validity: u32::try_from(clock.now().timestamp()).unwrap_or(1),
    };
    imap_server.spawn(imap, shutdown);
    let mail = SandboxMail {
        authorization: authorization.clone(),
        inbox: inbox.clone(),
        slow: slow.clone(),
        switches: switches.clone(),
        returned,
        clock,
    };
    let api = MailApi {
        authorization: authorization.clone(),
        inbox: inbox.clone(),
        slow: slow.clone(),
        switches: switches.clone(),
        clock: Arc::clone(&mail.clock),
        drafts: Arc::default(),
    };
    let router = authorization
        .router()
        .merge(pages::router(inbox.clone(), switches.clone()))
        .merge(api.router())
        .merge(payments.router());
    let own = OwnHosts::new(address, settings.base_urls.iter().map(String::as_str));
    let router = router.layer(from_fn_with_state(own, own_hosts::guard));
    let (soft, hard, tracker) = (&shutdown.soft, &shutdown.hard, &shutdown.tracker);
    http::serve(http, router, HttpLimits::new(CONNECTIONS), shutdown);
    let connection = ConnectionSettings {
        listener: "sandbox",
        balancers: TrustedPeers::default(),
        session: Arc::new(session_settings()),
        tls,
        implicit_tls: false,
        command: Duration::from_mins(5),
        content_idle: Duration::from_mins(5),
        minimum_rate: 1,
    };
    tracker.spawn(listener::run(
        smtp,
        connection,
        mail,
        ConnectionLimits::new(CONNECTIONS, CONNECTIONS),
        tracker.clone(),
        soft.clone(),
        hard.clone(),
    ));
    Ok(SandboxProvider {
        authorization,
        inbox,
        slow,
        switches,
        payments,
        address,
        smtp_address,
        imap_address,
        plugin_a: settings.plugin_a,
        plugin_b: settings.plugin_b,
    })
}

fn url(address: SocketAddr) -> String {
    format!("http://{}", connectable(address))
}

fn session_settings() -> SessionSettings {
    SessionSettings {
        hostname: "localhost".to_owned(),
        maximum_line: 4_096,
        maximum_message: MESSAGE_BYTES,
        bare_newline: BareNewline::Refuse,
        maximum_recipients: 1_000,
        maximum_errors: 100,
        maximum_authentication_failures: 3,
        mechanisms: vec![Mechanism::Xoauth2, Mechanism::Plain, Mechanism::Login],
        starttls: true,
        ask_for_recipients: true,
    }
}

impl SandboxProvider {
    /// The URL of its pages.
    #[must_use]
    pub fn url(&self) -> String {
        url(self.address)
    }

    /// The section `relay` in the settings of a gateway that sends its own mail here too.
    #[must_use]
    pub fn relay(&self, ca_file: &Path) -> Table {
        let text = |value: &str| Value::String(value.to_owned());
        Table::from_iter([
            ("host".to_owned(), text("localhost")),
            (
                "port".to_owned(),
                Value::Integer(self.smtp_address.port().into()),
            ),
            ("username".to_owned(), text(RELAY_ACCOUNT)),
            ("password".to_owned(), text(RELAY_PASSWORD)),
            (
                "from".to_owned(),
                text(&format!("Mailgate <{RELAY_ACCOUNT}>")),
            ),
            ("ca_file".to_owned(), text(&ca_file.to_string_lossy())),
        ])
    }

    /// The settings with which both plugins use this provider.
    #[must_use]
    pub fn plugins(&self, ca_file: &Path) -> Table {
        let base = self.url();
        let text = |value: &str| Value::String(value.to_owned());
        let plugin = Table::from_iter([
            ("kind".to_owned(), text("generic")),
            ("client_id".to_owned(), text(CLIENT_ID)),
            ("client_secret".to_owned(), text(CLIENT_SECRET)),
            (
                "authorize_url".to_owned(),
                text(&format!("{base}/oauth/authorize")),
            ),
            ("token_url".to_owned(), text(&format!("{base}/oauth/token"))),
            (
                "revoke_url".to_owned(),
                text(&format!("{base}/oauth/revoke")),
            ),
            (
                "userinfo_url".to_owned(),
                text(&format!("{base}/oauth/userinfo")),
            ),
            (
                "scopes".to_owned(),
                Value::Array(SCOPES.into_iter().map(text).collect()),
            ),
            ("smtp_host".to_owned(), text("localhost")),
            (
                "smtp_port".to_owned(),
                Value::Integer(self.smtp_address.port().into()),
            ),
            ("ca_file".to_owned(), text(&ca_file.to_string_lossy())),
        ]);
        Plugin::ALL
            .into_iter()
            .zip(["Sandbox A", "Sandbox B"])
            .map(|(name, label)| {
                let mut plugin = plugin.clone();
                plugin.insert("label".to_owned(), text(label));
                self.shape(name, &mut plugin);
                (name.to_string(), Value::Table(plugin))
            })
            .collect()
    }

    /// The settings of [`Self::plugins`] with which mailboxes that send by SMTP are read too, by IMAP: for bounces and
    /// replies.
    #[must_use]
    pub fn reading_plugins(&self, ca_file: &Path) -> Table {
        let mut plugins = self.plugins(ca_file);
        for (_, plugin) in &mut plugins {
            if let Value::Table(plugin) = plugin
                && plugin.contains_key("smtp_host")
            {
                let port = Value::Integer(self.imap_address.port().into());
                plugin.insert(
                    "imap_host".to_owned(),
                    Value::String("localhost".to_owned()),
                );
                plugin.insert("imap_port".to_owned(), port);
            }
        }
        plugins
    }

    fn transport(&self, plugin: Plugin) -> TransportKind {
        match plugin {
            Plugin::A => self.plugin_a,
            Plugin::B => self.plugin_b,
        }
    }

    /// The scopes for connecting a mailbox of a plugin.
    pub(super) fn scopes(&self, plugin: Plugin) -> Vec<&'static str> {
        let more = match self.transport(plugin) {
            TransportKind::Smtp => &[][..],
            TransportKind::GmailApi => &GMAIL_SCOPES,
            TransportKind::Graph => &GRAPH_SCOPES,
        };
        SCOPES.iter().chain(more).copied().collect()
    }

    /// The settings that differ with the Gmail or Graph API.
    fn shape(&self, plugin: Plugin, section: &mut Table) {
        let base = self.url();
        let (kind, transport, api_base_url) = match self.transport(plugin) {
            TransportKind::Smtp => return,
            TransportKind::GmailApi => ("generic", "gmail_api", base),
            TransportKind::Graph => ("microsoft", "graph", format!("{base}/graph")),
        };
        let text = |value: &str| Value::String(value.to_owned());
        for name in ["smtp_host", "smtp_port", "ca_file"] {
            section.remove(name);
        }
        if kind == "microsoft" {
            // Graph's own endpoint returns the account.
            section.remove("userinfo_url");
        }
        let scopes = self.scopes(plugin).into_iter().map(text).collect();
        for (name, value) in [
            ("kind", text(kind)),
            ("transport", text(transport)),
            ("api_base_url", text(&api_base_url)),
            ("scopes", Value::Array(scopes)),
        ] {
            section.insert(name.to_owned(), value);
        }
    }
}
