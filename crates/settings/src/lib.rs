//! Typed settings: `config/default.toml`, over it what a way of running sets, over that a file, over
//! that the environment, which may name files to read values from. All problems are gathered before any
//! is reported.

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
    /// The name to greet with.
    pub host: String,
    /// Submission with STARTTLS.
    pub starttls_listen: Option<SocketAddr>,
    /// Submission with implicit TLS.
    pub tls_listen: Option<SocketAddr>,
    /// Balancers that send a PROXY protocol header.
    pub proxy_protocol_from: TrustedPeers,
    /// What becomes of an LF without its CR in a message.
    pub bare_newline: BareNewline,
}

/// What `mailgate dev` adds.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    /// Its page, OAuth server and JSON interface.
    pub listen: SocketAddr,
    /// Its SMTP server.
    pub smtp_listen: SocketAddr,
    /// Seconds that its access tokens live.
    pub access_token_seconds: u32,
    /// How `plugin_a` sends by it: by SMTP or by an interface like Gmail's.
    pub plugin_a: TransportKind,
    /// How `plugin_b` sends by it: by SMTP or by an interface like Microsoft Graph's.
    pub plugin_b: TransportKind,
}

/// All settings.
#[derive(Debug)]
pub struct Settings {
    /// Tells them from others.
    pub fingerprint: Fingerprint,
    /// Days that logs are kept.
    pub log_retention_days: u32,
    /// The database.
    pub database: DatabaseSettings,
    /// Keys that seal secrets.
    pub seal_keys: Arc<SealKeys>,
    /// Where the listeners' certificates come from.
    pub certificates: CertificateSource,
    /// The REST interface's address.
    pub http_listen: SocketAddr,
    /// The same under TLS; `None`: not served.
    pub http_tls_listen: Option<SocketAddr>,
    /// Where users reach it; empty: as it listens.
    pub http_base_url: String,
    /// Whether REST and the portal answer to this machine's names and the above alone: for `mailgate dev`, which sets it.
    pub http_own_hosts_only: bool,
    /// Opens `POST /subscribers`; `None`: off.
    pub operator_token: Option<SecretString>,
    /// How webhooks leave.
    pub webhooks: WebhookSettings,
    /// Time for one whole REST request.
    pub http_request: Duration,
    /// Proxies whose `X-Forwarded-For` counts.
    pub http_trusted_proxies: TrustedPeers,
    /// How the process ends.
    pub shutdown: ShutdownSettings,
    /// The SMTP listeners.
    pub smtp: SmtpSettings,
    /// Address of the metrics.
    pub metrics_listen: Option<SocketAddr>,
    /// Log lines.
    pub log: LogSettings,
    /// Bounds.
    pub limits: Limits,
    /// How mail leaves.
    pub sending: SendingSettings,
    /// What is done for connected mailboxes.
    pub mailboxes: MailboxSettings,
    /// The mail providers that are on.
    pub plugins: Vec<PluginSettings>,
    /// Where the gateway's own mail goes out; `None`: it sends none.
    pub relay: Option<RelaySettings>,
    /// The payment provider; `None`: nothing is billed.
    pub payprov: Option<PayprovSettings>,
    /// Who runs the gateway.
    pub portal: PortalSettings,
    /// What `mailgate dev` adds.
    pub sandbox: SandboxSettings,
}

/// Loads the settings: the defaults, `preset` (what a way of running sets), `file`, the environment.
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

/// Loads the database's settings alone, for a command that needs no others.
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
    /// The names that clients look for in the certificate of the settings' files: that of the SMTP listeners, and that of
    /// HTTP where it has its TLS itself.
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

/// A host as a certificate has it: a name of any script in ASCII (its A-labels), an address without brackets.
fn as_certified(host: &str) -> String {
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    if let Some(address) = bare {
        return address.to_owned();
    }
    url::Host::parse(host).map_or_else(|_| host.to_owned(), |host| host.to_string())
}

/// Loads the address of the REST interface alone, to ask it something.
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
    // What a file would have said isn't missing if the file can't be read.
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
        // The error's own text quotes the line, which may hold a secret.
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

/// `None` only where the reader has a problem to tell.
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
