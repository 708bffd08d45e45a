//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Parser, Subcommand};
use mailgate::daemon::health::{self, HealthError};
use mailgate::daemon::reload::Reload;
use mailgate::daemon::systemd::{self, Inherited};
use mailgate::daemon::{self, DaemonError};
#[cfg(feature = "dev")]
use mailgate::dev::{self, DevError, DevOptions};
use mailgate::operator::apps::AppsAction;
use mailgate::operator::certificates::CertificatesAction;
use mailgate::operator::mailboxes::MailboxesAction;
use mailgate::operator::queue::QueueAction;
use mailgate::operator::subscribers::SubscriberAction;
use mailgate::operator::{self, OperatorError};
use mailgate_rest::openapi_json;
use mailgate_server::shutdown::Shutdown;
use mailgate_settings::{ConfigError, LogFormat};
use mailgate_storage::database::pool;
use mailgate_storage::database::pool::PoolError;
use mailgate_storage::database::tables;
use mailgate_types::database_clock::DatabaseClock;
use toml::Table;

/// The commit that this was built from, if the build set it.
const COMMIT: &str = match option_env!("MAILGATE_COMMIT") {
    Some(commit) => commit,
    None => UNKNOWN,
};

const UNKNOWN: &str = "unknown";

/// The version string of `mailgate --version`.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    if COMMIT == UNKNOWN {
        return version.to_owned();
    }
    format!("{version} ({COMMIT})")
});

/// How long shutdown waits for tasks that can't be cancelled.
const LEFT_OVER: Duration = Duration::from_secs(1);

/// Whether `serve` logs JSON.
static LOGS_JSON: AtomicBool = AtomicBool::new(false);

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Sends mail through the end users' own connected OAuth mailboxes.
#[derive(Parser)]
#[command(version = VERSION.as_str())]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the gateway. Needs database.url, seal.keys, and tls.certificate and tls.key or acme.challenge.
    Serve {
        /// A TOML file of settings over the defaults (config/default.toml shows them all).
        #[arg(long, env = "MAILGATE_CONFIG")]
        config: Option<PathBuf>,
    },
    /// Run the gateway with a private Postgres, certificates and a sandbox mail provider.
    #[cfg_attr(not(feature = "dev"), command(hide = true))]
    Dev {
        /// Where its state lives.
        #[arg(long, default_value = ".mailgate")]
        dir: PathBuf,
        /// Start empty, and delete the state at the end.
        #[arg(long)]
        ephemeral: bool,
        /// Fill it, once, with a fortnight of three apps: mailboxes, messages, bounces, webhooks, an audit trail.
        #[arg(long)]
        seed: bool,
        /// A TOML file of settings over the defaults.
        #[arg(long, env = "MAILGATE_CONFIG")]
        config: Option<PathBuf>,
    },
    /// Manage subscribers, the accounts that own apps. Needs database.url and seal.keys.
    Subscriber {
        #[command(subcommand)]
        action: SubscriberAction,
        /// Answer with JSON.
        #[arg(long, global = true)]
        json: bool,
        /// A TOML file of settings over the defaults.
        #[arg(long, env = "MAILGATE_CONFIG", global = true)]
        config: Option<PathBuf>,
    },
    /// Reseal all stored secrets with the first of seal.keys, while gateways run, so that the other
    /// keys can be removed. Needs database.url and seal.keys.
    Reseal {
        /// Answer with JSON.
        #[arg(long)]
        json: bool,
        /// A TOML file of settings over the defaults.
        #[arg(long, env = "MAILGATE_CONFIG")]
        config: Option<PathBuf>,
    },
    /// List, show, retry and cancel messages that wait in the queue. Needs database.url and seal.keys.
    Queue {
        #[command(subcommand)]
        action: QueueAction,
        /// Answer with JSON.
        #[arg(long, global = true)]
        json: bool,
        /// A TOML file of settings over the defaults.
        #[arg(long, env = "MAILGATE_CONFIG", global = true)]
        config: Option<PathBuf>,
    },
    /// List the apps of all subscribers, or of one. Needs database.url and seal.keys.
    Apps {
        #[command(subcommand)]
        action: AppsAction,
        /// Answer with JSON.
        #[arg(long, global = true)]
        json: bool,
        /// A TOML file of settings over the defaults.
        #[arg(long, env = "MAILGATE_CONFIG", global = true)]
        config: Option<PathBuf>,
    },
    /// List the mailboxes of all apps, or those in trouble. Needs database.url and seal.keys.
    Mailboxes {
        #[command(subcommand)]
        action: MailboxesAction,
        /// Answer with JSON.
        #[arg(long, global = true)]
        json: bool,
        /// A TOML file of settings over the defaults.
        #[arg(long, env = "MAILGATE_CONFIG", global = true)]
        config: Option<PathBuf>,
    },
    /// List the certificates from an ACME server, or have them renewed. Needs database.url and seal.keys.
    Certificates {
        #[command(subcommand)]
        action: CertificatesAction,
        /// Answer with JSON.
        #[arg(long, global = true)]
        json: bool,
        /// A TOML file of settings over the defaults.
        #[arg(long, env = "MAILGATE_CONFIG", global = true)]
        config: Option<PathBuf>,
    },
    /// Trust the database's clock although it has moved on by more than a week since a gateway last ran, so that gateways
    /// delete by age again. Needs database.url and seal.keys.
    TrustClock {
        /// Answer with JSON.
        #[arg(long)]
        json: bool,
        /// A TOML file of settings over the defaults.
        #[arg(long, env = "MAILGATE_CONFIG")]
        config: Option<PathBuf>,
    },
    /// Check the settings, the database, the certificate, the clock, and whether the providers can be reached: exit
    /// code 0 if all is well, 1 if anything isn't, 2 if the settings are wrong. Needs all that serve needs.
    Check {
        /// Answer with JSON.
        #[arg(long)]
        json: bool,
        /// A TOML file of settings over the defaults.
        #[arg(long, env = "MAILGATE_CONFIG")]
        config: Option<PathBuf>,
    },
    /// Check whether the gateway on this machine is ready: exit code 0 if so, otherwise 1. Needs http.listen.
    Healthcheck {
        /// A TOML file of settings over the defaults.
        #[arg(long, env = "MAILGATE_CONFIG")]
        config: Option<PathBuf>,
    },
    #[command(about = "Print the description of the REST interface (OpenAPI 3.1, JSON)")]
    Openapi,
    /// Bring the database's tables up to date (serve does so too). Needs database.url.
    Migrate {
        /// A TOML file of settings over the defaults.
        #[arg(long, env = "MAILGATE_CONFIG")]
        config: Option<PathBuf>,
    },
}

