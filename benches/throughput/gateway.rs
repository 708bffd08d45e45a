//! The gateway that is measured: `mailgate serve` as a process, with one app and one mailbox, over a
//! private Postgres whose every commit reaches the disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mailgate::workers;
use mailgate_domain::accounts::{Accounts, AppFields, CreatedApp};
use mailgate_domain::mailboxes::{Mailboxes, NewConnection};
use mailgate_providers::mail::MailProviders;
use mailgate_sandbox::certificates::CertificateFiles;
use mailgate_sandbox::postgres::PrivatePostgres;
use mailgate_storage::database::{pool, tables};
use mailgate_types::clock::{SharedClock, SystemClock};
use mailgate_types::plugin::Plugin;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::Outcome;
use super::child::{self, Server};
use super::load::{RestServer, SmtpServer};
use super::sink;

/// Longest that the gateway may take to serve.
const START: Duration = Duration::from_secs(30);

/// Submissions at once: as many as there are clients.
const CONCURRENCY: &str = "64";

/// What the gateway is set up with. Everything that isn't named here has its default.
pub fn environment(
    postgres: &PrivatePostgres,
    files: &CertificateFiles,
    provider: sink::Ports,
) -> Vec<(String, String)> {
    let http = format!("http://127.0.0.1:{}", provider.http);
    let path = |path: &Path| path.display().to_string();
    [
        ("DATABASE__URL", postgres.url("bench")),
        (
            "SEAL__KEYS",
            "bench:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".to_owned(),
        ),
        ("TLS__CERTIFICATE", path(&files.certificate)),
        ("TLS__KEY", path(&files.key)),
        ("HTTP__LISTEN", "127.0.0.1:0".to_owned()),
        ("SMTP__STARTTLS_LISTEN", "127.0.0.1:0".to_owned()),
        ("SMTP__TLS_LISTEN", String::new()),
        ("METRICS__LISTEN", "127.0.0.1:0".to_owned()),
        ("LOG__FORMAT", "json".to_owned()),
        // One app sends as fast as it can, from one address.
        ("LIMITS__REQUESTS_PER_SECOND", "1000000".to_owned()),
        ("LIMITS__REQUESTS_BURST", "1000000".to_owned()),
        ("LIMITS__SMTP_CONNECTIONS_PER_ADDRESS", "10000".to_owned()),
        (
            "LIMITS__SMTP_CONNECTIONS_PER_SUBSCRIBER",
            "10000".to_owned(),
        ),
        ("PLUGINS__PLUGIN_A__KIND", "generic".to_owned()),
        ("PLUGINS__PLUGIN_A__CLIENT_ID", "bench".to_owned()),
        ("PLUGINS__PLUGIN_A__CLIENT_SECRET", "bench".to_owned()),
        (
            "PLUGINS__PLUGIN_A__AUTHORIZE_URL",
            format!("{http}/authorize"),
        ),
        ("PLUGINS__PLUGIN_A__TOKEN_URL", format!("{http}/token")),
        (
            "PLUGINS__PLUGIN_A__USERINFO_URL",
            format!("{http}/userinfo"),
        ),
        ("PLUGINS__PLUGIN_A__SMTP_HOST", "localhost".to_owned()),
        (
            "PLUGINS__PLUGIN_A__SMTP_PORT",
            provider.submission.to_string(),
        ),
        ("PLUGINS__PLUGIN_A__SMTP_TLS", "implicit".to_owned()),
        ("PLUGINS__PLUGIN_A__CA_FILE", path(&files.ca)),
        (
            "PLUGINS__PLUGIN_A__LIMITS__CONCURRENCY",
            CONCURRENCY.to_owned(),
        ),
    ]
    .map(|(name, value)| (format!("MAILGATE__{name}"), value))
    .into()
}

/// Makes the tables, and an app with a connected mailbox.
pub async fn prepare(environment: &[(String, String)]) -> Outcome<CreatedApp> {
    let settings = mailgate_settings::load_operator(None, environment.iter().cloned())?;
    let pool = pool::connect(&settings.database).await?;
    tables::migrate(&pool).await?;
    let clock: SharedClock = Arc::new(SystemClock);
    let seal_keys = settings.seal_keys;
    let accounts = Accounts::new(
        pool.clone(),
        Arc::clone(&seal_keys),
        Arc::clone(&clock),
        &settings.limits,
        settings.payprov.as_ref(),
        TaskTracker::new(),
    );
    let mut transaction = pool.begin().await?;
    let subscriber = accounts
        .create_subscriber(&mut transaction, "Bench", "owner@example.com")
        .await?;
    let app = accounts
        .create_app(
            &mut transaction,
            subscriber.id,
            &AppFields {
                name: "Bench".to_owned(),
                ..AppFields::default()
            },
        )
        .await?;
    transaction.commit().await?;
    let providers = MailProviders::new(
        &settings.plugins,
        &settings.sending,
        &settings.smtp_host,
        &clock,
    )?;
    let mailboxes = Mailboxes::new(
        pool.clone(),
        seal_keys,
        clock,
        Arc::new(providers),
        TaskTracker::new(),
        Arc::new(settings.mailboxes),
    );
    let new = NewConnection {
        app: app.id,
        user_id: None,
        plugin: Plugin::A,
        code: "code",
        redirect_uri: "http://localhost/callback",
        code_verifier: "verifier",
    };
    mailboxes.connect(&new).await?;
    pool.close().await;
    Ok(app)
}

