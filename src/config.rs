//! Typed settings: `config/default.toml`, over it what a way of running sets, over that a file, over
//! that the environment, which may name files to read values from. All problems are gathered before any
//! is reported.

mod layers;
mod payprov;
mod plugins;
mod reader;
mod relay;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt::{Display, Formatter};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::TimeDelta;
use secrecy::SecretString;
use toml::Table;

pub use payprov::PayprovSettings;
pub use plugins::{
    ClientAuthentication, Endpoint, MailboxLimits, PluginSettings, ProviderKind, SubmissionTls,
    TransportKind,
};
use reader::Reader;
pub use relay::RelaySettings;

use crate::types::plugin::Plugin;
use crate::types::seal::SealKeys;
use crate::types::trusted_peers::TrustedPeers;

/// Shorter operator tokens could be guessed.
const OPERATOR_TOKEN_LENGTH: usize = 32;

const DEFAULTS: &str = include_str!("../config/default.toml");

/// One setting that can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting's name, or the environment variable's.
    pub setting: String,
    /// What is wrong, and what would be right.
    pub text: String,
}

impl Problem {
    fn new(setting: &str, text: impl Into<String>) -> Self {
        Self {
            setting: setting.to_owned(),
            text: text.into(),
        }
    }
}

impl Display for Problem {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.setting, self.text)
    }
}

/// The settings can't be used; every problem of them.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigError(pub Vec<Problem>);

/// The database's settings.
#[derive(Debug)]
pub struct DatabaseSettings {
    /// Holds the password, so it is a secret.
    pub url: SecretString,
    /// Connections of this process at most.
    pub max_connections: u32,
    /// Longest that one statement may take.
    pub statement: Duration,
}

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
}

/// How the process ends.
#[derive(Debug, Clone, Copy)]
pub struct ShutdownSettings {
    /// How long `/readyz` says so before nothing new is taken any more.
    pub announce: Duration,
    /// How long work in hand may take then.
    pub deadline: Duration,
}

impl Default for ShutdownSettings {
    fn default() -> Self {
        Self {
            announce: Duration::ZERO,
            deadline: Duration::from_secs(30),
        }
    }
}

/// Bounds on what strangers send.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest message in bytes.
    pub message_bytes: usize,
    /// Largest REST body in bytes.
    pub body_bytes: usize,
    /// Requests of one key in a second.
    pub requests_per_second: u32,
    /// Requests that a key may save up.
    pub requests_burst: u32,
    /// Bytes of messages that are held at once.
    pub in_flight_bytes: usize,
    /// Most recipients of a message.
    pub recipients: usize,
    /// Longest SMTP command line in bytes, CRLF included.
    pub smtp_line_bytes: usize,
    /// Wrong SMTP commands before a connection is closed.
    pub smtp_errors: usize,
    /// Refused log-ins before an SMTP connection is closed.
    pub smtp_authentication_failures: usize,
    /// Refused log-ins of one address in a minute before it is slowed down.
    pub authentication_failures_per_minute: u32,
    /// Time for an SMTP client's next command.
    pub smtp_command: Duration,
    /// Longest pause of an SMTP client within a message.
    pub smtp_data_idle: Duration,
    /// HTTP connections of one listener at once.
    pub http_connections: usize,
    /// SMTP connections at once.
    pub smtp_connections: usize,
    /// SMTP connections at once from one address.
    pub smtp_connections_per_address: usize,
}

/// What to do with a message whose outcome stays unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unverifiable {
    /// Report it as failed.
    Fail,
    /// Send it again.
    Retry,
}

/// How mail leaves.
#[derive(Debug, Clone)]
pub struct SendingSettings {
    /// What to do with an outcome that stays unknown.
    pub unverifiable: Unverifiable,
    /// Time to the next attempt, after each temporary failure.
    pub retry: Vec<Duration>,
    /// For TCP and TLS to the provider.
    pub connect: Duration,
    /// For each reply of the provider.
    pub command: Duration,
    /// For the message itself and the reply to it.
    pub data: Duration,
    /// How long an unused connection is kept.
    pub idle_connection: Duration,
    /// For one answer of an OAuth endpoint.
    pub oauth: Duration,
}

/// What is done for connected mailboxes without being asked.
#[derive(Debug, Clone)]
pub struct MailboxSettings {
    /// After how long an unused token is refreshed.
    pub refresh_idle: TimeDelta,
    /// The time between two looks for replies.
    pub replies_every: Duration,
    /// How long after its last message a mailbox is looked into.
    pub replies_window: TimeDelta,
}

/// How webhooks leave.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// Whether customers' addresses may be http and private.
    pub allow_private: bool,
    /// Deliveries at once.
    pub concurrency: usize,
    /// Deliveries at once to one endpoint.
    pub endpoint_concurrency: usize,
    /// Time for one delivery: connection, request and answer.
    pub exchange: Duration,
    /// Time to the next attempt, after each failed one.
    pub retry: Vec<Duration>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// For machines.
    Json,
}