/// An error that ends the process.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    #[cfg(feature = "dev")]
    #[error(transparent)]
    Dev(#[from] DevError),
    #[cfg(not(feature = "dev"))]
    #[error(
        "this binary is for production and has no sandbox: build it with `cargo build --features dev`, or run `make dev` in the sources"
    )]
    NoDev,
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Operator(#[from] OperatorError),
    #[error(transparent)]
    Health(#[from] HealthError),
    #[error(transparent)]
    HealthConfig(ConfigError),
    #[error("{0}")]
    Ended(String),
    #[error(
        "a second signal cut off {0} tasks: what was being sent is looked up, and a request without an answer may be sent again"
    )]
    CutOff(usize),
    #[error("the runtime can't be started: {0}")]
    Io(#[from] std::io::Error),
}

impl Failure {
    /// 2: the settings are wrong; 1: anything else.
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::Operator(OperatorError::Config(_)) => ExitCode::from(2),
            #[cfg(feature = "dev")]
            Self::Dev(DevError::Config(_)) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // ring is the process's only crypto provider; installing it again has no effect.
    drop(rustls::crypto::ring::default_provider().install_default());
    let serves = matches!(arguments.command, Command::Serve { .. });
    match run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let logs_json = match &failure {
                Failure::Config(error) => error.logs_json,
                _ => LOGS_JSON.load(Ordering::Relaxed),
            };
            report(&failure, serves && logs_json);
            failure.exit_code()
        }
    }
}

