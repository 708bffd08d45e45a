//! Builds the gateway from its settings and spawns all its tasks on one tracker.

pub mod health;
mod loops;
mod pages;
pub mod reload;
mod sockets;
pub mod systemd;
mod warnings;

use std::net::SocketAddr;
use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;
use sqlx::PgPool;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use self::loops::{
    keep_refusals, keep_sending, look_after, mailed_links, own_mail, relay, start_billing,
    start_journal, start_sign_in_mail, start_webhooks, watch_database, watch_expiries,
};
use self::systemd::Inherited;
pub use self::warnings::warnings;
use crate::certificates::{Shown, Source, StartError, expiry};
use crate::smtp::backend::{SubmissionBackend, session_settings};
use crate::workers::{self, PartitionError, Retention};
use mailgate_domain::accounts::{Accounts, ShowError};
use mailgate_domain::billing::Billing;
use mailgate_domain::certificates::Certificates;
use mailgate_domain::mailboxes::Mailboxes;
use mailgate_domain::reports::Reports;
use mailgate_domain::sending::accept::budget::in_flight;
use mailgate_domain::sending::accept::quota::Quota;
use mailgate_domain::sending::queue::Queue;
use mailgate_domain::sending::{self, Sending};
use mailgate_domain::webhooks::Webhooks;
use mailgate_providers::egress::EgressSetupError;
use mailgate_providers::mail::{MailProviders, ProviderError};
use mailgate_providers::payprov::PayprovClientError;
use mailgate_providers::relay::RelayError;
use mailgate_rest::{AppState, Shared, Visits};
use mailgate_server::ListenError;
use mailgate_server::http::{self, HttpLimits};
use mailgate_server::own_hosts::OwnHosts;
use mailgate_server::shutdown::Shutdown;
use mailgate_server::stranger::{Strangers, strangers};
use mailgate_server::tls::{ServerCertificate, ServerTlsError};
use mailgate_settings::{Limits, Settings, SmtpSettings};
use mailgate_smtp::connection::ConnectionSettings;
use mailgate_smtp::listener::{self, ConnectionLimits};
use mailgate_smtp::protocol::session::SessionSettings;
use mailgate_storage::database::pool;
use mailgate_storage::database::pool::PoolError;
use mailgate_storage::database::tables;
use mailgate_telemetry::top_subscribers::TopSubscribers;
use mailgate_types::clock::SharedClock;
use mailgate_types::ids::GatewayId;
use mailgate_types::lease::Lease;
use mailgate_types::shared_places::SharedPlaces;
use mailgate_types::trusted_peers::TrustedPeers;
use sockets::Listeners;