/// How mail addresses stand in log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogAddresses {
    /// As they are.
    Plain,
    /// Hashed under a key that comes of the first sealing key.
    Hashed,
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
}

/// All settings.
#[derive(Debug)]
pub struct Settings {
    /// Days that logs are kept.
    pub log_retention_days: u32,
    /// The database.
    pub database: DatabaseSettings,
    /// Keys that seal secrets.
    pub seal_keys: SealKeys,
    /// Certificate chain and key of the SMTP listeners (PEM files).
    pub tls_certificate: PathBuf,
    /// The private key's file.
    pub tls_key: PathBuf,
    /// The REST interface's address.
    pub http_listen: SocketAddr,
    /// Where users reach it; empty: as it listens.
    pub http_base_url: String,
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
    /// How log lines look.
    pub log_format: LogFormat,
    /// How mail addresses stand there.
    pub log_addresses: LogAddresses,
    /// What is logged.
    pub log_filter: String,
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
        Some(read_database(reader))
    })
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

/// What the operator's commands need.
#[derive(Debug)]
pub struct OperatorSettings {
    /// The database.
    pub database: DatabaseSettings,
    /// Keys that seal secrets.
    pub seal_keys: SealKeys,
    /// Bounds.
    pub limits: Limits,
    /// How providers are called.
    pub sending: SendingSettings,
    /// What is done for connected mailboxes.
    pub mailboxes: MailboxSettings,
    /// The mail providers that are on.
    pub plugins: Vec<PluginSettings>,
    /// The payment provider; `None`: nothing is billed.
    pub payprov: Option<PayprovSettings>,
    /// The gateway's name.
    pub smtp_host: String,
}

/// Loads the settings that the operator's commands need.
///
/// # Errors
///
/// [`ConfigError`] with every problem found.
pub fn load_operator(
    file: Option<&Path>,
    environment: impl Iterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
) -> Result<OperatorSettings, ConfigError> {
    read_layers(Table::new(), file, environment, |reader| {
        let (database, seal_keys) = (read_database(reader), read_seal_keys(reader));
        let (sending, plugins) = (read_sending(reader), read_plugins(reader));
        Some(OperatorSettings {
            database,
            limits: read_limits(reader),
            mailboxes: read_mailboxes(reader),
            plugins,
            payprov: payprov::read(reader),
            smtp_host: reader.text("smtp.host"),
            seal_keys: seal_keys?,
            sending: sending?,
        })
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
    if let Some(file) = file {
        let name = file.display().to_string();
        match std::fs::read_to_string(file) {
            Ok(text) => {
                let layer = parse(&name, &text, &mut problems);
                layers::lay(&mut settings, layer, &name, &mut problems);
            }
            Err(error) => problems.push(Problem::new(
                "--config",
                format!("{name} can't be read: {error}"),
            )),
        }
    }
    let environment = environment.map(|(name, text)| (name.into(), text.into()));
    layers::lay_environment(&mut settings, environment, &mut problems);
    let mut reader = Reader::new(&settings);
    let settings = read(&mut reader);
    problems.extend(reader.into_problems());
    match settings {
        Some(settings) if problems.is_empty() => Ok(settings),
        _ => Err(ConfigError(problems)),
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
            format!("is no TOML: line {line}: {}", error.message()),
        ));
        Table::new()
    })
}

/// `None` only where the reader has a problem to tell.
fn read(reader: &mut Reader<'_>) -> Option<Settings> {
    let database = read_database(reader);
    let seal_keys = read_seal_keys(reader);
    let certificate = reader.required("tls.certificate", "a PEM file with the chain");
    let key = reader.required("tls.key", "a PEM file with the private key");
    let http_listen = reader.required_listen_address("http.listen");
    let log_format = reader.choice(
        "log.format",
        &[("pretty", LogFormat::Pretty), ("json", LogFormat::Json)],
    );
    let log_addresses = reader.choice(
        "log.addresses",
        &[
            ("plain", LogAddresses::Plain),
            ("hashed", LogAddresses::Hashed),
        ],
    );
    let log_filter = reader.text("log.filter");
    if let Err(error) = tracing_subscriber::EnvFilter::try_new(&log_filter) {
        reader.problem("log.filter", error.to_string());
    }
    let sending = read_sending(reader);
    let plugins = read_plugins(reader);
    let sandbox_listen = reader.required_listen_address("sandbox.listen");
    let sandbox_smtp_listen = reader.required_listen_address("sandbox.smtp_listen");
    let access_token_seconds = reader.number("sandbox.access_token_seconds", 1, 86_400);
    Some(Settings {
        log_retention_days: reader.number("LOG_RETENTION_DAYS", 1, 36_500),
        database,
        tls_certificate: PathBuf::from(certificate),
        tls_key: PathBuf::from(key),
        http_base_url: reader.url("http.base_url"),
        operator_token: read_operator_token(reader),
        webhooks: read_webhooks(reader),
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
        },
        metrics_listen: reader.listen_address("metrics.listen"),
        log_filter,
        limits: read_limits(reader),
        mailboxes: read_mailboxes(reader),
        plugins,
        payprov: payprov::read(reader),
        relay: relay::read(reader),
        seal_keys: seal_keys?,
        http_listen: http_listen?,
        log_format: log_format?,
        log_addresses: log_addresses?,
        sending: sending?,
        sandbox: SandboxSettings {
            listen: sandbox_listen?,
            smtp_listen: sandbox_smtp_listen?,
            access_token_seconds,
        },
    })
}

