//! Builds the gateway from its settings and spawns all of it on one tracker.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::serve::ListenerExt;
use sqlx::PgPool;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::accounts::Accounts;
use crate::config::Settings;
use crate::mailboxes::Mailboxes;
use crate::providers::mail::{MailProviders, ProviderError};
use crate::rest::{Doors, router};
use crate::sending::Sending;
use crate::sending::journal::journal;
use crate::shutdown::Shutdown;
use crate::smtp::connection::ConnectionSettings;
use crate::smtp::listener::{self, ConnectionLimits};
use crate::smtp::submission::{Submission, session_settings};
use crate::smtp::tls::{self, ServerTlsError};
use crate::storage::pool::{self, PoolError};
use crate::telemetry;
use crate::types::clock::SharedClock;
use crate::workers::{self, PartitionError};

/// The gateway can't start. Each text is one line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Its certificate.
    #[error(transparent)]
    Tls(#[from] ServerTlsError),
    /// Its database.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The log's partitions.
    #[error(transparent)]
    Partitions(#[from] PartitionError),
    /// A mail provider.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// An address to listen on.
    #[error("{setting}: can't listen on {address}: {source}; give {setting} another address")]
    Listen {
        /// The setting.
        setting: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
}

/// A gateway that runs.
#[derive(Debug)]
pub struct Daemon {
    /// The database.
    pub pool: PgPool,
    /// Subscribers and apps.
    pub accounts: Accounts,
    /// Connected mailboxes.
    pub mailboxes: Mailboxes,
    /// Where REST listens.
    pub http_address: SocketAddr,
    /// Where users reach the REST interface.
    pub base_url: String,
    /// Where submission with STARTTLS listens.
    pub starttls_address: Option<SocketAddr>,
    /// Where submission with implicit TLS listens.
    pub tls_address: Option<SocketAddr>,
}

/// Starts the gateway; returns once it serves. It ends with `shutdown`.
///
/// # Errors
///
/// [`DaemonError`]; nothing runs then but what `shutdown` ends.
pub async fn start(
    settings: Settings,
    clock: SharedClock,
    shutdown: &Shutdown,
) -> Result<Daemon, DaemonError> {
    let acceptor = tls::acceptor(&settings.tls_certificate, &settings.tls_key)?;
    let http = bind("http.listen", settings.http_listen).await?;
    let starttls = bind_some("smtp.starttls_listen", settings.smtp.starttls_listen).await?;
    let implicit = bind_some("smtp.tls_listen", settings.smtp.tls_listen).await?;
    let metrics = bind_some("metrics.listen", settings.metrics_listen).await?;
    let hostname: Arc<str> = settings.smtp.host.as_str().into();
    let providers = Arc::new(MailProviders::new(
        &settings.plugins,
        &settings.sending,
        &hostname,
        &clock,
    )?);

    let pool = pool::connect(&settings.database).await?;
    pool::migrate(&pool).await?;
    workers::ensure_partitions(&pool, &clock).await?;

    let tracker = &shutdown.tracker;
    let limits = Arc::new(settings.limits);
    let seal_keys = Arc::new(settings.seal_keys);
    let accounts = Accounts::new(
        pool.clone(),
        Arc::clone(&seal_keys),
        Arc::clone(&clock),
        limits.authentication_failures_per_minute,
    );
    let mailboxes = Mailboxes::new(
        pool.clone(),
        seal_keys,
        Arc::clone(&clock),
        Arc::clone(&providers),
        tracker.clone(),
    );
    let (journal, journal_task) = journal(pool.clone());
    tracker.spawn(journal_task.run());
    let sending = Sending::new(
        pool.clone(),
        Arc::clone(&clock),
        Arc::clone(&providers),
        mailboxes.clone(),
        journal,
        Arc::new(settings.sending),
        tracker.clone(),
    );

    let doors = Doors {
        pool: pool.clone(),
        accounts: accounts.clone(),
        mailboxes: mailboxes.clone(),
        sending: sending.clone(),
        limits: Arc::clone(&limits),
        clock: Arc::clone(&clock),
    };
    let http_address = local_address("http.listen", &http, settings.http_listen)?;
    serve_http(http, router(doors, settings.http_request), shutdown);
    if let Some(listener) = metrics {
        match telemetry::start_metrics() {
            Ok(handle) => serve_http(listener, telemetry::metrics_router(handle), shutdown),
            Err(error) => tracing::warn!(%error, "metrics are not served"),
        }
    }

    let submission = Submission {
        accounts: accounts.clone(),
        mailboxes: mailboxes.clone(),
        sending: sending.clone(),
        hostname: Arc::clone(&hostname),
        clock: Arc::clone(&clock),
    };
    let session = Arc::new(session_settings(&hostname, &limits));
    let places =
        ConnectionLimits::new(limits.smtp_connections, limits.smtp_connections_per_address);
    let mut addresses = [None, None];
    for ((listener, implicit_tls), address) in [(starttls, false), (implicit, true)]
        .into_iter()
        .zip(&mut addresses)
    {
        let Some(listener) = listener else { continue };
        *address = listener.local_addr().ok();
        let connection = ConnectionSettings {
            session: Arc::clone(&session),
            tls: acceptor.clone(),
            implicit_tls,
            command: limits.smtp_command,
            content_idle: limits.smtp_data_idle,
        };
        tracker.spawn(listener::run(
            listener,
            connection,
            submission.clone(),
            places.clone(),
            tracker.clone(),
            shutdown.soft.clone(),
            shutdown.hard.clone(),
        ));
    }
    let [starttls_address, tls_address] = addresses;

    tracker.spawn(workers::retry(sending, providers, shutdown.soft.clone()));
    tracker.spawn(workers::keep_partitions(
        pool.clone(),
        clock,
        settings.log_retention_days,
        shutdown.soft.clone(),
    ));

    let base_url = if settings.http_base_url.is_empty() {
        format!("http://{http_address}")
    } else {
        settings.http_base_url
    };
    Ok(Daemon {
        pool,
        accounts,
        mailboxes,
        http_address,
        base_url,
        starttls_address,
        tls_address,
    })
}

async fn bind_some(
    setting: &'static str,
    address: Option<SocketAddr>,
) -> Result<Option<TcpListener>, DaemonError> {
    match address {
        Some(address) => bind(setting, address).await.map(Some),
        None => Ok(None),
    }
}

/// Listens on the address of a setting.
///
/// # Errors
///
/// [`DaemonError::Listen`].
pub async fn bind(setting: &'static str, address: SocketAddr) -> Result<TcpListener, DaemonError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| DaemonError::Listen {
            setting,
            address,
            source,
        })
}

fn local_address(
    setting: &'static str,
    listener: &TcpListener,
    address: SocketAddr,
) -> Result<SocketAddr, DaemonError> {
    listener.local_addr().map_err(|source| DaemonError::Listen {
        setting,
        address,
        source,
    })
}

fn serve_http(listener: TcpListener, router: Router, shutdown: &Shutdown) {
    let (soft, hard) = (shutdown.soft.clone(), shutdown.hard.clone());
    shutdown
        .tracker
        .spawn(run_http(listener, router, soft, hard));
}

/// Serves a router until `stop`, and to its last answer unless `end` comes first.
pub async fn run_http(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
    end: CancellationToken,
) {
    // Small answers must not wait for a delayed acknowledgement.
    let listener = listener.tap_io(|socket| {
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "a connection had ended before it was served");
        }
    });
    let serve =
        axum::serve(listener, router).with_graceful_shutdown(async move { stop.cancelled().await });
    tokio::select! {
        served = serve => {
            if let Err(error) = served {
                tracing::error!(%error, "an HTTP listener ended");
            }
        }
        () = end.cancelled() => {}
    }
}
