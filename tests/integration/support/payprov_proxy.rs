//! Stands before a payment provider: holds answers and requests back, and puts the requests into the words of
//! one that knows an older interface (localstripe: plans instead of prices, no settings for the end of a
//! trial, no filter of invoices).

mod creations;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{OriginalUri, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use tokio::sync::Notify;

use self::creations::Creations;
use super::contracts::{self, Contract, Violations};

/// A proxy on loopback; it ends with the test's runtime.
pub struct PayprovProxy {
    pub url: String,
    shared: Arc<Shared>,
}

struct Shared {
    upstream: Mutex<String>,
    translates: bool,
    held: Mutex<Option<(Method, &'static str, Arc<Held>)>>,
    creations: Creations,
    contract: Mutex<Option<(String, Arc<Contract>)>>,
    violations: Violations,
    held_against: AtomicUsize,
    http: reqwest::Client,
}

/// An answer that is there and doesn't leave, or a request.
#[derive(Default)]
pub struct Held {
    reached: Notify,
    released: Notify,
}

impl Held {
    /// Returns once the provider has answered, or would be asked.
    pub async fn reached(&self) {
        self.reached.notified().await;
    }

    pub fn release(&self) {
        self.released.notify_one();
    }
}

impl PayprovProxy {
    pub async fn start(translates: bool) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let shared = Arc::new(Shared {
            upstream: Mutex::default(),
            translates,
            held: Mutex::default(),
            creations: Creations::default(),
            contract: Mutex::default(),
            violations: Violations::default(),
            held_against: AtomicUsize::default(),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        });
        let router = Router::new()
            .fallback(forward)
            .with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, shared }
    }

    /// A proxy that holds each request against a version of Stripe's interface.
    pub async fn holding(version: &str) -> Self {
        let proxy = Self::start(false).await;
        *proxy.shared.contract.lock().unwrap() = Some((
            version.to_owned(),
            Contract::load(&format!("stripe-{version}")),
        ));
        proxy
    }

    /// Nothing was against it; `minimum` requests were held.
    pub fn assert_kept(&self, minimum: usize) {
        contracts::assert_none(&self.shared.violations);
        let count = self.shared.held_against.load(Ordering::Relaxed);
        assert!(count >= minimum, "{count} requests");
    }

    /// Where requests go, before `/v1`.
    pub fn forward_to(&self, upstream: &str) {
        upstream.clone_into(&mut self.shared.upstream.lock().unwrap());
    }

    /// Holds the next answer about one subscription.
    pub fn hold_next_look(&self) -> Arc<Held> {
        self.hold_next_answer(Method::GET, "/v1/subscriptions/")
    }

    /// Holds the answer to the next payment of an invoice, which is made.
    pub fn hold_next_payment(&self) -> Arc<Held> {
        self.hold_next_answer(Method::POST, "/pay")
    }

    fn hold_next_answer(&self, method: Method, path: &'static str) -> Arc<Held> {
        let held = Arc::new(Held::default());
        *self.shared.held.lock().unwrap() = Some((method, path, Arc::clone(&held)));
        held
    }
}

async fn forward(
    State(shared): State<Arc<Shared>>,
    method: Method,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let upstream = shared.upstream.lock().unwrap().clone();
    if upstream.is_empty() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    shared.hold(&method, &uri, &headers, &body);
    if let Some(failure) = shared.creations.stop(&method, &uri, &headers, &body) {
        return failure.into_response();
    }
    shared.creations.hold(&method, &uri).await;
    let mut path = uri.path().to_owned();
    let mut query: Vec<(String, String)> =
        url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes())
            .into_owned()
            .collect();
    let mut form: Vec<(String, String)> = url::form_urlencoded::parse(&body).into_owned().collect();
    if shared.translates {
        translate(&mut path, &mut query, &mut form);
    }
    let mut request = shared
        .http
        .request(method.clone(), format!("{upstream}{path}"))
        .query(&query)
        .header("authorization", &headers["authorization"]);
    for name in ["idempotency-key", "stripe-version"] {
        if let Some(value) = headers.get(name) {
            request = request.header(name, value);
        }
    }
    if method == Method::POST {
        request = request.form(&form);
        if form.is_empty() {
            request = request.header("content-length", 0);
        }
    }
    let Ok(answer) = request.send().await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let status = answer.status();
    let Ok(content) = answer.bytes().await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let held = {
        let mut held = shared.held.lock().unwrap();
        held.take_if(|(of, part, _)| *of == method && path.contains(*part))
    };
    if let Some((_, _, held)) = held {
        held.reached.notify_one();
        held.released.notified().await;
    }
    (status, [("content-type", "application/json")], content).into_response()
}

impl Shared {
    fn hold(&self, method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) {
        let contract = self.contract.lock().unwrap().clone();
        let Some((version, contract)) = contract else {
            return;
        };
        self.held_against.fetch_add(1, Ordering::Relaxed);
        // The gateway's address of the provider may have a path of its own.
        let path = &uri.path()[uri.path().find("/v1/").unwrap_or_default()..];
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let query = uri.query().unwrap_or_default();
        let mut found = contract.check(method.as_str(), path, query, text("content-type"), body);
        if text("stripe-version") != Some(&version) {
            found.push(format!("{method} {path}: the version isn't {version}"));
        }
        if *method == Method::POST && text("content-length").is_none() {
            found.push(format!("{method} {path}: no length"));
        }
        if *method == Method::POST && text("idempotency-key").is_none() {
            found.push(format!("{method} {path}: no idempotency key"));
        }
        self.violations.lock().unwrap().extend(found);
    }
}

type Fields = Vec<(String, String)>;

fn translate(path: &mut String, query: &mut Fields, form: &mut Fields) {
    for (name, _) in form.iter_mut() {
        if name == "items[0][price]" {
            "items[0][plan]".clone_into(name);
        }
    }
    form.retain(|(name, value)| {
        !name.starts_with("trial_settings")
            && name != "proration_behavior"
            // It takes no quantity of nothing.
            && !(name == "items[0][quantity]" && value == "0")
    });
    if path.starts_with("/v1/invoices") {
        query.retain(|(name, _)| name != "status");
    }
    if let Some(customer) = path
        .strip_prefix("/v1/customers/")
        .and_then(|rest| rest.strip_suffix("/payment_methods"))
    {
        query.push(("customer".to_owned(), customer.to_owned()));
        query.push(("type".to_owned(), "card".to_owned()));
        "/v1/payment_methods".clone_into(path);
    }
}
