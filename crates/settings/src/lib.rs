//! Typed settings: `config/default.toml`, overridden by a command's presets, by a file, and by the environment, which
//! may name files with values. All problems are collected before any is reported.

mod acme;
mod database;
mod fingerprint;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod layers;
mod limits;
mod log;
mod mailboxes;
mod operator;
mod payprov;
mod plugins;
mod portal;
mod problem;
mod reader;
mod relay;
mod sending;
#[cfg(test)]
mod tests;
mod webhooks;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use toml::Table;
use url::Url;

pub use acme::{AcmeChallenge, AcmeSettings, CertificateSource, ExternalAccount};
pub use database::DatabaseSettings;
pub use fingerprint::Fingerprint;
pub use limits::Limits;
pub use log::{LogAddresses, LogFormat, LogSettings};
pub use mailboxes::MailboxSettings;
pub use operator::{OperatorSettings, load_operator};
pub use payprov::PayprovSettings;
pub use plugins::{
    AccountSettings, ClientAuthentication, Endpoint, MailboxLimits, PluginSettings, ProviderKind,
    SubmissionTls, UserinfoAuthentication,
};
pub use portal::PortalSettings;
pub use problem::{ConfigError, Problem};
use reader::Reader;
pub use relay::RelaySettings;
pub use sending::{SendingSettings, Unverifiable};
pub use webhooks::WebhookSettings;

use mailgate_server::certificate_names::CalledBy;
use mailgate_server::shutdown::ShutdownSettings;
use mailgate_smtp::protocol::data::BareNewline;
use mailgate_types::plugin::{Plugin, TransportKind};
use mailgate_types::seal::SealKeys;
use mailgate_types::trusted_peers::TrustedPeers;

/// Shorter operator tokens could be guessed.
const OPERATOR_TOKEN_LENGTH: usize = 32;

const DEFAULTS: &str = include_str!("../../../config/default.toml");

/// The SMTP listeners' settings.
#[derive(Debug, Clone)]
pub struct SmtpSettings {
    /// The name in the greeting.
    pub host: String,
    /// The address for submission with STARTTLS.
    pub starttls_listen: Option<SocketAddr>,
    /// The address for submission with implicit TLS.
    pub tls_listen: Option<SocketAddr>,
    /// Load balancers that send a PROXY protocol header.
    pub proxy_protocol_from: TrustedPeers,
    /// How an LF without a CR in a message is handled.
    pub bare_newline: BareNewline,
}

/// The sandbox of `mailgate dev`.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
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
}

/// All settings.
#[derive(Debug)]
pub struct Settings {
    /// Their fingerprint, to detect changes.
    pub fingerprint: Fingerprint,
    /// How many days the log is kept.
    pub log_retention_days: u32,
    /// The database.
    pub database: DatabaseSettings,
    /// Keys that seal secrets.
    pub seal_keys: Arc<SealKeys>,
    /// The source of the listeners' certificates.
    pub certificates: CertificateSource,
    /// The REST interface's address.
    pub http_listen: SocketAddr,
    /// The same under TLS; `None`: not served.
    pub http_tls_listen: Option<SocketAddr>,
    /// The URL at which users reach it; empty: the listen address.
    pub http_base_url: String,
    /// Whether REST and the portal answer only to this machine's names and the host of `http_base_url`; set by
    /// `mailgate dev`.
    pub http_own_hosts_only: bool,
    /// The token for `POST /subscribers`; `None`: off.
    pub operator_token: Option<SecretString>,
    /// Webhook delivery.
    pub webhooks: WebhookSettings,
    /// The timeout of a REST request.
    pub http_request: Duration,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub http_trusted_proxies: TrustedPeers,
    /// Graceful shutdown.
    pub shutdown: ShutdownSettings,
    /// The SMTP listeners.
    pub smtp: SmtpSettings,
    /// The address of the metrics.
    pub metrics_listen: Option<SocketAddr>,
    /// The log.
    pub log: LogSettings,
    /// Limits.
    pub limits: Limits,
    /// Sending.
    pub sending: SendingSettings,
    /// Background work on connected mailboxes.
    pub mailboxes: MailboxSettings,
    /// The enabled mail providers.
    pub plugins: Vec<PluginSettings>,
    /// The relay for the gateway's own mail; `None`: it sends none.
    pub relay: Option<RelaySettings>,
    /// The payment provider; `None`: nothing is billed.
    pub payprov: Option<PayprovSettings>,
    /// The portal, and the gateway's operator.
    pub portal: PortalSettings,
    /// The sandbox of `mailgate dev`.
    pub sandbox: SandboxSettings,
}