/// Reports why the process ends: as JSON if the log is JSON.
fn report(failure: &Failure, logs_json: bool) {
    if logs_json {
        // It was logged when it happened.
        if matches!(failure, Failure::Ended(_)) {
            return;
        }
        mailgate_telemetry::start_logging(LogFormat::Json, "error", None);
        // Overrides the configured filter.
        mailgate_telemetry::set_filter("error");
    }
    for line in failure.to_string().lines() {
        if logs_json {
            tracing::error!("{line}");
        } else {
            eprintln!("mailgate: {line}");
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(async {
        match command {
            Command::Serve { config } => serve(config).await,
            #[cfg(feature = "dev")]
            Command::Dev {
                dir,
                ephemeral,
                seed,
                config,
            } => {
                let options = DevOptions {
                    directory: dir,
                    ephemeral,
                    seed,
                    config,
                };
                Ok(Box::pin(dev::run(options)).await?)
            }
            #[cfg(not(feature = "dev"))]
            Command::Dev { .. } => Err(Failure::NoDev),
            Command::Migrate { config } => migrate(config).await,
            Command::Healthcheck { config } => healthcheck(config).await,
            Command::Subscriber {
                action,
                json,
                config,
            } => Ok(operator::subscribers::run(&action, json, config.as_deref()).await?),
            Command::Reseal { json, config } => {
                Ok(operator::reseal::run(json, config.as_deref()).await?)
            }
            Command::Queue {
                action,
                json,
                config,
            } => Ok(operator::queue::run(&action, json, config.as_deref()).await?),
            Command::Apps {
                action,
                json,
                config,
            } => Ok(operator::apps::run(&action, json, config.as_deref()).await?),
            Command::Mailboxes {
                action,
                json,
                config,
            } => Ok(operator::mailboxes::run(&action, json, config.as_deref()).await?),
            Command::Certificates {
                action,
                json,
                config,
            } => Ok(operator::certificates::run(&action, json, config.as_deref()).await?),
            Command::TrustClock { json, config } => {
                Ok(operator::trust_clock::run(json, config.as_deref()).await?)
            }
            Command::Check { json, config } => {
                Ok(operator::check::run(json, config.as_deref()).await?)
            }
            Command::Openapi => {
                println!("{}", openapi_json());
                Ok(())
            }
        }
    });
    // A DNS lookup in progress can't be cancelled, and its result is no longer needed.
    runtime.shutdown_timeout(LEFT_OVER);
    ended
}

async fn serve(file: Option<PathBuf>) -> Result<(), Failure> {
    let settings = mailgate_settings::load(Table::new(), file.as_deref(), std::env::vars_os())?;
    LOGS_JSON.store(settings.log.format == LogFormat::Json, Ordering::Relaxed);
    mailgate_telemetry::start_logging_by(&settings.log, &settings.seal_keys);
    let reload = Reload::new(file, settings.fingerprint.clone())?;
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(version, commit = COMMIT, "mailgate starts");
    if let Err(error) = mailgate_telemetry::open_files::raise() {
        tracing::warn!(%error, "the limit of open files can't be raised");
    }
    let warnings = daemon::warnings(&settings);
    let shutdown = Shutdown::new(settings.shutdown);
    let clock = DatabaseClock::shared();
    let started = match Inherited::take() {
        Ok(inherited) => daemon::start_on(inherited, settings, clock, &shutdown).await,
        Err(error) => Err(error),
    };
    match &started {
        Ok(daemon) => {
            tracing::info!(
                http = %daemon.http_address,
                starttls = daemon.starttls_address.map(tracing::field::display),
                tls = daemon.tls_address.map(tracing::field::display),
                "mailgate serves"
            );
            for warning in warnings {
                tracing::warn!("{warning}");
            }
            let follow = reload.run(daemon.certificate_file.clone(), shutdown.soft.clone());
            shutdown.spawn_vital("SIGHUP", follow);
            systemd::ready(&shutdown);
            shutdown.requested().await?;
            systemd::stopping();
            tracing::info!("finishing the work in progress");
        }
        Err(_) => shutdown.soft.cancel(),
    }
    let cut = shutdown.finish().await?;
    started?;
    match (shutdown.failure(), cut) {
        (Some(why), _) => Err(Failure::Ended(why.to_owned())),
        (None, 0) => Ok(()),
        (None, cut) => Err(Failure::CutOff(cut)),
    }
}

async fn migrate(file: Option<PathBuf>) -> Result<(), Failure> {
    let settings = mailgate_settings::load_database(file.as_deref(), std::env::vars_os())?;
    let pool = pool::connect(&settings).await?;
    let migrated = tables::migrate(&pool).await;
    pool::close(&pool).await;
    migrated?;
    println!("The database's tables are up to date.");
    Ok(())
}

/// Invalid settings give 1 too: container engines reserve 2.
async fn healthcheck(file: Option<PathBuf>) -> Result<(), Failure> {
    let listen = mailgate_settings::load_http_listen(file.as_deref(), std::env::vars_os())
        .map_err(Failure::HealthConfig)?;
    Ok(health::check(listen).await?)
}
