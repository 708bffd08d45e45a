//! A stand-in for Microsoft Graph, with the shapes of the real interface's answers as they are
//! documented and were recorded: drafts, their files and upload sessions, sending, sent items, the
//! inbox's changes. It keeps what it gets, holds callers to the real one's rules (a good token, 4 MB a
//! request, ordered ranges without a token), and fails where a test tells it to. What it can't stand in
//! for is Exchange itself: how it rewrites a message, and when.

mod fault;
mod handlers;
mod kept;
mod told;

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post, put};
use mailgate_domain::mailboxes::NewConnection;
use mailgate_types::plugin::Plugin;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toml::Table;

use super::contracts::{self, Contract, Violations};
use super::gateway::{Builder, Gateway};
use fault::error_body;
pub use fault::{Call, Fault};
pub use kept::{File, Kept};
use kept::{sent_id, sent_number};

/// The mailbox of the stand-in.
pub const ADDRESS: &str = "dora@graph.example";

/// What is granted, in the words of the real token endpoint.
pub const SEND_ONLY: &str =
    "https://graph.microsoft.com/Mail.Send https://graph.microsoft.com/User.Read";
pub const READ_WRITE: &str = "https://graph.microsoft.com/Mail.ReadWrite \
    https://graph.microsoft.com/Mail.Send https://graph.microsoft.com/User.Read";

#[derive(Debug)]
struct Session {
    draft: String,
    file: File,
    size: usize,
}

#[derive(Debug, Default)]
struct Mailbox {
    scope: String,
    tokens: u32,
    refused: HashSet<String>,
    refreshes: usize,
    faults: HashMap<Call, VecDeque<Fault>>,
    calls: Vec<Call>,
    numbers: usize,
    drafts: HashMap<String, Kept>,
    sessions: HashMap<String, Session>,
    sent: Vec<Kept>,
    /// The Message-ID that every draft gets instead of its own.
    rewritten: Option<String>,
    /// What the directory says of the account.
    account: Value,
    /// The account is a personal one: there is no directory that could be asked for more.
    no_directory: bool,
    /// The scope of each request for a token.
    scopes_asked: Vec<String>,
    /// A draft that was sent is found by its id, as the documents of immutable ids promise.
    keeps_ids: bool,
    sent_ids: HashSet<String>,
    inbox: Vec<Value>,
    junk: Vec<Value>,
    /// Received messages in MIME by id.
    whole: HashMap<String, Vec<u8>>,
    /// Where upload sessions are, instead of here.
    upload_url: Option<String>,
    /// What was against the rules of the real interface.
    violations: Vec<String>,
}

#[derive(Debug)]
struct Shared {
    base: String,
    mailbox: Mutex<Mailbox>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Mailbox> {
        self.mailbox.lock().expect("nobody panics with it")
    }
}

fn new_connection(gateway: &Gateway) -> NewConnection<'static> {
    NewConnection {
        app: gateway.app.id,
        user_id: None,
        plugin: Plugin::B,
        code: "any",
        redirect_uri: "http://127.0.0.1:9/oauth/callback",
        code_verifier: "any",
    }
}

/// A stand-in that runs; ends when it is dropped. Then nothing may have been against the rules.
pub struct GraphStandIn {
    shared: Arc<Shared>,
    /// What was against the interface as Microsoft's library describes it.
    violations: Violations,
    _servers: JoinSet<()>,
}

