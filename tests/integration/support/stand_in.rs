//! A scripted stand-in for a mail provider: it keeps no mail and checks no token, but answers just
//! what a test tells it, at the stage that the test names, and remembers all that was said to it.
//! For what no real server does on demand. It stands at `plugin_b`; `plugin_a` stays the
//! sandbox.

pub mod oauth;
pub mod submission;

use std::path::PathBuf;
use std::sync::Arc;

use chrono::Utc;
use mailgate_domain::mailboxes::{Connected, NewConnection};
use mailgate_sandbox::certificates;
use mailgate_server::tls::{self, ServerCertificate};
use mailgate_types::plugin::Plugin;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;
use toml::{Table, Value};

use super::gateway::{Builder, Gateway};
use oauth::TokenEndpoint;
use submission::SubmissionServer;

/// The mailbox that every code and token of the stand-in opens.
pub const ADDRESS: &str = "carol@stand-in.example";

/// A stand-in that runs; ends when it is dropped.
pub struct StandIn {
    pub tokens: TokenEndpoint,
    pub submission: SubmissionServer,
    ca_file: PathBuf,
    _folder: TempDir,
    _servers: JoinSet<()>,
}

impl StandIn {
    pub async fn start() -> Self {
        let folder = TempDir::new().expect("a folder can be made");
        let files =
            certificates::ensure(folder.path(), &[], Utc::now()).expect("certificates can be made");
        let certificate = ServerCertificate::load(&files.certificate, &files.key);
        let certificate = Arc::new(certificate.expect("the pair is good"));
        let acceptor = tls::acceptor(certificate).expect("TLS can be set up");
        let mut servers = JoinSet::new();
        Self {
            tokens: TokenEndpoint::start(&mut servers).await,
            submission: SubmissionServer::start(acceptor, &mut servers).await,
            ca_file: files.ca,
            _folder: folder,
            _servers: servers,
        }
    }

    /// A stand-in, and a gateway with its mailbox connected at `plugin_b`.
    pub async fn with_gateway() -> (Self, Gateway) {
        Self::with(Gateway::builder()).await
    }

    /// As [`StandIn::with_gateway`], with the test's own settings.
    pub async fn with(builder: Builder) -> (Self, Gateway) {
        let stand_in = Self::start().await;
        let gateway = builder.plugins(stand_in.plugins()).start().await;
        stand_in.connect(&gateway).await;
        (stand_in, gateway)
    }

    /// Settings of `plugin_b` that point here.
    pub fn plugins(&self) -> Table {
        let mut plugins = self.plugins_without_authority();
        let plugin = plugins["plugin_b"].as_table_mut().expect("a table");
        plugin.insert(
            "ca_file".to_owned(),
            self.ca_file.display().to_string().into(),
        );
        plugins
    }

    /// As [`StandIn::plugins`], but the gateway has no reason to trust the certificate.
    pub fn plugins_without_authority(&self) -> Table {
        let base = self.tokens.url();
        let text = |name: &str, value: String| (name.to_owned(), Value::String(value));
        let plugin = Table::from_iter([
            text("kind", "generic".to_owned()),
            text("client_id", "stand-in".to_owned()),
            text("client_secret", "stand-in-secret".to_owned()),
            text("authorize_url", format!("{base}/authorize")),
            text("token_url", format!("{base}/token")),
            text("userinfo_url", format!("{base}/userinfo")),
            text("smtp_host", "localhost".to_owned()),
            (
                "smtp_port".to_owned(),
                Value::Integer(self.submission.port().into()),
            ),
        ]);
        Table::from_iter([("plugin_b".to_owned(), Value::Table(plugin))])
    }

    /// Settings of a relay that point here.
    pub fn relay(&self) -> Table {
        let text = |name: &str, value: &str| (name.to_owned(), Value::String(value.to_owned()));
        Table::from_iter([
            text("host", "localhost"),
            (
                "port".to_owned(),
                Value::Integer(self.submission.port().into()),
            ),
            text("username", "relay-user"),
            text("password", "relay-password"),
            text("from", "Mailgate <billing@gateway.example>"),
            text("ca_file", &self.ca_file.display().to_string()),
        ])
    }

    /// Connects [`ADDRESS`] to the gateway's app.
    pub async fn connect(&self, gateway: &Gateway) -> Connected {
        gateway
            .daemon
            .mailboxes
            .connect(&NewConnection {
                app: gateway.app.id,
                user_id: None,
                plugin: Plugin::B,
                code: "any",
                redirect_uri: "http://127.0.0.1:9/oauth/callback",
                code_verifier: "any",
            })
            .await
            .expect("the stand-in's mailbox can be connected")
    }
}

/// The usual message from the stand-in's mailbox, by REST.
pub async fn send(gateway: &Gateway, to: &str) -> (u16, serde_json::Value) {
    gateway
        .send(json!({ "to": to, "subject": "Hello", "body": "It works.", "plugin": "plugin_b" }))
        .await
}
