//! `mailgate dev`: the whole gateway on one machine, with only the binary and the Postgres programs.

mod demo;
mod home;
mod seed;

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::ExposeSecret;
use serde_json::json;
use toml::{Table, Value};

use crate::daemon::{self, Daemon, DaemonError};
use demo::{Demo, DemoError};
use home::{Home, HomeError};
use mailgate_sandbox::certificates::{self, CertificateError, CertificateFiles};
use mailgate_sandbox::postgres::{self, Durability, PostgresError, PrivatePostgres};
use mailgate_sandbox::provider::{self, SandboxError, SandboxProvider};
use mailgate_server::http::connectable;
use mailgate_server::shutdown::Shutdown;
use mailgate_server::tls::{self, ServerCertificate, ServerTlsError};
use mailgate_settings::{ConfigError, Settings};
use mailgate_types::clock::{SharedClock, SystemClock};
use mailgate_types::database_clock::DatabaseClock;
use seed::{Seed, SeedError};

const DATABASE: &str = "mailgate";

/// The command-line options.
#[derive(Debug)]
pub struct DevOptions {
    /// Where the state is stored.
    pub directory: PathBuf,
    /// Delete the state on exit.
    pub ephemeral: bool,
    /// Fill the sandbox with a fortnight of mail, once.
    pub seed: bool,
    /// A configuration file.
    pub config: Option<PathBuf>,
}