impl GraphStandIn {
    /// Whoever connects a mailbox is granted `scope`.
    pub async fn start(scope: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address: SocketAddr = listener.local_addr().expect("it has an address");
        let mailbox = Mailbox {
            scope: scope.to_owned(),
            keeps_ids: true,
            account: json!({
                "displayName": "Dora",
                "mail": ADDRESS,
                "userPrincipalName": ADDRESS,
                "proxyAddresses": [],
                "id": "48d31887-5fad-4d73-a9f5-3c356e68a038"
            }),
            ..Mailbox::default()
        };
        let shared = Arc::new(Shared {
            base: format!("http://{address}"),
            mailbox: Mutex::new(mailbox),
        });
        let violations = Violations::default();
        let messages = "/v1.0/me/messages";
        let router = Router::new()
            .route("/v1.0/me", get(handlers::me))
            .route("/v1.0/me/sendMail", post(handlers::send_mail))
            .route(messages, post(handlers::create))
            .route(
                &format!("{messages}/{{id}}"),
                get(handlers::look).delete(handlers::delete),
            )
            .route(&format!("{messages}/{{id}}/send"), post(handlers::send))
            .route(&format!("{messages}/{{id}}/$value"), get(handlers::whole))
            .route(
                &format!("{messages}/{{id}}/attachments"),
                post(handlers::attach),
            )
            .route(
                &format!("{messages}/{{id}}/attachments/createUploadSession"),
                post(handlers::create_session),
            )
            .route(
                "/v1.0/me/mailFolders/sentitems/messages",
                get(handlers::sent_items),
            )
            .route(
                "/v1.0/me/mailFolders/inbox/messages/delta",
                get(handlers::delta),
            )
            .route(
                "/v1.0/me/mailFolders/junkemail/messages/delta",
                get(handlers::junk_delta),
            )
            .route_layer(from_fn_with_state(
                (Contract::load("graph"), Arc::clone(&violations)),
                contracts::hold,
            ))
            .route("/token", post(handlers::token))
            .route("/upload/{session}", put(handlers::upload))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let mut servers = JoinSet::new();
        servers.spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Self {
            shared,
            violations,
            _servers: servers,
        }
    }

    /// A stand-in, and a gateway with its mailbox connected at `plugin_b`.
    pub async fn with_gateway(scope: &str) -> (Self, Gateway) {
        Self::with(scope, Gateway::builder()).await
    }

    /// As [`GraphStandIn::with_gateway`], with the test's own settings.
    pub async fn with(scope: &str, builder: Builder) -> (Self, Gateway) {
        let stand_in = Self::start(scope).await;
        let gateway = stand_in.connected(builder).await;
        (stand_in, gateway)
    }

    /// A gateway with the stand-in's mailbox connected at `plugin_b`.
    pub async fn connected(&self, builder: Builder) -> Gateway {
        let gateway = builder.plugins(self.plugins()).start().await;
        self.connect(&gateway).await;
        gateway
    }

    /// Its user grants access to the gateway's app.
    pub async fn connect(&self, gateway: &Gateway) -> mailgate_domain::mailboxes::Connected {
        gateway
            .daemon
            .mailboxes
            .connect(&new_connection(gateway))
            .await
            .expect("the stand-in's mailbox can be connected")
    }

    /// Settings of `plugin_b` that point here.
    pub fn plugins(&self) -> Table {
        let base = &self.shared.base;
        let mut plugin = toml::toml! {
            kind = "microsoft"
            transport = "graph"
            client_id = "stand-in"
            client_secret = "stand-in-secret"
        };
        for (name, value) in [
            ("authorize_url", format!("{base}/authorize")),
            ("token_url", format!("{base}/token")),
            // Some write the version behind it.
            ("api_base_url", format!("{base}/v1.0/")),
        ] {
            plugin.insert(name.to_owned(), value.into());
        }
        // An operator who asks for no more than is granted.
        let scope = self.shared.lock().scope.clone();
        let scopes: Vec<toml::Value> = scope.split(' ').map(toml::Value::from).collect();
        plugin.insert("scopes".to_owned(), scopes.into());
        Table::from_iter([("plugin_b".to_owned(), plugin.into())])
    }
}

impl Drop for GraphStandIn {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.shared.lock().violations, Vec::<String>::new());
        }
        contracts::assert_none(&self.violations);
    }
}