/// Loads the settings: the defaults, `preset` (a command's presets), `file`, the environment.
///
/// # Errors
///
/// [`ConfigError`] with every problem found.
pub fn load(
    preset: Table,
    file: Option<&Path>,
    environment: impl Iterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
) -> Result<Settings, ConfigError> {
    read_layers(preset, file, environment, read)
}

/// Loads only the database's settings, for a command that needs no others.
///
/// # Errors
///
/// [`ConfigError`] with every problem found.
pub fn load_database(
    file: Option<&Path>,
    environment: impl Iterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
) -> Result<DatabaseSettings, ConfigError> {
    read_layers(Table::new(), file, environment, |reader| {
        Some(database::read(reader))
    })
}

impl Settings {
    /// The names that clients expect in the certificate from files: that of the SMTP listeners, and that of the HTTPS
    /// listener if there is one.
    #[must_use]
    pub fn certificate_names(&self) -> Vec<CalledBy> {
        let called = |setting, name: &str| CalledBy {
            setting,
            name: name.to_owned(),
        };
        let mut names = vec![called("smtp.host", &as_certified(&self.smtp.host))];
        if self.http_tls_listen.is_some() {
            let url = Url::parse(&self.http_base_url).ok();
            let host = url.as_ref().and_then(Url::host_str);
            names.extend(host.map(|host| called("http.base_url", &as_certified(host))));
        }
        names
    }
}

/// A host in the form of certificates: a name in ASCII (A-labels), an address without brackets.
fn as_certified(host: &str) -> String {
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    if let Some(address) = bare {
        return address.to_owned();
    }
    url::Host::parse(host).map_or_else(|_| host.to_owned(), |host| host.to_string())
}

/// Loads only the address of the REST interface, to query it.
///
/// # Errors
///
/// [`ConfigError`] with every problem found.
pub fn load_http_listen(
    file: Option<&Path>,
    environment: impl Iterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
) -> Result<SocketAddr, ConfigError> {
    read_layers(Table::new(), file, environment, |reader| {
        reader.required_listen_address("http.listen")
    })
}

fn read_seal_keys(reader: &mut Reader<'_>) -> Option<SealKeys> {
    let seal_keys = reader.texts("seal.keys");
    SealKeys::parse(seal_keys.iter().map(String::as_str))
        .map_err(|error| reader.problem("seal.keys", error.to_string()))
        .ok()
}

fn read_plugins(reader: &mut Reader<'_>) -> Vec<PluginSettings> {
    Plugin::ALL
        .into_iter()
        .filter_map(|plugin| plugins::read(reader, plugin))
        .collect()
}

