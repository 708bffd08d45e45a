//! The stand-in's token endpoint: the answers that a test has queued, and good tokens when none is.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::ADDRESS;

/// What the endpoint answers to one call.
pub struct Answer {
    status: u16,
    body: String,
    content_type: &'static str,
    location: Option<String>,
    /// It is kept back until then.
    release: Option<CancellationToken>,
}

impl Answer {
    pub fn new(status: u16, body: &str) -> Self {
        Self {
            status,
            body: body.to_owned(),
            content_type: "text/plain; charset=utf-8",
            location: None,
            release: None,
        }
    }

    pub fn json(status: u16, body: &Value) -> Self {
        Self::typed(status, "application/json", &body.to_string())
    }

    /// With its Content-Type.
    pub fn typed(status: u16, content_type: &'static str, body: &str) -> Self {
        Self {
            content_type,
            ..Self::new(status, body)
        }
    }

    /// An error of RFC 6749 §5.2.
    pub fn error(status: u16, error: &str) -> Self {
        Self::json(status, &json!({ "error": error }))
    }

    /// The answer is to be had elsewhere.
    pub fn redirect(location: String) -> Self {
        Self {
            location: Some(location),
            ..Self::new(307, "")
        }
    }

    /// Kept back until `release` is cancelled.
    pub fn held(self, release: &CancellationToken) -> Self {
        Self {
            release: Some(release.clone()),
            ..self
        }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).expect("a status");
        let typed = [("content-type", self.content_type)];
        match self.location {
            Some(location) => (status, [("location", location)], self.body).into_response(),
            None => (status, typed, self.body).into_response(),
        }
    }
}

#[derive(Default)]
struct Calls {
    queued: VecDeque<Answer>,
    received: usize,
    refresh_tokens: Vec<String>,
    issued: u32,
    accounts: VecDeque<Answer>,
    /// How the access token was shown for each.
    shown: Vec<String>,
    keys: Value,
    fetches: usize,
}

#[derive(Default)]
struct Shared {
    calls: Mutex<Calls>,
    closed: CancellationToken,
}

/// The running endpoint.
pub struct TokenEndpoint {
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl TokenEndpoint {
    pub async fn start(servers: &mut JoinSet<()>) -> Self {
        let shared = Arc::<Shared>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let router = Router::new()
            .route("/token", post(token))
            .route("/userinfo", get(account))
            .route("/jwks", get(keys))
            .with_state(Arc::clone(&shared));
        let closed = shared.closed.clone();
        servers.spawn(async move {
            axum::serve(listener, router)
                .with_graceful_shutdown(closed.cancelled_owned())
                .await
                .expect("it serves");
        });
        Self { shared, address }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next call is answered so.
    pub fn queue(&self, answer: Answer) {
        self.calls().queued.push_back(answer);
    }

    /// The next call for the account is answered so; otherwise it is told [`ADDRESS`].
    pub fn queue_account(&self, answer: Answer) {
        self.calls().accounts.push_back(answer);
    }

    /// How each call for the account has shown its token: `Bearer …`, or `?…`.
    pub fn shown(&self) -> Vec<String> {
        self.calls().shown.clone()
    }

    /// From now on these are the published keys.
    pub fn publish(&self, keys: &[Value]) {
        self.calls().keys = json!({ "keys": keys });
    }

    /// How often they were fetched.
    pub fn fetches(&self) -> usize {
        self.calls().fetches
    }

    /// The refresh tokens that were presented so far, one for each call.
    pub fn refresh_tokens(&self) -> Vec<String> {
        self.calls().refresh_tokens.clone()
    }

    /// How many calls have come.
    pub fn calls_so_far(&self) -> usize {
        self.calls().received
    }

    /// From now on nobody listens at the address.
    pub fn close(&self) {
        self.shared.closed.cancel();
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.shared.calls.lock().expect("nobody panics with it")
    }
}

async fn account(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let mut calls = shared.calls.lock().expect("nobody panics with it");
    let bearer = headers.get("authorization");
    let mut shown = bearer
        .map_or("", |it| it.to_str().expect("text"))
        .to_owned();
    shown.extend(query.map(|query| format!("?{query}")));
    calls.shown.push(shown);
    let answer = calls.accounts.pop_front();
    answer.map_or_else(
        || Json(json!({ "email": ADDRESS })).into_response(),
        IntoResponse::into_response,
    )
}

async fn keys(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let mut calls = shared.calls.lock().expect("nobody panics with it");
    calls.fetches += 1;
    Json(calls.keys.clone())
}

async fn token(
    State(shared): State<Arc<Shared>>,
    Form(form): Form<HashMap<String, String>>,
) -> Response {
    let answer = {
        let mut calls = shared.calls.lock().expect("nobody panics with it");
        calls.received += 1;
        if let Some(token) = form.get("refresh_token") {
            calls.refresh_tokens.push(token.clone());
        }
        if let Some(answer) = calls.queued.pop_front() {
            answer
        } else {
            calls.issued += 1;
            let number = calls.issued;
            Answer::json(
                200,
                &json!({
                    "access_token": format!("access-{number}"),
                    "refresh_token": format!("refresh-{number}"),
                    "token_type": "Bearer",
                    "expires_in": 3_600,
                }),
            )
        }
    };
    if let Some(release) = &answer.release {
        release.cancelled().await;
    }
    answer.into_response()
}
