//! A gateway in this process, with the sandbox as its mail provider and a clock that tests move.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use mailgate::daemon::{self, Daemon};
use mailgate::dev::provider_settings;
use mailgate_domain::accounts::{AppFields, CreatedApp};
use mailgate_domain::mailboxes::{Connected, NewConnection};
use mailgate_sandbox::certificates::{self, CertificateFiles};
use mailgate_sandbox::provider::{self, SandboxProvider};
use mailgate_server::shutdown::Shutdown;
use mailgate_server::tls::{self, ServerCertificate};
use mailgate_types::audit::Author;
use mailgate_types::clock::{Clock, MovedClock, SharedClock};
use mailgate_types::ids::{AppId, LogId, SubscriberId};
use mailgate_types::plugin::Plugin;
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgConnection, PgPool};
use tempfile::TempDir;
use toml::{Table, Value};

use super::{database, described, failure, log_guard, patience};

/// The sealing key of every gateway.
pub const SEAL_KEY: &str = "test:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// The demo of a test: one app with one mailbox.
pub const MAILBOX: &str = "ada@sandbox.example";

/// Who changes things where a test does it past the doors.
pub const OPERATOR: Author = Author::operator(None);

/// A running gateway. Ends with [`Gateway::stop`]; what a test leaves running ends with its runtime.
pub struct Gateway {
    pub daemon: Daemon,
    pub sandbox: SandboxProvider,
    pub clock: Arc<MovedClock>,
    pub database_url: String,
    pub app: CreatedApp,
    pub subscriber: SubscriberId,
    /// The app's mailbox [`MAILBOX`] at `plugin_a`.
    pub mailbox: Connected,
    pub ca_file: PathBuf,
    pub http: reqwest::Client,
    shutdown: Shutdown,
    sandbox_shutdown: Shutdown,
    /// Connections that look into the database.
    looks: PgPool,
    _folder: TempDir,
}

/// Settings that a test changes, by their names in the environment without `MAILGATE__`.
#[derive(Default)]
pub struct Builder {
    environment: Vec<(String, String)>,
    plugins: Option<Table>,
    billed: bool,
    reading: bool,
    relay: Option<Table>,
    database_url: Option<String>,
    clock: Option<SharedClock>,
}

impl Builder {
    /// A clock of the test's own.
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// `set("LIMITS__RECIPIENTS", 3)`.
    #[expect(clippy::needless_pass_by_value, reason = "a call reads better so")]
    pub fn set(mut self, name: &str, value: impl ToString) -> Self {
        self.environment
            .push((format!("MAILGATE__{name}"), value.to_string()));
        self
    }

    /// Plugin settings instead of the sandbox's: for a gateway that has other providers.
    pub fn plugins(mut self, plugins: Table) -> Self {
        self.plugins = Some(plugins);
        self
    }

    /// The sandbox's payment provider bills, and tells what happens there; notices arrive in the sandbox's
    /// inbox.
    pub fn billed(mut self) -> Self {
        self.billed = true;
        self
    }

    /// The sandbox's mailboxes are read, often, as in `mailgate dev`; without it they aren't.
    pub fn reading(mut self) -> Self {
        self.reading = true;
        self.set("MAILBOXES__REPLIES_SECONDS", 1)
    }

    /// A relay of the test's own for the gateway's mail.
    pub fn relay(mut self, relay: Table) -> Self {
        self.relay = Some(relay);
        self
    }

    /// A database of the test's own.
    pub fn database(mut self, url: &str) -> Self {
        self.database_url = Some(url.to_owned());
        self
    }

