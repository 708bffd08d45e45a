//! A stand-in for Gmail's REST interface, in the shapes that the real one was seen to answer. It keeps
//! what is sent and what a test puts into its inbox; checks tokens only against those that the test
//! has it refuse; and fails the way the test says, which no real server does on demand. Its mailbox
//! is [`ADDRESS`](super::stand_in::ADDRESS) at `plugin_b`.

mod connection;
mod fault;
mod handlers;
mod held;
mod mailbox;
mod told;

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use mailgate_domain::mailboxes::{Connected, NewConnection};
use mailgate_types::plugin::Plugin;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toml::Table;

use super::contracts::{self, Contract, Violations};
use super::gateway::{Builder, Gateway};
use super::stand_in::oauth::TokenEndpoint;
use connection::serve;
pub use fault::{Fault, error, refusal};
use handlers::{history, list, message, profile, send, send_as};
use mailbox::Mailbox;

/// Sends, and reads nothing.
pub const SEND_SCOPE: &str = "https://www.googleapis.com/auth/gmail.send";

/// Does everything.
pub const FULL_SCOPE: &str = "https://mail.google.com/";

/// A message that came in by `messages/send`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMessage {
    pub raw: Vec<u8>,
    /// It came by the upload address, not within JSON.
    pub uploaded: bool,
    pub content_type: String,
    pub content_length: usize,
    /// The access token.
    pub token: String,
}

#[derive(Default)]
struct Account {
    mailbox: Mailbox,
    faults: VecDeque<Fault>,
    refused_tokens: HashSet<String>,
    sent: Vec<SentMessage>,
    contract: Option<Arc<Contract>>,
    /// What was against it.
    violations: Violations,
    /// Every request line's target, in order.
    asked: Vec<String>,
    /// What reading is answered, where it fails.
    read_fault: Option<(u16, Value)>,
    /// The same for targets that end so.
    faults_at: Vec<(String, u16, Value)>,
    /// What the mailbox may send as beside its own address, as the list has it.
    send_as: Vec<Value>,
    /// What the list is answered with instead.
    send_as_fault: Option<(u16, String)>,
    send_as_reads: usize,
}

type Shared = Arc<Mutex<Account>>;

/// The running stand-in; ends when it is dropped.
pub struct GmailStandIn {
    pub tokens: TokenEndpoint,
    address: SocketAddr,
    shared: Shared,
    _servers: JoinSet<()>,
}

impl GmailStandIn {
    pub async fn start() -> Self {
        let shared = Shared::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let (contract, violations) = (Contract::load("gmail"), Violations::default());
        {
            let mut account = lock(&shared);
            account.contract = Some(Arc::clone(&contract));
            account.violations = Arc::clone(&violations);
        }
        let router = Router::new()
            .route("/gmail/v1/users/me/messages", get(list))
            .route("/gmail/v1/users/me/messages/{id}", get(message))
            .route("/gmail/v1/users/me/history", get(history))
            .route("/gmail/v1/users/me/profile", get(profile))
            .route("/gmail/v1/users/me/settings/sendAs", get(send_as))
            .route_layer(from_fn_with_state((contract, violations), contracts::hold))
            // Held against it by themselves, since they may break before their content is there.
            .route("/gmail/v1/users/me/messages/send", post(send))
            .route("/upload/gmail/v1/users/me/messages/send", post(send))
            .with_state(Arc::clone(&shared));
        let mut servers = JoinSet::new();
        let tokens = TokenEndpoint::start(&mut servers).await;
        servers.spawn(serve(listener, router));
        Self {
            tokens,
            address,
            shared,
            _servers: servers,
        }
    }

    /// A stand-in, and a gateway with its mailbox connected at `plugin_b` under one scope.
    pub async fn with(builder: Builder, scope: &str) -> (Self, Gateway) {
        let stand_in = Self::start().await;
        let gateway = builder.plugins(stand_in.plugins(scope)).start().await;
        stand_in.connect(&gateway).await;
        (stand_in, gateway)
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Settings of `plugin_b` that point here.
    pub fn plugins(&self, scope: &str) -> Table {
        let tokens = self.tokens.url();
        let settings = [
            ("kind", "generic".to_owned()),
            ("client_id", "stand-in".to_owned()),
            ("client_secret", "stand-in-secret".to_owned()),
            ("authorize_url", format!("{tokens}/authorize")),
            ("token_url", format!("{tokens}/token")),
            ("userinfo_url", format!("{tokens}/userinfo")),
            ("transport", "gmail_api".to_owned()),
            ("api_base_url", self.url()),
        ];
        let mut plugin: Table = settings
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        let scopes: Vec<String> = scope.split(' ').map(str::to_owned).collect();
        plugin.insert("scopes".to_owned(), scopes.into());
        Table::from_iter([("plugin_b".to_owned(), plugin.into())])
    }

    /// Connects its mailbox to the gateway's app.
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

    fn account(&self) -> MutexGuard<'_, Account> {
        lock(&self.shared)
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, Account> {
    shared.lock().expect("nobody panics with it")
}