/// Makes another subscriber with an app for each of these receivers, which gets the webhooks of its app.
pub async fn apps(environment: &[(String, String)], urls: &[String]) -> Outcome<Vec<CreatedApp>> {
    let settings = mailgate_settings::load_operator(None, environment.iter().cloned())?;
    let pool = pool::connect(&settings.database).await?;
    let clock: SharedClock = Arc::new(SystemClock);
    let accounts = Accounts::new(
        pool.clone(),
        settings.seal_keys,
        Arc::clone(&clock),
        &settings.limits,
        None,
        TaskTracker::new(),
    );
    // Their first event comes before any gateway has started.
    workers::ensure_partitions(&pool, &clock, 90).await?;
    let mut transaction = pool.begin().await?;
    let subscriber = accounts
        .create_subscriber(&mut transaction, "Bench", "owner@example.com")
        .await?;
    let mut apps = Vec::with_capacity(urls.len());
    for url in urls {
        let fields = AppFields {
            name: "Bench".to_owned(),
            webhook_url: url.clone(),
            ..AppFields::default()
        };
        let app = accounts
            .create_app(&mut transaction, subscriber.id, &fields)
            .await?;
        apps.push(app);
    }
    // That the apps were created is nothing that is measured.
    sqlx::query("DELETE FROM webhook_queue")
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    pool.close().await;
    Ok(apps)
}

/// A running gateway.
pub struct Gateway {
    server: Server,
    /// Its process id.
    pub pid: u32,
    /// Its SMTP listener.
    pub smtp: SmtpServer,
    /// Its REST listener.
    pub rest: RestServer,
}

impl Gateway {
    /// Starts it with its log in `folder`, and waits until it serves.
    pub async fn start(
        folder: &Path,
        environment: &[(String, String)],
        app: &CreatedApp,
        ca: &Path,
    ) -> Outcome<Self> {
        let mut command = child::command("KILL", env!("CARGO_BIN_EXE_mailgate"));
        command
            .arg("serve")
            .envs(environment.iter().map(|(name, value)| (name, value)));
        let mut server = Server::start("gateway", folder, command)?;
        let log = folder.join("gateway.output");
        let deadline = Instant::now() + START;
        let ports = loop {
            if let Some(ports) = ports(&log)? {
                break ports;
            }
            if Instant::now() > deadline {
                return Err(format!("the gateway does not serve within {START:?}").into());
            }
            if let Err(error) = server.check() {
                return Err(format!("{error}\n{}", std::fs::read_to_string(&log)?).into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        Ok(Self {
            pid: server.pid()?,
            server,
            smtp: SmtpServer {
                port: ports.smtp,
                ca: PathBuf::from(ca),
                user: app.slug.clone(),
                password: app.send_key.expose().to_owned(),
            },
            rest: RestServer {
                port: ports.http,
                pushable_key: app.pushable_key.expose().to_owned(),
                send_key: app.send_key.expose().to_owned(),
            },
        })
    }

    pub async fn stop(self) -> Outcome<()> {
        self.server.stop().await
    }
}

struct Ports {
    http: u16,
    smtp: u16,
}

/// Where the gateway serves, once its log says so.
fn ports(log: &Path) -> Outcome<Option<Ports>> {
    let text = std::fs::read_to_string(log)?;
    let Some(line) = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|line| line["message"] == "mailgate serves")
    else {
        return Ok(None);
    };
    let port = |name: &str| -> Outcome<u16> {
        let digits = line[name]
            .as_str()
            .and_then(|address| address.rsplit_once(':'))
            .map(|(_, port)| port.trim_end_matches(')'));
        Ok(digits
            .ok_or_else(|| format!("the gateway names no {name}"))?
            .parse()?)
    };
    Ok(Some(Ports {
        http: port("http")?,
        smtp: port("starttls")?,
    }))
}