fn read_layers<T>(
    preset: Table,
    file: Option<&Path>,
    environment: impl Iterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
    read: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<T, ConfigError> {
    let mut problems = Vec::new();
    let mut settings = parse("config/default.toml", DEFAULTS, &mut problems);
    layers::lay(&mut settings, preset, "preset", &mut problems);
    // If the file can't be read, its settings aren't reported as missing.
    let mut is_read = true;
    if let Some(file) = file {
        let name = file.display().to_string();
        match std::fs::read_to_string(file) {
            Ok(text) => {
                let before = problems.len();
                let layer = parse(&name, &text, &mut problems);
                is_read = problems.len() == before;
                layers::lay(&mut settings, layer, &name, &mut problems);
            }
            Err(error) => {
                is_read = false;
                problems.push(Problem::new(
                    "--config",
                    format!("{name} can't be read: {error}"),
                ));
            }
        }
    }
    let environment = environment.map(|(name, text)| (name.into(), text.into()));
    layers::lay_environment(&mut settings, environment, &mut problems);
    let mut reader = Reader::new(&settings);
    let logs_json = reader.text("log.format") == "json";
    let settings = read(&mut reader);
    if is_read {
        problems.extend(reader.into_problems());
    }
    let mut missing = (problems.iter_mut())
        .filter(|it| it.setting == "database.url" && it.text.starts_with("is required"));
    if let (None, Some(problem)) = (file, missing.next()) {
        problem.text += "; no file of settings was given, by --config or MAILGATE_CONFIG";
    }
    match settings {
        Some(settings) if problems.is_empty() => Ok(settings),
        _ => Err(ConfigError {
            problems,
            logs_json,
        }),
    }
}

fn parse(name: &str, text: &str, problems: &mut Vec<Problem>) -> Table {
    text.parse().unwrap_or_else(|error: toml::de::Error| {
        // The error's own text quotes the line, which may contain a secret.
        let line = error
            .span()
            .map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        problems.push(Problem::new(
            name,
            format!("isn't valid TOML: line {line}: {}", error.message()),
        ));
        Table::new()
    })
}

/// `None` only if the reader has recorded a problem.
fn read(reader: &mut Reader<'_>) -> Option<Settings> {
    let database = database::read(reader);
    let seal_keys = read_seal_keys(reader);
    let certificates = acme::read(reader);
    let http_listen = reader.required_listen_address("http.listen");
    let log = log::read(reader);
    let bare_newline = reader.choice(
        "smtp.bare_newline",
        &[
            ("refuse", BareNewline::Refuse),
            ("normalize", BareNewline::Normalize),
        ],
    );
    let sending = sending::read(reader);
    let plugins = read_plugins(reader);
    let sandbox_listen = reader.required_listen_address("sandbox.listen");
    let sandbox_smtp_listen = reader.required_listen_address("sandbox.smtp_listen");
    let access_token_seconds = reader.number("sandbox.access_token_seconds", 1, 86_400);
    let smtp = ("smtp", TransportKind::Smtp);
    let gmail_api = ("gmail_api", TransportKind::GmailApi);
    let graph = ("graph", TransportKind::Graph);
    let sandbox_plugin_a = reader.choice("sandbox.plugin_a", &[smtp, gmail_api]);
    let sandbox_plugin_b = reader.choice("sandbox.plugin_b", &[smtp, graph]);
    Some(Settings {
        fingerprint: Fingerprint::of(reader.table()),
        log_retention_days: reader.number("LOG_RETENTION_DAYS", 1, 36_500),
        database,
        http_tls_listen: reader.listen_address("http.tls_listen"),
        http_base_url: reader.url("http.base_url"),
        http_own_hosts_only: false,
        operator_token: read_operator_token(reader),
        webhooks: webhooks::read(reader),
        http_request: reader.seconds("http.request_seconds"),
        http_trusted_proxies: reader.trusted_peers("http.trusted_proxies"),
        shutdown: ShutdownSettings {
            announce: Duration::from_secs(reader.number("shutdown.announce_seconds", 0, 3_600)),
            deadline: Duration::from_secs(reader.number("shutdown.seconds", 1, 3_600)),
        },
        smtp: SmtpSettings {
            host: reader.required("smtp.host", "the name that clients connect to"),
            starttls_listen: reader.listen_address("smtp.starttls_listen"),
            tls_listen: reader.listen_address("smtp.tls_listen"),
            proxy_protocol_from: reader.trusted_peers("smtp.proxy_protocol_from"),
            bare_newline: bare_newline?,
        },
        metrics_listen: reader.listen_address("metrics.listen"),
        limits: limits::read(reader),
        mailboxes: mailboxes::read(reader),
        plugins,
        payprov: payprov::read(reader),
        portal: portal::read(reader),
        relay: relay::read(reader),
        seal_keys: Arc::new(seal_keys?),
        certificates: certificates?,
        http_listen: http_listen?,
        log: log?,
        sending: sending?,
        sandbox: SandboxSettings {
            listen: sandbox_listen?,
            smtp_listen: sandbox_smtp_listen?,
            access_token_seconds,
            plugin_a: sandbox_plugin_a?,
            plugin_b: sandbox_plugin_b?,
        },
    })
}

fn read_operator_token(reader: &mut Reader<'_>) -> Option<SecretString> {
    let token = reader.text("http.operator_token");
    if !token.is_empty() && token.len() < OPERATOR_TOKEN_LENGTH {
        reader.problem("http.operator_token", "must have 32 characters or more");
    }
    (!token.is_empty()).then(|| SecretString::from(token))
}