    /// Starts it, with a demo app. The app's mailbox is connected at the sandbox.
    pub async fn start(self) -> Gateway {
        failure::explain();
        drop(rustls::crypto::ring::default_provider().install_default());
        // Whoever wants to read the lines names a filter, and nobody guards them then.
        match std::env::var("MAILGATE_TEST_LOG") {
            Ok(filter) => mailgate_telemetry::start_logging(
                mailgate_settings::LogFormat::Pretty,
                &filter,
                None,
            ),
            Err(_) => log_guard::start(),
        }
        let clock = Arc::new(MovedClock::default());
        let shared_clock: SharedClock = clock.clone();
        let folder = TempDir::new().expect("a folder can be made");
        let files = certificates::ensure(folder.path(), &[], clock.now())
            .expect("certificates can be made");
        let database_url = match self.database_url {
            Some(url) => url,
            None => database::create().await,
        };
        let sandbox_shutdown = Shutdown::default();
        let settings = |sections: Table| {
            let environment = self.environment.clone();
            mailgate_settings::load(
                preset(&database_url, &files, sections),
                None,
                environment.into_iter(),
            )
            .unwrap_or_else(|error| panic!("{error}"))
        };
        let certificate = ServerCertificate::load(&files.certificate, &files.key);
        let certificate = Arc::new(certificate.expect("the certificate is good"));
        let sandbox = provider::start(
            &provider_settings(&settings(Table::new())),
            folder.path(),
            tls::acceptor(certificate).expect("TLS can be set up"),
            Arc::clone(&shared_clock),
            &sandbox_shutdown,
        )
        .await
        .expect("the sandbox starts");
        let mut plugins = if self.reading {
            sandbox.reading_plugins(&files.ca)
        } else {
            sandbox.plugins(&files.ca)
        };
        plugins.extend(self.plugins.clone().unwrap_or_default());
        let mut sections = Table::from_iter([("plugins".to_owned(), Value::Table(plugins))]);
        if self.billed {
            let payprov = Value::Table(sandbox.payments.section());
            sections.insert("payprov".to_owned(), payprov);
            let relay = Value::Table(sandbox.relay(&files.ca));
            sections.insert("relay".to_owned(), relay);
        }
        if let Some(relay) = self.relay.clone() {
            sections.insert("relay".to_owned(), Value::Table(relay));
        }
        let shutdown = Shutdown::default();
        let daemon_clock = self.clock.clone().unwrap_or(shared_clock);
        let daemon = daemon::start(settings(sections), daemon_clock, &shutdown)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        if self.billed {
            let webhook = format!("http://{}/payprov/webhook", daemon.http_address);
            sandbox.payments.tell(&webhook);
        }
        let looks = PgPoolOptions::new()
            .max_connections(2)
            .connect_lazy(&database_url)
            .expect("the address can be read");
        let (subscriber, app) = create_app(&daemon, "Demo").await;
        let mailbox = connect(&daemon, &sandbox, app.id, None, Plugin::A, MAILBOX).await;
        Gateway {
            daemon,
            sandbox,
            clock,
            database_url,
            app,
            subscriber,
            mailbox,
            ca_file: files.ca,
            http: reqwest::Client::builder()
                .no_proxy()
                .build()
                .expect("an HTTP client can be made"),
            shutdown,
            sandbox_shutdown,
            looks,
            _folder: folder,
        }
    }
}

impl Gateway {
    /// With the defaults.
    pub async fn start() -> Self {
        Builder::default().start().await
    }

    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Another gateway process would look like this: the same database, listeners of its own.
    pub fn replica(&self) -> Builder {
        Builder {
            database_url: Some(self.database_url.clone()),
            ..Builder::default()
        }
    }

    pub fn starttls_address(&self) -> SocketAddr {
        self.daemon.starttls_address.expect("the port is served")
    }

    pub fn tls_address(&self) -> SocketAddr {
        self.daemon.tls_address.expect("the port is served")
    }

    /// Connects one more mailbox of the sandbox to the demo app.
    pub async fn connect(&self, user_id: Option<&str>, plugin: Plugin, email: &str) -> Connected {
        connect(
            &self.daemon,
            &self.sandbox,
            self.app.id,
            user_id,
            plugin,
            email,
        )
        .await
    }

    /// `POST /send` with the app's key and these fields beside `pk`.
    pub async fn send(&self, fields: serde_json::Value) -> (u16, serde_json::Value) {
        let mut body = serde_json::json!({ "pk": self.app.pushable_key.expose() });
        for (name, value) in fields.as_object().expect("fields are an object") {
            body[name] = value.clone();
        }
        let response = self
            .http
            .post(format!("{}/send", self.daemon.base_url))
            .header("x-send-key", self.app.send_key.expose())
            .json(&body)
            .send()
            .await
            .expect("the gateway answers");
        let status = response.status().as_u16();
        let body = response.json().await.expect("the answer is JSON");
        (status, body)
    }

    /// The usual message, to `to`.
    pub async fn send_to(&self, to: &str) -> (u16, serde_json::Value) {
        self.send(serde_json::json!({ "to": to, "subject": "Hello", "body": "It works." }))
            .await
    }

    /// What arrived at the sandbox, oldest first.
    pub async fn arrived(&self) -> Vec<Vec<u8>> {
        let mut raw = Vec::new();
        for message in self.sandbox.inbox.list(usize::MAX).iter().rev() {
            let bytes = self.sandbox.inbox.raw(&message.id).await;
            raw.push(bytes.expect("a message can be read").expect("it is there"));
        }
        raw
    }

