//! A stand-in for Gmail's REST interface, in the shapes that the real one was seen to answer. It keeps
//! what is sent and what a test puts into its inbox; checks tokens only against those that the test
//! has it refuse; and fails the way the test says, which no real server does on demand. Its mailbox
//! is [`ADDRESS`] at `plugin_b`.

mod held;
mod mailbox;

use std::collections::{HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toml::Table;
use tower::ServiceExt;

use super::contracts::{self, Contract, Violations};
use super::gateway::{Builder, Gateway};
use super::stand_in::ADDRESS;
use super::stand_in::oauth::TokenEndpoint;
use mailbox::Mailbox;
use mailgate_domain::mailboxes::{Connected, NewConnection};
use mailgate_types::plugin::Plugin;

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

/// What happens to a request instead of the usual.
#[derive(Debug, Clone)]
pub enum Fault {
    /// This answer, and nothing is kept.
    Answer(u16, Vec<(&'static str, String)>, Value),
    /// The message is kept, and this is the answer.
    KeptBut(u16, Value),
    /// The same, and the message is found only when it is looked for a second time.
    KeptLaterBut(u16, Value),
    /// The connection breaks before the content has come in.
    BreakEarly,
    /// The connection breaks without an answer; nothing is kept.
    Break,
    /// The message is kept, and the connection breaks without an answer.
    KeptButBreak,
    /// Nothing is kept, and no answer comes.
    Silence,
}

/// An error as Gmail writes it.
pub fn error(code: u16, reason: &str, message: &str, status: &str) -> Value {
    json!({ "error": {
        "code": code,
        "message": message,
        "errors": [{ "message": message, "domain": "global", "reason": reason }],
        "status": status,
    } })
}

/// The next send is refused with such an error.
pub fn refusal(code: u16, reason: &str, message: &str) -> Fault {
    Fault::Answer(code, Vec::new(), error(code, reason, message, "STATUS"))
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

/// Marks an answer that is not given: the connection breaks instead.
#[derive(Clone, Copy)]
struct Broken;

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

    /// The next send fails so.
    pub fn fail_once(&self, fault: Fault) {
        self.account().faults.push_back(fault);
    }

    /// From now on this access token is refused with 401.
    pub fn refuse_token(&self, token: &str) {
        self.account().refused_tokens.insert(token.to_owned());
    }

    /// From now on reading is answered so.
    pub fn fail_reading(&self, status: u16, body: Value) {
        self.account().read_fault = Some((status, body));
    }

    /// From now on reading what ends so (`?raw` is any whole message) is answered so.
    pub fn fail_reading_at(&self, end: &str, status: u16, body: Value) {
        let fault = (end.to_owned(), status, body);
        self.account().faults_at.push(fault);
    }

    /// From now on reading succeeds.
    pub fn heal(&self) {
        let mut account = self.account();
        account.read_fault = None;
        account.faults_at.clear();
    }

    /// What the mailbox may send as from now on beside its own address: with the status of its verification.
    pub fn set_send_as(&self, entries: &[(&str, &str)]) {
        let entries = entries.iter().map(|(address, status)| {
            json!({
                "sendAsEmail": address,
                "displayName": "Ada",
                "replyToAddress": "",
                "signature": "<div>Ada</div>",
                "treatAsAlias": true,
                "verificationStatus": status,
            })
        });
        self.account().send_as = entries.collect();
    }

    /// From now on the list of what the mailbox may send as is answered so.
    pub fn fail_send_as(&self, fault: Option<(u16, String)>) {
        self.account().send_as_fault = fault;
    }

    /// How often the list was asked for.
    pub fn send_as_reads(&self) -> usize {
        self.account().send_as_reads
    }

    /// What was sent, oldest first.
    pub fn sent(&self) -> Vec<SentMessage> {
        self.account().sent.clone()
    }

    /// The targets of all requests, in order.
    pub fn asked(&self) -> Vec<String> {
        self.account().asked.clone()
    }

    /// A message comes in; answers its id.
    pub fn receive(&self, headers: &[(&str, &str)], at: i64) -> String {
        self.account().mailbox.receive(headers, at)
    }

    /// A mail client saves a copy of its own among the sent mail.
    pub fn save_among_sent(&self, raw: &[u8]) {
        self.account().mailbox.keep_sent(raw);
    }

    /// A whole message comes in under `INBOX` or `SPAM`; answers its id.
    pub fn receive_raw(&self, label: &'static str, raw: &[u8], at: i64) -> String {
        self.account().mailbox.receive_raw(label, raw, at)
    }

    /// A message is deleted, while lists still name it.
    pub fn lose(&self, id: &str) {
        self.account().mailbox.lose(id);
    }

    /// What is sent gets a Message-ID of Gmail's own from now on.
    pub fn rename_message_ids(&self) {
        self.account().mailbox.rename();
    }

    /// History from before now is no longer there.
    pub fn forget_history(&self) {
        self.account().mailbox.forget_history();
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        lock(&self.shared)
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, Account> {
    shared.lock().expect("nobody panics with it")
}

/// One task for each connection, so that one can break without an answer.
async fn serve(listener: TcpListener, router: Router) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.expect("it accepts");
        let router = router.clone();
        connections.spawn(async move {
            let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let router = router.clone();
                async move {
                    let answered: Result<Response, Infallible> =
                        router.oneshot(request.map(Body::new)).await;
                    let response = answered.unwrap_or_else(|never| match never {});
                    match response.extensions().get::<Broken>() {
                        Some(Broken) => Err(io::Error::other("as the test says")),
                        None => Ok(response),
                    }
                }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // It ends as the test says, or with its client.
            drop(connection.await);
        });
    }
}

fn broken() -> Response {
    let mut response = Response::new(Body::empty());
    response.extensions_mut().insert(Broken);
    response
}

fn answer(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    (status, Json(body)).into_response()
}

fn header(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// The access token of a request, or the answer to a bad one.
fn admit(shared: &Shared, headers: &HeaderMap, asked: String) -> Result<String, Box<Response>> {
    let mut account = lock(shared);
    account.asked.push(asked);
    let authorization = header(headers, "authorization");
    match authorization.strip_prefix("Bearer ") {
        Some(token) if !account.refused_tokens.contains(token) => Ok(token.to_owned()),
        _ => {
            let body = error(401, "authError", "Invalid Credentials", "UNAUTHENTICATED");
            Err(Box::new(answer(401, &body)))
        }
    }
}

async fn send(State(shared): State<Shared>, request: axum::extract::Request) -> Response {
    let (parts, body) = request.into_parts();
    let token = match admit(&shared, &parts.headers, parts.uri.to_string()) {
        Ok(token) => token,
        Err(refused) => return *refused,
    };
    let fault = lock(&shared).faults.pop_front();
    if let Some(Fault::BreakEarly) = fault {
        return broken();
    }
    let Ok(content) = axum::body::to_bytes(body, usize::MAX).await else {
        return broken();
    };
    lock(&shared).hold(&parts, &content);
    let uploaded = parts.uri.path().starts_with("/upload/");
    let raw = if uploaded {
        assert_eq!(parts.uri.query(), Some("uploadType=media"));
        content.to_vec()
    } else {
        let json: Value = serde_json::from_slice(&content).expect("it is JSON");
        URL_SAFE
            .decode(json["raw"].as_str().expect("it has the message"))
            .expect("it is base64url")
    };
    let sent = SentMessage {
        raw,
        uploaded,
        content_type: header(&parts.headers, "content-type"),
        content_length: header(&parts.headers, "content-length")
            .parse()
            .expect("a length is told"),
        token,
    };
    assert_eq!(sent.content_length, content.len());
    match fault {
        Some(Fault::Answer(status, headers, body)) => {
            let mut response = answer(status, &body);
            for (name, value) in headers {
                let value = value.parse().expect("a header's value");
                response.headers_mut().insert(name, value);
            }
            response
        }
        Some(Fault::Break) => broken(),
        Some(Fault::Silence) => {
            tokio::time::sleep(Duration::from_hours(1)).await;
            broken()
        }
        Some(Fault::KeptButBreak) => {
            lock(&shared).keep(sent);
            broken()
        }
        Some(Fault::KeptBut(status, body)) => {
            lock(&shared).keep(sent);
            answer(status, &body)
        }
        Some(Fault::KeptLaterBut(status, body)) => {
            let mut shared = lock(&shared);
            shared.keep(sent);
            shared.mailbox.hide_newest_from_next_list();
            answer(status, &body)
        }
        Some(Fault::BreakEarly) | None => {
            let id = lock(&shared).keep(sent);
            answer(
                200,
                &json!({ "id": id, "threadId": id, "labelIds": ["SENT"] }),
            )
        }
    }
}

impl Account {
    /// What reading this target is answered, where it fails.
    fn fault_at(&self, asked: &str) -> Option<(u16, Value)> {
        let mut faults = self.faults_at.iter();
        let (_, status, body) = faults.find(|(end, ..)| asked.ends_with(end))?;
        Some((*status, body.clone()))
    }

    fn keep(&mut self, sent: SentMessage) -> String {
        let id = self.mailbox.keep_sent(&sent.raw);
        self.sent.push(sent);
        id
    }
}

/// Lets a request read, and reads with `look`.
fn read(
    shared: &Shared,
    headers: &HeaderMap,
    asked: String,
    look: impl FnOnce(&Mailbox) -> Option<Value>,
) -> Response {
    let fault = lock(shared).fault_at(&asked);
    if let Err(refused) = admit(shared, headers, asked) {
        return *refused;
    }
    if let Some((status, body)) = fault {
        return answer(status, &body);
    }
    let account = lock(shared);
    if let Some((status, body)) = &account.read_fault {
        return answer(*status, body);
    }
    look(&account.mailbox).map_or_else(
        || {
            let text = "Requested entity was not found.";
            answer(404, &error(404, "notFound", text, "NOT_FOUND"))
        },
        |found| answer(200, &found),
    )
}

type Parameters = Query<HashMap<String, String>>;

async fn list(
    State(shared): State<Shared>,
    headers: HeaderMap,
    RawQuery(raw): RawQuery,
    Query(parameters): Parameters,
) -> Response {
    let asked = format!("messages?{}", raw.unwrap_or_default());
    read(&shared, &headers, asked, |mailbox| {
        Some(mailbox.list(&parameters))
    })
}

async fn message(
    State(shared): State<Shared>,
    headers: HeaderMap,
    Path(id): Path<String>,
    RawQuery(raw): RawQuery,
) -> Response {
    let raw = raw.unwrap_or_default();
    let names: Vec<String> = url::form_urlencoded::parse(raw.as_bytes())
        .filter(|(name, _)| name == "metadataHeaders")
        .map(|(_, value)| value.to_ascii_lowercase())
        .collect();
    if raw == "format=raw" {
        return read(&shared, &headers, format!("messages/{id}?raw"), |mailbox| {
            mailbox.raw(&id)
        });
    }
    assert!(raw.starts_with("format=metadata"), "{raw}");
    read(&shared, &headers, format!("messages/{id}"), |mailbox| {
        mailbox.metadata(&id, &names)
    })
}

async fn history(
    State(shared): State<Shared>,
    headers: HeaderMap,
    RawQuery(raw): RawQuery,
    Query(parameters): Parameters,
) -> Response {
    let asked = format!("history?{}", raw.unwrap_or_default());
    read(&shared, &headers, asked, |mailbox| {
        mailbox.history(&parameters)
    })
}

async fn profile(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    read(&shared, &headers, "profile".to_owned(), |mailbox| {
        Some(mailbox.profile(ADDRESS))
    })
}

/// The shape of the answer is the discovery document's `ListSendAsResponse`; `fields` is what is told of it.
async fn send_as(
    State(shared): State<Shared>,
    headers: HeaderMap,
    Query(parameters): Parameters,
) -> Response {
    let wanted = parameters.get("fields").cloned();
    let wanted = wanted.expect("only what is needed is asked for");
    let wanted = wanted.strip_prefix("sendAs(").expect("it is of the list");
    let wanted: Vec<&str> = wanted.trim_end_matches(')').split(',').collect();
    let token = header(&headers, "authorization");
    let token = token.strip_prefix("Bearer ").unwrap_or_default();
    let mut account = lock(&shared);
    account.send_as_reads += 1;
    if token.is_empty() || account.refused_tokens.contains(token) {
        let body = error(401, "authError", "Invalid Credentials", "UNAUTHENTICATED");
        return answer(401, &body);
    }
    if let Some((status, body)) = &account.send_as_fault {
        let status = StatusCode::from_u16(*status).expect("a status");
        return (status, body.clone()).into_response();
    }
    let own = json!({
        "sendAsEmail": ADDRESS, "displayName": "Ada", "signature": "", "isPrimary": true, "isDefault": true,
    });
    let mut entries = vec![own];
    entries.extend(account.send_as.clone());
    for entry in &mut entries {
        let fields = entry.as_object_mut().expect("an entry");
        fields.retain(|name, _| wanted.contains(&name.as_str()));
    }
    answer(200, &json!({ "sendAs": entries }))
}