fn read_database(reader: &mut Reader<'_>) -> DatabaseSettings {
    let form = "postgres://user:password@host/name (MAILGATE__DATABASE__URL)";
    let url = reader.required("database.url", form);
    // sqlx takes any scheme for its own; the text is not told, as it may hold a password.
    let is_postgres = |url: url::Url| matches!(url.scheme(), "postgres" | "postgresql");
    if !url.is_empty() && !url::Url::parse(&url).is_ok_and(is_postgres) {
        reader.problem("database.url", format!("must be of the form {form}"));
    }
    DatabaseSettings {
        url: SecretString::from(url),
        max_connections: reader.number("database.max_connections", 2, 1_000),
        statement: Duration::from_secs(reader.number("database.statement_seconds", 1, 3_600)),
    }
}

fn read_operator_token(reader: &mut Reader<'_>) -> Option<SecretString> {
    let token = reader.text("http.operator_token");
    if !token.is_empty() && token.len() < OPERATOR_TOKEN_LENGTH {
        reader.problem("http.operator_token", "must have 32 characters or more");
    }
    (!token.is_empty()).then(|| SecretString::from(token))
}

fn read_limits(reader: &mut Reader<'_>) -> Limits {
    let message_bytes: usize = reader.number("limits.message_bytes", 1_024, 1 << 30);
    let in_flight_bytes = reader.number("limits.in_flight_bytes", 1 << 12, 1 << 40);
    if in_flight_bytes < message_bytes * 4 {
        let text = "must be four times limits.message_bytes or more, else the largest message finds no room";
        reader.problem("limits.in_flight_bytes", text);
    }
    Limits {
        message_bytes,
        in_flight_bytes,
        body_bytes: reader.number("limits.body_bytes", 1_024, 1 << 30),
        requests_per_second: reader.number("limits.requests_per_second", 1, 1_000_000),
        requests_burst: reader.number("limits.requests_burst", 1, 1_000_000),
        recipients: reader.number("limits.recipients", 1, 10_000),
        // RFC 5321 §4.5.3.1.4: at least 512.
        smtp_line_bytes: reader.number("limits.smtp_line_bytes", 512, 65_536),
        smtp_errors: reader.number("limits.smtp_errors", 1, 1_000),
        smtp_authentication_failures: reader.number("limits.smtp_authentication_failures", 1, 100),
        authentication_failures_per_minute: reader.number(
            "limits.authentication_failures_per_minute",
            1,
            1_000_000,
        ),
        smtp_command: reader.seconds("limits.smtp_command_seconds"),
        smtp_data_idle: reader.seconds("limits.smtp_data_idle_seconds"),
        http_connections: reader.number("limits.http_connections", 1, 1_000_000),
        smtp_connections: reader.number("limits.smtp_connections", 1, 1_000_000),
        smtp_connections_per_address: reader.number(
            "limits.smtp_connections_per_address",
            1,
            1_000_000,
        ),
    }
}

fn read_mailboxes(reader: &mut Reader<'_>) -> MailboxSettings {
    MailboxSettings {
        refresh_idle: TimeDelta::days(reader.number("mailboxes.refresh_idle_days", 1, 365)),
        replies_every: reader.seconds("mailboxes.replies_seconds"),
        replies_window: TimeDelta::days(reader.number("mailboxes.replies_days", 1, 365)),
    }
}

fn read_webhooks(reader: &mut Reader<'_>) -> WebhookSettings {
    WebhookSettings {
        allow_private: reader.flag("webhooks.allow_private"),
        concurrency: reader.number("webhooks.concurrency", 1, 100_000),
        endpoint_concurrency: reader.number("webhooks.endpoint_concurrency", 1, 10_000),
        exchange: Duration::from_secs(reader.number("webhooks.exchange_seconds", 1, 300)),
        retry: reader.list_of_seconds("webhooks.retry_seconds"),
    }
}

fn read_sending(reader: &mut Reader<'_>) -> Option<SendingSettings> {
    let unverifiable = reader.choice(
        "sending.unverifiable",
        &[("fail", Unverifiable::Fail), ("retry", Unverifiable::Retry)],
    );
    Some(SendingSettings {
        retry: reader.list_of_seconds("sending.retry_seconds"),
        connect: reader.seconds("sending.connect_seconds"),
        command: reader.seconds("sending.command_seconds"),
        data: reader.seconds("sending.data_seconds"),
        idle_connection: reader.seconds("sending.idle_connection_seconds"),
        oauth: reader.seconds("sending.oauth_seconds"),
        unverifiable: unverifiable?,
    })
}