    /// A connection to look into the database.
    pub async fn database(&self) -> PgConnection {
        database::connect(&self.database_url).await
    }

    /// The log rows as `(status, error_message)`, oldest first.
    pub async fn logged(&self) -> Vec<(String, Option<String>)> {
        sqlx::query_as("SELECT status, error_message FROM email_logs ORDER BY id")
            .fetch_all(&self.looks)
            .await
            .expect("the log can be read")
    }

    /// The id of the log's one message.
    pub async fn log_id(&self) -> LogId {
        let id = sqlx::query_scalar("SELECT id FROM email_logs");
        LogId(id.fetch_one(&self.looks).await.expect("one message"))
    }

    /// Messages in the spool.
    pub async fn spooled(&self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM spool")
            .fetch_one(&self.looks)
            .await
            .expect("the spool can be read")
    }

    /// Waits until it `is_so`: for what a worker does in its own time.
    pub async fn eventually(&self, what: &str, mut is_so: impl AsyncFnMut(&Self) -> bool) {
        patience::until(what, async || is_so(self).await).await;
    }

    /// Why it ends that nobody has asked to.
    pub fn failure(&self) -> Option<String> {
        self.shutdown.failure().map(str::to_owned)
    }

    /// Ends the gateway in order; the sandbox goes on.
    pub async fn stop_daemon(&self) {
        self.shutdown.finish().await.expect("signals work");
    }

    /// Ends it in order; everything that ran has ended then. What it told by webhooks was as described.
    pub async fn stop(self) {
        let told: Vec<String> = sqlx::query_scalar("SELECT body FROM webhook_messages")
            .fetch_all(&mut self.database().await)
            .await
            .expect("what was told can be read");
        for body in told {
            described::check(&serde_json::from_str(&body).expect("a body is JSON"));
        }
        self.stop_daemon().await;
        self.sandbox_shutdown.finish().await.expect("signals work");
    }
}

/// A subscriber with an app.
pub async fn create_app(daemon: &Daemon, name: &str) -> (SubscriberId, CreatedApp) {
    let mut transaction = daemon.pool.begin().await.expect("a transaction begins");
    let subscriber = daemon
        .accounts
        .create_subscriber(&mut transaction, name, "owner@example.com")
        .await
        .expect("a subscriber can be created");
    let app = daemon
        .accounts
        .create_app(&mut transaction, subscriber.id, &AppFields::named(name))
        .await
        .expect("an app can be created");
    transaction.commit().await.expect("it commits");
    (subscriber.id, app)
}

/// Connects a mailbox of the sandbox to any app.
pub async fn connect(
    daemon: &Daemon,
    sandbox: &SandboxProvider,
    app: AppId,
    user_id: Option<&str>,
    plugin: Plugin,
    email: &str,
) -> Connected {
    let redirect_uri = format!("http://{}/oauth/callback", daemon.http_address);
    let granted = sandbox
        .authorize(&redirect_uri, email)
        .await
        .expect("the sandbox grants");
    daemon
        .mailboxes
        .connect(&NewConnection {
            app,
            user_id,
            plugin,
            code: &granted.code,
            redirect_uri: &redirect_uri,
            code_verifier: &granted.code_verifier,
        })
        .await
        .expect("the mailbox can be connected")
}

fn preset(database_url: &str, files: &CertificateFiles, sections: Table) -> Table {
    let mut preset: Table = toml::toml! {
        [http]
        listen = "127.0.0.1:0"
        [smtp]
        starttls_listen = "127.0.0.1:0"
        tls_listen = "127.0.0.1:0"
        [metrics]
        listen = ""
        [sandbox]
        listen = "127.0.0.1:0"
        smtp_listen = "127.0.0.1:0"
        [database]
        max_connections = 8
        [limits]
        authentication_failures_per_minute = 1000
    };
    let text = |value: String| Value::String(value);
    let section = preset["database"].as_table_mut().expect("a table");
    section.insert("url".to_owned(), text(database_url.to_owned()));
    let keys = Value::Array(vec![text(SEAL_KEY.to_owned())]);
    preset.insert(
        "seal".to_owned(),
        Value::Table(Table::from_iter([("keys".to_owned(), keys)])),
    );
    let tls = [("certificate", &files.certificate), ("key", &files.key)];
    let tls = tls.map(|(name, path)| (name.to_owned(), text(path.display().to_string())));
    preset.insert("tls".to_owned(), Value::Table(Table::from_iter(tls)));
    preset.extend(sections);
    preset
}