/// Why the gateway can't start. Each text is one line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Its certificate.
    #[error(transparent)]
    Tls(#[from] ServerTlsError),
    /// Certificates from an ACME server.
    #[error(transparent)]
    Certificates(#[from] StartError),
    /// Its database.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The log's partitions.
    #[error(transparent)]
    Partitions(#[from] PartitionError),
    /// Its sealing keys.
    #[error("seal.keys: these are not the keys of this database: {0}")]
    SealKeys(#[from] ShowError),
    /// A mail provider.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The client for webhooks.
    #[error(transparent)]
    Egress(#[from] EgressSetupError),
    /// The payment provider.
    #[error(transparent)]
    Payprov(#[from] PayprovClientError),
    /// The relay for its own mail.
    #[error(transparent)]
    Relay(#[from] RelayError),
    /// An inherited socket can't be used.
    #[error("the socket {name:?} that was handed over can't be used: {why}")]
    Inherited {
        /// Its name.
        name: String,
        /// Why it can't be used.
        why: String,
    },
    /// Several addresses can't be bound, one line each.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Taken(Vec<ListenError>),
    /// An address can't be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// A running gateway.
#[derive(Debug)]
pub struct Daemon {
    /// The database pool.
    pub pool: PgPool,
    /// Subscribers and apps.
    pub accounts: Accounts,
    /// Billing of subscribers.
    pub billing: Billing,
    /// Connected mailboxes.
    pub mailboxes: Mailboxes,
    /// Outgoing webhooks.
    pub webhooks: Webhooks,
    /// The address of REST over HTTP.
    pub http_address: SocketAddr,
    /// The URL at which users reach the REST interface.
    pub base_url: String,
    /// Whether it serves the portal.
    pub has_portal: bool,
    /// The address of REST over HTTPS.
    pub https_address: Option<SocketAddr>,
    /// Certificates from an ACME server.
    pub certificates: Option<Certificates>,
    /// The certificate from the configured files.
    pub certificate_file: Option<Arc<ServerCertificate>>,
    /// The address for submission with STARTTLS.
    pub starttls_address: Option<SocketAddr>,
    /// The address for submission with implicit TLS.
    pub tls_address: Option<SocketAddr>,
}

/// Starts the gateway; returns once it is serving. `shutdown` ends it.
///
/// # Errors
///
/// [`DaemonError`]; then nothing is left running except what `shutdown` ends.
pub async fn start(
    settings: Settings,
    clock: SharedClock,
    shutdown: &Shutdown,
) -> Result<Daemon, DaemonError> {
    start_on(Inherited::default(), settings, clock, shutdown).await
}

/// Starts the gateway on sockets passed by systemd, and opens the others.
///
/// # Errors
///
/// [`DaemonError`]; then nothing is left running except what `shutdown` ends.
#[expect(
    clippy::too_many_lines,
    reason = "all parts, in the order of their dependencies"
)]
pub async fn start_on(
    inherited: Inherited,
    settings: Settings,
    clock: SharedClock,
    shutdown: &Shutdown,
) -> Result<Daemon, DaemonError> {
    let source = Source::load(&settings)?;
    let listeners = Listeners::bind(&settings, inherited).await?;
    let http_address = listeners.http_address(settings.http_listen)?;
    let meter = collect_metrics(listeners.metrics);
    let hostname: Arc<str> = settings.smtp.host.as_str().into();
    let providers = mail_providers(&settings, &hostname, &clock)?;
    let pool = open_database(&settings, &clock).await?;

    let relay = relay(&settings, &hostname)?;
    let seal_keys = Arc::clone(&settings.seal_keys);
    let billing = start_billing(
        &settings,
        relay.clone(),
        &seal_keys,
        &pool,
        &clock,
        shutdown,
    )?;
    let tracker = &shutdown.tracker;
    let links = mailed_links(&settings);
    let expiring = expiry::files(&settings);
    let client_secrets = workers::ClientSecrets::new(&settings);
    let limits = Arc::new(settings.limits);
    let retention = Retention {
        log_days: settings.log_retention_days,
        webhooks: settings.webhooks.retry.iter().sum(),
    };
    let accounts = Accounts::new(
        pool.clone(),
        Arc::clone(&seal_keys),
        Arc::clone(&clock),
        &limits,
        settings.payprov.as_ref(),
        tracker.clone(),
    );
    let accounts = accounts.sending(own_mail(relay.as_ref(), links.as_ref()));
    accounts.check_seal_keys().await?;
    let shown = Shown::start(source, &pool, &seal_keys, &clock, shutdown).await?;
    watch_expiries(expiring, client_secrets, shown.issued(), &clock, shutdown).await;
    let sign_in_mail = start_sign_in_mail(links, relay, &accounts, shutdown);
    let lease = begin_lease(&pool, &clock).await?;
    let mailboxes = Mailboxes::new(
        pool.clone(),
        Arc::clone(&seal_keys),
        Arc::clone(&clock),
        Arc::clone(&providers),
        tracker.clone(),
        Arc::new(settings.mailboxes),
    );
    let mailboxes = mailboxes.of_gateway(&lease);
    let quota = Quota::new(&limits);
    let readiness = watch_database(&pool, &clock, &lease, retention.log_days, shutdown);
    let sending = Sending::new(
        pool.clone(),
        Arc::clone(&clock),
        Arc::clone(&providers),
        accounts.clone(),
        mailboxes.clone(),
        start_journal(&pool, &clock, &lease, shutdown),
        lease,
        Arc::new(settings.sending),
        in_flight(&limits),
        quota,
        shutdown,
    );
    let webhooks = start_webhooks(&settings.webhooks, &seal_keys, &pool, &clock, shutdown)?;
    let base_url = base_url(settings.http_base_url, http_address);
    let own_hosts = settings.http_own_hosts_only;
    let strangers = strangers(limits.unauthenticated_bytes);
    let refusals = keep_refusals(&pool, &clock, shutdown);
    let has_portal = settings.portal.enabled;
    let state = AppState::new(Shared {
        readiness: readiness.clone(),
        certificates: shown.issued().cloned(),
        accounts: accounts.clone(),
        billing: billing.clone(),
        mailboxes: mailboxes.clone(),
        sending: sending.clone(),
        queue: Queue::new(pool.clone(), Arc::clone(&clock)),
        reports: Reports::new(pool.clone(), Arc::clone(&clock)),
        refusals: refusals.clone(),
        base_url: Arc::clone(&base_url),
        own_hosts: own_hosts.then(|| OwnHosts::new(http_address, [base_url.as_ref()])),
        limits: Arc::clone(&limits),
        clock: Arc::clone(&clock),
        stopping: shutdown.announced.clone(),
        finishing: shutdown.soft.clone(),
        strangers: strangers.clone(),
        visits: Arc::new(Visits::new(&limits)),
        seal_keys: Arc::clone(&seal_keys),
        portal: Arc::new(settings.portal),
        refused_events: Arc::default(),
        operator_token: settings.operator_token,
        allow_private: settings.webhooks.allow_private,
        webhooks: webhooks.clone(),
    });
    let http_limits = http_limits(&limits, settings.http_trusted_proxies, strangers);
    let routes = pages::routes(
        state,
        listeners.submission,
        sign_in_mail,
        settings.http_request,
    );
    let served_by_tls = shown.serve_http(listeners.https, &routes, &http_limits, shutdown)?;
    shown.serve_challenges(listeners.acme, &http_limits, shutdown);
    http::serve(listeners.http, routes, http_limits.clone(), shutdown);
    serve_metrics(meter, http_limits, quota, &pool, &clock, &billing, shutdown);
    let submission = SubmissionBackend {
        accounts: accounts.clone(),
        sending: sending.clone(),
        refusals,
        hostname,
        clock: Arc::clone(&clock),
        sessions: SharedPlaces::unshared(limits.smtp_connections_per_subscriber),
        most_sessions: limits.smtp_connections_per_subscriber,
    };
    let door = SmtpDoor::new(submission, shown.acceptor()?, settings.smtp, limits);
    let starttls_address = door.serve(listeners.starttls, false, shutdown);
    let tls_address = door.serve(listeners.implicit_tls, true, shutdown);

    keep_sending(sending, providers, readiness, &accounts, shutdown);
    look_after(
        &accounts, &mailboxes, &webhooks, &pool, clock, retention, shutdown,
    );

    Ok(Daemon {
        pool,
        accounts,
        billing,
        mailboxes,
        webhooks,
        http_address,
        base_url: base_url.as_ref().to_owned(),
        has_portal,
        https_address: served_by_tls,
        certificates: shown.issued().cloned(),
        certificate_file: shown.file().cloned(),
        starttls_address,
        tls_address,
    })
}

fn mail_providers(
    settings: &Settings,
    hostname: &Arc<str>,
    clock: &SharedClock,
) -> Result<Arc<MailProviders>, DaemonError> {
    let (plugins, sending) = (&settings.plugins, &settings.sending);
    let providers = MailProviders::new(plugins, sending, hostname, clock)?;
    Ok(Arc::new(providers))
}

async fn begin_lease(pool: &PgPool, clock: &SharedClock) -> Result<Lease, DaemonError> {
    let begun = sending::begin(pool, GatewayId::at(clock.now())).await;
    let lease = begun.map_err(PoolError::Connect)?;
    tracing::info!(gateway_id = %lease.id(), "this process has its lease");
    Ok(lease)
}

/// Connects, adopts the database's clock, runs migrations, records a sign of life, and creates the log's missing
/// partitions.
async fn open_database(settings: &Settings, clock: &SharedClock) -> Result<PgPool, DaemonError> {
    let pool = pool::connect(&settings.database).await?;
    let synchronized = pool::synchronize(&pool, clock).await;
    synchronized.map_err(PoolError::Connect)?;
    tables::migrate(&pool).await?;
    let left = workers::leave_sign_of_life(&pool, clock).await;
    left.map_err(PoolError::Connect)?;
    workers::ensure_partitions(&pool, clock, settings.log_retention_days).await?;
    Ok(pool)
}

fn http_limits(limits: &Limits, trusted_proxies: TrustedPeers, strangers: Strangers) -> HttpLimits {
    HttpLimits {
        trusted_proxies,
        connections_per_address: limits.http_connections_per_address,
        answer_idle: limits.http_body_idle,
        strangers,
        ..HttpLimits::new(limits.http_connections)
    }
}

/// The URL at which users reach the REST interface.
fn base_url(set: String, listening: SocketAddr) -> Arc<str> {
    if set.is_empty() {
        format!("http://{}", http::connectable(listening)).into()
    } else {
        set.into()
    }
}

/// The parts shared by both SMTP listeners.
struct SmtpDoor {
    session: Arc<SessionSettings>,
    submission: SubmissionBackend,
    tls: TlsAcceptor,
    balancers: TrustedPeers,
    places: ConnectionLimits,
    limits: Arc<Limits>,
}

impl SmtpDoor {
    fn new(
        submission: SubmissionBackend,
        tls: TlsAcceptor,
        settings: SmtpSettings,
        limits: Arc<Limits>,
    ) -> Self {
        let places =
            ConnectionLimits::new(limits.smtp_connections, limits.smtp_connections_per_address);
        Self {
            session: Arc::new(session_settings(
                &submission.hostname,
                &limits,
                settings.bare_newline,
            )),
            submission,
            tls,
            balancers: settings.proxy_protocol_from,
            places,
            limits,
        }
    }

    /// Starts serving; returns the actual address.
    fn serve(
        &self,
        listener: Option<TcpListener>,
        implicit_tls: bool,
        shutdown: &Shutdown,
    ) -> Option<SocketAddr> {
        let listener = listener?;
        let address = listener.local_addr().ok();
        let settings = ConnectionSettings {
            session: Arc::clone(&self.session),
            tls: self.tls.clone(),
            implicit_tls,
            listener: if implicit_tls { "tls" } else { "starttls" },
            balancers: self.balancers.clone(),
            command: self.limits.smtp_command,
            content_idle: self.limits.smtp_data_idle,
            minimum_rate: self.limits.minimum_bytes_per_second,
        };
        shutdown.spawn_vital(
            "an SMTP listener",
            listener::run(
                listener,
                settings,
                self.submission.clone(),
                self.places.clone(),
                shutdown.tracker.clone(),
                shutdown.soft.clone(),
                shutdown.hard.clone(),
            ),
        );
        address
    }
}

/// Starts collecting metrics if there is a listener for them.
fn collect_metrics(listener: Option<TcpListener>) -> Option<(TcpListener, PrometheusHandle)> {
    let listener = listener?;
    match mailgate_telemetry::metrics::start() {
        Ok(handle) => Some((listener, handle)),
        Err(error) => {
            tracing::warn!(%error, "metrics are not served");
            None
        }
    }
}

fn serve_metrics(
    collected: Option<(TcpListener, PrometheusHandle)>,
    limits: HttpLimits,
    quota: Quota,
    pool: &PgPool,
    clock: &SharedClock,
    billing: &Billing,
    shutdown: &Shutdown,
) {
    let Some((listener, handle)) = collected else {
        return;
    };
    let top = TopSubscribers::default();
    shutdown.spawn_vital(
        "the metrics",
        workers::measure(
            pool.clone(),
            Arc::clone(clock),
            billing.is_configured(),
            quota,
            handle.clone(),
            top.clone(),
            shutdown.soft.clone(),
        ),
    );
    let router = mailgate_telemetry::metrics_router(handle, top);
    http::serve(listener, router, limits, shutdown);
}
