//! A stand-in for Microsoft Graph, with the shapes of the real interface's answers as they are
//! documented and were recorded: drafts, their files and upload sessions, sending, sent items, the
//! inbox's changes. It keeps what it gets, holds callers to the real one's rules (a good token, 4 MB a
//! request, ordered ranges without a token), and fails where a test tells it to. What it can't stand in
//! for is Exchange itself: how it rewrites a message, and when.

mod handlers;

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

/// The mailbox of the stand-in.
pub const ADDRESS: &str = "dora@graph.example";

/// What is granted, in the words of the real token endpoint.
pub const SEND_ONLY: &str =
    "https://graph.microsoft.com/Mail.Send https://graph.microsoft.com/User.Read";
pub const READ_WRITE: &str = "https://graph.microsoft.com/Mail.ReadWrite \
    https://graph.microsoft.com/Mail.Send https://graph.microsoft.com/User.Read";

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    Create,
    Attach,
    Session,
    Upload,
    Send,
    SendMail,
    SentItems,
    Look,
    Delete,
    Delta,
    JunkDelta,
    Whole,
    Token,
    Account,
}

/// What is answered instead of the usual.
#[derive(Debug, Clone)]
pub struct Fault {
    status: u16,
    retry_after: Option<String>,
    body: String,
    /// The call does its work all the same.
    done: bool,
    hangs: bool,
}

impl Fault {
    /// An answer with this body.
    pub fn answer(status: u16, body: &str) -> Self {
        Self {
            status,
            retry_after: None,
            body: body.to_owned(),
            done: false,
            hangs: false,
        }
    }

    /// An error as Graph tells it.
    pub fn error(status: u16, code: &str) -> Self {
        Self::answer(status, &error_body(code))
    }

    /// Says nothing.
    pub fn hang() -> Self {
        Self {
            hangs: true,
            ..Self::answer(500, "")
        }
    }

    /// The work is done, whatever is answered.
    pub fn done(self) -> Self {
        Self { done: true, ..self }
    }

    pub fn retry_after(self, value: &str) -> Self {
        Self {
            retry_after: Some(value.to_owned()),
            ..self
        }
    }
}

fn error_body(code: &str) -> String {
    json!({
        "error": {
            "code": code,
            "message": "What the provider says.",
            "innerError": {
                "date": "2026-01-02T03:04:05",
                "request-id": "6f1b6a5e-0000-4000-8000-000000000000",
                "client-request-id": "6f1b6a5e-0000-4000-8000-000000000000"
            }
        }
    })
    .to_string()
}

/// A file at a message.
#[derive(Debug, Clone)]
pub struct File {
    /// What was said of it.
    pub fields: Value,
    pub content: Vec<u8>,
    /// In how many pieces it came; 0 where it came at once.
    pub pieces: usize,
}

/// A message, as a draft or sent.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    pub message_id: String,
    /// As it was handed over, where it was handed over whole.
    pub mime: Vec<u8>,
    /// The fields, where it was put together.
    pub fields: Value,
    pub files: Vec<File>,
}

impl Kept {
    /// The message, as far as its header goes where it was put together.
    fn in_mime(&self) -> Vec<u8> {
        if !self.mime.is_empty() {
            return self.mime.clone();
        }
        let headers = self.fields["internetMessageHeaders"].as_array();
        let lines = headers.into_iter().flatten().map(|header| {
            let text = |name: &str| header[name].as_str().expect("text").to_owned();
            format!("{}: {}\r\n", text("name"), text("value"))
        });
        lines.chain(["\r\n".to_owned()]).collect::<String>().into()
    }
}

/// The id of a sent message.
fn sent_id(number: usize) -> String {
    format!("AAMkAGI1AAAs={number}")
}

/// Which of the sent messages has this id.
fn sent_number(id: &str) -> Option<usize> {
    id.strip_prefix("AAMkAGI1AAAs=")?.parse().ok()
}

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

    /// What the directory says of the account instead.
    pub fn set_account(&self, account: Value) {
        self.shared.lock().account = account;
    }

    /// The account is a personal one.
    pub fn leave_the_directory(&self) {
        self.shared.lock().no_directory = true;
    }

    /// A mail client saves a copy of its own among the sent mail.
    pub fn save_among_sent(&self, message_id: &str) {
        self.shared.lock().sent.push(Kept {
            message_id: message_id.to_owned(),
            mime: format!("Message-ID: {message_id}\r\n\r\nHi").into(),
            ..Kept::default()
        });
    }

    /// What was sent is found by its Message-ID alone.
    pub fn forget_ids(&self) {
        self.shared.lock().keeps_ids = false;
    }

    /// The scope of each request for a token so far.
    pub fn scopes_asked(&self) -> Vec<String> {
        self.shared.lock().scopes_asked.clone()
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

    /// The next such call is answered so; several queue up.
    pub fn once(&self, call: Call, fault: Fault) {
        let mut mailbox = self.shared.lock();
        mailbox.faults.entry(call).or_default().push_back(fault);
    }

    /// How many such calls there were, whatever was answered.
    pub fn count(&self, call: Call) -> usize {
        let mailbox = self.shared.lock();
        mailbox.calls.iter().filter(|made| **made == call).count()
    }

    /// What was sent, oldest first. Nothing was against the real interface's rules so far.
    pub fn sent(&self) -> Vec<Kept> {
        let mailbox = self.shared.lock();
        assert_eq!(mailbox.violations, Vec::<String>::new());
        mailbox.sent.clone()
    }

    /// Drafts that lie in the mailbox.
    pub fn drafts(&self) -> usize {
        self.shared.lock().drafts.len()
    }

    /// No token that was issued so far is good any longer.
    pub fn refuse_tokens(&self) {
        let mut mailbox = self.shared.lock();
        for number in 1..=mailbox.tokens {
            mailbox.refused.insert(format!("access-{number}"));
        }
    }

    /// A token, for a test that reads by itself.
    pub fn issue(&self) -> String {
        let mut mailbox = self.shared.lock();
        mailbox.tokens += 1;
        format!("access-{}", mailbox.tokens)
    }

    pub fn refreshes(&self) -> usize {
        self.shared.lock().refreshes
    }

    /// Every draft gets this Message-ID, as Exchange was seen to do.
    pub fn rewrite_message_ids(&self, message_id: &str) {
        self.shared.lock().rewritten = Some(message_id.to_owned());
    }

    /// Upload sessions are said to be there.
    pub fn say_upload_url(&self, address: &str) {
        self.shared.lock().upload_url = Some(address.to_owned());
    }

    /// A message comes into the inbox: an entry as the delta query tells it.
    pub fn receive(&self, entry: Value) {
        self.shared.lock().inbox.push(entry);
    }

    /// A change among the junk.
    pub fn receive_junk(&self, entry: Value) {
        self.shared.lock().junk.push(entry);
    }

    /// What a received message is in MIME.
    pub fn set_whole(&self, id: &str, mime: &[u8]) {
        self.shared
            .lock()
            .whole
            .insert(id.to_owned(), mime.to_vec());
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