/// Why `mailgate dev` fails. Each message includes the remedy.
#[derive(Debug, thiserror::Error)]
pub enum DevError {
    /// The settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The folder.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The gateway exited with this error.
    #[error("{0}")]
    Failed(String),
    /// The database.
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    /// Another database is configured; a demo account must not be created there.
    #[error(
        "database.url: mailgate dev has a database of its own and touches no other; remove MAILGATE__DATABASE__URL from the environment, or database.url from the file"
    )]
    ForeignDatabase,
    /// The database server exited.
    #[error("the private Postgres has ended: {0}")]
    PostgresDied(String),
    /// The certificates.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// Loading the certificates.
    #[error(transparent)]
    Tls(#[from] ServerTlsError),
    /// The mail provider.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The gateway.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The demo.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// The seed.
    #[error(transparent)]
    Seed(#[from] SeedError),
    /// Signals.
    #[error("signals can't be listened to: {0}")]
    Signals(#[from] std::io::Error),
}

/// The sandbox's settings, in the sandbox's own type.
#[must_use]
pub fn provider_settings(settings: &Settings) -> provider::Settings {
    let sandbox = &settings.sandbox;
    provider::Settings {
        listen: sandbox.listen,
        smtp_listen: sandbox.smtp_listen,
        access_token_seconds: sandbox.access_token_seconds,
        plugin_a: sandbox.plugin_a,
        plugin_b: sandbox.plugin_b,
        base_urls: vec![settings.http_base_url.clone()],
    }
}

/// Runs until a signal stops it.
pub async fn run(options: DevOptions) -> Result<(), DevError> {
    let clock: SharedClock = Arc::new(SystemClock);
    // Reports invalid settings before anything starts; values known only later have placeholders. The plugins are off
    // until the provider's addresses are known.
    let early = load(&options, preset_before_start(), Table::new())?;
    mailgate_telemetry::start_logging_by(&early.log, &early.seal_keys);
    let home = Home::open(&options.directory, options.ephemeral)?;
    let names = early.certificate_names().into_iter();
    let names: Vec<String> = names.map(|called| called.name).collect();
    let files = certificates::ensure(home.state(), &names, clock.now())?;
    let durability = if options.ephemeral {
        Durability::Throwaway
    } else {
        Durability::Durable
    };
    eprintln!(
        "Starting a private Postgres in {} …",
        home.state().display()
    );
    let database = postgres::start(home.state(), durability).await?;
    let run = with_database(&options, &home, &database, &files, &early, &clock);
    let run = Box::pin(run).await;
    database.stop().await;
    run
}

async fn with_database(
    options: &DevOptions,
    home: &Home,
    database: &PrivatePostgres,
    files: &CertificateFiles,
    early: &Settings,
    clock: &SharedClock,
) -> Result<(), DevError> {
    database.ensure_database(DATABASE).await?;
    let certificate = ServerCertificate::load(&files.certificate, &files.key)?;
    // The provider outlives the gateway, which may still send mail during shutdown.
    let sandbox_shutdown = Shutdown::default();
    let provider = provider::start(
        &provider_settings(early),
        &home.state().join("sandbox"),
        tls::acceptor(Arc::new(certificate))?,
        Arc::clone(clock),
        &sandbox_shutdown,
    )
    .await?;
    let preset = preset(&database.url(DATABASE), &home.seal_key()?, files);
    let mut settings = load(options, preset, sandbox_sections(early, &provider, files))?;
    settings.http_own_hosts_only = true;
    settings.portal.shows_components = true;
    if settings.database.url.expose_secret() != database.url(DATABASE) {
        return Err(DevError::ForeignDatabase);
    }
    let shutdown = Shutdown::new(settings.shutdown);
    let place = Place {
        home,
        database,
        files,
        is_seeded: options.seed,
    };
    let run = Box::pin(serve(&place, &provider, settings, clock, &shutdown)).await;
    let finished = shutdown.finish().await;
    sandbox_shutdown.finish().await?;
    run.and(finished.map_err(DevError::from))?;
    match shutdown.failure() {
        Some(why) => Err(DevError::Failed(why.to_owned())),
        None => Ok(()),
    }
}

/// What is this run's own.
struct Place<'a> {
    home: &'a Home,
    database: &'a PrivatePostgres,
    files: &'a CertificateFiles,
    /// Whether it is to have a fortnight of mail.
    is_seeded: bool,
}

async fn serve(
    place: &Place<'_>,
    provider: &SandboxProvider,
    settings: Settings,
    clock: &SharedClock,
    shutdown: &Shutdown,
) -> Result<(), DevError> {
    let Place { home, database, .. } = place;
    let smtp_host = settings.smtp.host.clone();
    let retention = settings.log_retention_days;
    let billed_here = settings
        .payprov
        .as_ref()
        .is_some_and(|payprov| payprov.base_url == provider.payments.url());
    let clock: SharedClock = Arc::new(DatabaseClock::new(Arc::clone(clock)));
    let daemon = daemon::start(settings, Arc::clone(&clock), shutdown).await?;
    if billed_here {
        provider.payments.tell(&format!(
            "http://{}/payprov/webhook",
            connectable(daemon.http_address)
        ));
    }
    let seed = if place.is_seeded {
        Seed::wanted(home, clock.now(), retention)?
    } else {
        None
    };
    let beginning = seed.as_ref().map(Seed::beginning);
    let demo = demo::ensure(home, &daemon, provider, beginning).await?;
    if let Some(seed) = seed {
        println!("{}", seed.sow(home, &daemon, provider, &demo).await?);
    }
    let portal_url = demo::portal_url(&daemon, &demo).await?;
    let announcement = announcement(
        &daemon,
        &demo,
        portal_url.as_deref(),
        provider,
        &place.files.ca,
        &smtp_host,
        &database.url(DATABASE),
    );
    let path = home.announce(&announcement)?;
    let payments = billed_here.then(|| provider.payments.url());
    println!(
        "{}",
        screen(
            &daemon,
            &demo,
            portal_url.as_deref(),
            provider,
            payments,
            &smtp_host,
            &path
        )
    );
    tokio::select! {
        requested = shutdown.requested() => {
            eprintln!("Stopping: finishing the work in progress …");
            requested.map_err(DevError::from)
        }
        how = database.died() => Err(DevError::PostgresDied(how)),
    }
}

fn load(options: &DevOptions, mut preset: Table, sections: Table) -> Result<Settings, ConfigError> {
    preset.extend(sections);
    mailgate_settings::load(preset, options.config.as_deref(), std::env::vars_os())
}

/// The settings that point to the sandbox. If `early` has a payment provider or a relay of its own, the sandbox's is
/// left out: a real key must not be sent to it.
fn sandbox_sections(
    early: &Settings,
    provider: &SandboxProvider,
    files: &CertificateFiles,
) -> Table {
    let mut sections = Table::new();
    let mut section = |name: &str, section: Table| {
        sections.insert(name.to_owned(), Value::Table(section));
    };
    section("plugins", provider.reading_plugins(&files.ca));
    if early.payprov.is_none() {
        section("payprov", provider.payments.section());
    }
    if early.relay.is_none() {
        section("relay", provider.relay(&files.ca));
    }
    sections
}

/// Placeholders for settings that are known only once the sandbox is running.
fn preset_before_start() -> Table {
    let nowhere = CertificateFiles {
        ca: PathBuf::from("-"),
        certificate: PathBuf::from("-"),
        key: PathBuf::from("-"),
    };
    let no_key = format!("dev:{}=", "A".repeat(43));
    preset("postgres://localhost/-", &no_key, &nowhere)
}

fn preset(database_url: &str, seal_key: &str, files: &CertificateFiles) -> Table {
    let text = |value: &str| Value::String(value.to_owned());
    let section = |entries: Vec<(&str, Value)>| {
        Value::Table(
            entries
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        )
    };
    Table::from_iter([
        (
            "database".to_owned(),
            section(vec![("url", text(database_url))]),
        ),
        (
            "seal".to_owned(),
            section(vec![("keys", Value::Array(vec![text(seal_key)]))]),
        ),
        (
            "tls".to_owned(),
            section(vec![
                ("certificate", text(&files.certificate.to_string_lossy())),
                ("key", text(&files.key.to_string_lossy())),
            ]),
        ),
        (
            "http".to_owned(),
            section(vec![("listen", text("127.0.0.1:8080"))]),
        ),
        (
            "smtp".to_owned(),
            section(vec![
                ("starttls_listen", text("127.0.0.1:2587")),
                ("tls_listen", text("127.0.0.1:2465")),
            ]),
        ),
        (
            "webhooks".to_owned(),
            section(vec![("allow_private", Value::Boolean(true))]),
        ),
        // Nobody waits a minute for the sandbox's bounces and replies.
        (
            "mailboxes".to_owned(),
            section(vec![("replies_seconds", Value::Integer(5))]),
        ),
        // A developer's own test account may have no webhook endpoint.
        (
            "payprov".to_owned(),
            section(vec![("accept_unsigned", Value::Boolean(true))]),
        ),
        // Development machines have no scraper; this leaves the address free.
        ("metrics".to_owned(), section(vec![("listen", text(""))])),
    ])
}

fn announcement(
    daemon: &Daemon,
    demo: &Demo,
    portal_url: Option<&str>,
    provider: &SandboxProvider,
    ca_file: &Path,
    smtp_host: &str,
    database_url: &str,
) -> String {
    let value = json!({
        "base_url": daemon.base_url,
        "portal_url": portal_url,
        "connect_url": connect_url(daemon, demo),
        "smtp": {
            "host": smtp_host,
            "starttls_port": daemon.starttls_address.map(|address| address.port()),
            "tls_port": daemon.tls_address.map(|address| address.port()),
        },
        "ca_file": ca_file,
        "database_url": database_url,
        "sandbox_url": provider.url(),
        "subscriber": {
            "subscriber_id": demo.app.subscriber.to_string(),
            "api_secret": demo.api_secret(),
        },
        "app": {
            "id": demo.app.app.to_string(),
            "app_id": demo.app.slug,
            "pushable_key": demo.app.pushable_key.expose(),
            "send_key": demo.app.send_key.expose(),
        },
        "mailbox": {
            "email": demo.mailbox.email,
            "plugin": demo.plugin.as_str(),
            "user_key": demo.mailbox.user_key.to_string(),
            "credential_id": demo.mailbox.credential.to_string(),
        },
    });
    format!("{value:#}\n")
}

/// The demo app's connect link.
fn connect_url(daemon: &Daemon, demo: &Demo) -> String {
    let pushable_key = demo.app.pushable_key.expose();
    format!("{}/connect/{pushable_key}", daemon.base_url)
}

/// The text shown to a newcomer once everything is ready.
fn screen(
    daemon: &Daemon,
    demo: &Demo,
    portal_url: Option<&str>,
    provider: &SandboxProvider,
    payments: Option<&str>,
    smtp_host: &str,
    announcement: &Path,
) -> String {
    let (send_key, pk) = (demo.app.send_key.expose(), demo.app.pushable_key.expose());
    let base_url = &daemon.base_url;
    let mut text = String::new();
    let mut line = |words: std::fmt::Arguments<'_>| {
        // Writing to a `String` can't fail.
        let _ = writeln!(text, "{words}");
    };
    let port = |address: Option<SocketAddr>| {
        address.map_or_else(|| "off".to_owned(), |address| address.port().to_string())
    };
    line(format_args!("\nMailgate is ready.\n"));
    if let Some(portal_url) = portal_url {
        line(format_args!("  Portal    {portal_url}"));
    }
    line(format_args!("  REST      {base_url}"));
    line(format_args!(
        "  SMTP      {smtp_host}, port {} (STARTTLS) and {} (TLS)",
        port(daemon.starttls_address),
        port(daemon.tls_address)
    ));
    line(format_args!(
        "  Sandbox   {}   received mail",
        provider.url()
    ));
    if let Some(payments) = payments {
        line(format_args!(
            "  Payments  {payments}   ends the trial, lets payments fail"
        ));
    }
    line(format_args!(
        "  Mailbox   {} ({})",
        demo.mailbox.email, demo.plugin
    ));
    // The demo user has a mailbox of the other plugin, which a bare link can't replace.
    line(format_args!(
        "  Connect   {}?plugin=plugin_b   connects a mailbox, as your users would",
        connect_url(daemon, demo)
    ));
    line(format_args!("  app_id    {}", demo.app.slug));
    line(format_args!("  pk        {pk}"));
    line(format_args!("  send_key  {send_key}"));
    line(format_args!("  secret    {}", demo.api_secret()));
    line(format_args!("  API       {base_url}/docs"));
    line(format_args!("  All of it {}\n", announcement.display()));
    line(format_args!("Send by REST:\n"));
    line(format_args!(
        "  curl -w '\\n' {base_url}/send -H 'X-Send-Key: {send_key}' -H 'Content-Type: application/json' \
         -d '{{\"pk\":\"{pk}\",\"to\":\"bob@example.com\",\"subject\":\"Hello\",\"body\":\"It works.\"}}'\n"
    ));
    if let Some(address) = daemon.starttls_address {
        line(format_args!("Send by SMTP:\n"));
        line(format_args!(
            "  swaks --server {} --port {} --tls --auth PLAIN --auth-user {} --auth-password {send_key} \
             --from {} --to bob@example.com --header 'Subject: Hello'\n",
            connectable(address).ip(),
            address.port(),
            demo.app.slug,
            demo.mailbox.email,
        ));
    }
    line(format_args!(
        "Receive webhooks (a receiver on port 9000 of this machine, as in examples/README.md):\n"
    ));
    line(format_args!(
        "  curl -w '\\n' {base_url}/apps/{pk}/webhooks -H 'X-Api-Secret: {}' -H 'Content-Type: application/json' \
         -d '{{\"url\":\"http://127.0.0.1:9000/\",\"events\":[\"email.sent\",\"email.failed_perm\"]}}'\n",
        demo.api_secret(),
    ));
    line(format_args!(
        "Then open {}. Press Ctrl-C to stop.",
        provider.url()
    ));
    text
}
