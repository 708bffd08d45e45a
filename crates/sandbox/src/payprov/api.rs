//! `/v1/…`: authentication, injected faults, idempotency, and routing.

use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::PaymentProvider;
use super::faults::{FaultKind, held_back};
use super::ledger::{API_VERSION, Ledger, StoredResponse, new_id};
use super::objects::EventRequest;
use super::parameters::Parameters;
use super::refusal::Refusal;
use super::subscriptions::show_price;

const VERSION: &str = "stripe-version";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// Longest idempotency key, in characters.
const KEY_MAX: usize = 255;

/// Default number of objects on a page of a list, and the maximum.
const LISTED: usize = 10;
const LISTED_MOST: usize = 100;

/// Any request to the API.
pub(super) async fn answer(
    State(provider): State<PaymentProvider>,
    method: Method,
    Path(path): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut lost = false;
    let target = match &query {
        Some(query) => format!("/v1/{path}?{query}"),
        None => format!("/v1/{path}"),
    };
    match provider.shared.faults.take(method.as_str(), &target) {
        None => {}
        Some(FaultKind::Down) => return cut(),
        Some(FaultKind::LostAnswer) => lost = true,
        Some(FaultKind::InternalError) => {
            return Refusal::broken(StatusCode::INTERNAL_SERVER_ERROR).into_response();
        }
        Some(FaultKind::Unavailable) => {
            return Refusal::broken(StatusCode::SERVICE_UNAVAILABLE).into_response();
        }
        Some(FaultKind::RateLimited) => {
            let retry_after = [(RETRY_AFTER, HeaderValue::from_static("1"))];
            return (retry_after, Refusal::rate_limited()).into_response();
        }
        Some(FaultKind::Unauthorized) => return Refusal::unauthorized().into_response(),
        Some(FaultKind::Slow(milliseconds)) => {
            let time: Duration = held_back(milliseconds);
            tokio::time::sleep(time).await;
        }
    }
    if !provider.is_known(&headers) {
        return Refusal::unauthorized().into_response();
    }
    let key = headers
        .get(IDEMPOTENCY_KEY)
        .and_then(|key| key.to_str().ok())
        .filter(|_| method == Method::POST);
    if key.is_some_and(|key| key.is_empty() || key.len() > KEY_MAX) {
        let text = "The idempotency key must have 1 to 255 characters.";
        return Refusal::invalid(text).into_response();
    }
    // Like the front ends of many real APIs: a POST must state its length.
    if method == Method::POST && !headers.contains_key(CONTENT_LENGTH) {
        return StatusCode::LENGTH_REQUIRED.into_response();
    }
    let mut parameters = match Parameters::parse(query.as_deref().unwrap_or_default(), &body) {
        Ok(parameters) => parameters,
        Err(refusal) => return refusal.into_response(),
    };
    let version = headers.get(VERSION).and_then(|value| value.to_str().ok());
    version
        .unwrap_or(API_VERSION)
        .clone_into(&mut parameters.version);
    let request = Request {
        method: &method,
        path: &path,
        key,
    };
    let done = provider
        .change(|ledger, now| request.once(ledger, parameters, now))
        .await;
    if lost { cut() } else { done }
}

/// Ends the connection without a response.
fn cut() -> Response {
    let broken = std::io::Error::from(std::io::ErrorKind::ConnectionAborted);
    let body = stream::once(async { Err::<Bytes, _>(broken) });
    Response::new(Body::from_stream(body))
}

impl PaymentProvider {
    /// Checks the API key, sent as a bearer token or as the user name of HTTP Basic.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let Some(said) = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
        else {
            return false;
        };
        let key = match said.split_once(' ') {
            Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim().to_owned(),
            Some((scheme, pair)) if scheme.eq_ignore_ascii_case("basic") => {
                let pair = STANDARD.decode(pair.trim()).unwrap_or_default();
                let pair = String::from_utf8_lossy(&pair).into_owned();
                pair.split(':').next().unwrap_or_default().to_owned()
            }
            _ => return false,
        };
        let expected = Sha256::digest(self.shared.settings.secret_key.expose_secret());
        bool::from(expected.as_slice().ct_eq(Sha256::digest(key).as_slice()))
    }
}

struct Request<'a> {
    method: &'a Method,
    path: &'a str,
    key: Option<&'a str>,
}

impl Request<'_> {
    /// Executes the request, once for each idempotency key.
    fn once(&self, ledger: &mut Ledger, parameters: Parameters, now: i64) -> Response {
        let fingerprint = format!("{} {} {}", self.method, self.path, parameters.fingerprint());
        let known = self.key.and_then(|key| ledger.answers.get(key));
        if let Some(answer) = known {
            if answer.fingerprint != fingerprint {
                return Refusal::idempotency().into_response();
            }
            let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
            let replayed = [(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"))];
            return (status, replayed, Json(answer.body.clone())).into_response();
        }
        let id = new_id("req");
        ledger.request = EventRequest {
            id: Some(id.clone()),
            idempotency_key: self.key.map(str::to_owned),
        };
        let done = self.operate(ledger, parameters, now);
        ledger.request = EventRequest::default();
        let (status, body) = match done {
            Ok(body) => (StatusCode::OK, body),
            Err(refusal) => (refusal.status, refusal.body()),
        };
        // A request that was rejected before anything was done may be corrected and sent again.
        if let Some(key) = self.key
            && (status.is_success() || status == StatusCode::PAYMENT_REQUIRED)
        {
            let answer = StoredResponse {
                at: now,
                fingerprint,
                status: status.as_u16(),
                body: body.clone(),
            };
            ledger.answers.insert(key.to_owned(), answer);
        }
        let id = HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("req_"));
        (status, [(REQUEST_ID, id)], Json(body)).into_response()
    }

    fn operate(
        &self,
        ledger: &mut Ledger,
        mut parameters: Parameters,
        now: i64,
    ) -> Result<Value, Refusal> {
        let expand = std::mem::take(&mut parameters.expand);
        let parameters = &mut parameters;
        let path: Vec<&str> = self.path.split('/').collect();
        let mut answer = match (self.method.as_str(), path.as_slice()) {
            ("POST", ["customers"]) => ledger.create_customer(parameters, now),
            ("GET", ["customers"]) => {
                let email = parameters.text("email");
                let customers = ledger.customers.values().rev();
                let found = customers
                    .filter(|customer| email.is_none() || customer.email == email)
                    .map(|customer| json!(customer))
                    .collect();
                self.list(found, parameters)
            }
            ("GET", ["customers", id]) => ledger.show_customer(id, parameters),
            ("POST", ["customers", id]) => ledger.change_customer(id, parameters, now),
            ("DELETE", ["customers", id]) => ledger.delete_customer(id, parameters, now),
            ("GET", ["customers", id, "payment_methods"]) => {
                let found = ledger.list_payment_methods(id, parameters)?;
                self.list(found, parameters)
            }
            ("GET", ["payment_methods"]) => {
                let customer = parameters.required("customer")?;
                let found = ledger.list_payment_methods(&customer, parameters)?;
                self.list(found, parameters)
            }
            ("GET", ["payment_methods", id]) => ledger.show_payment_method(id, parameters),
            ("POST", ["payment_methods", id, "attach"]) => {
                ledger.attach_payment_method(id, parameters, now)
            }
            ("POST", ["subscriptions"]) => ledger.create_subscription(parameters, now),
            ("GET", ["subscriptions"]) => {
                let found = ledger.list_subscriptions(parameters);
                self.list(found, parameters)
            }
            ("GET", ["subscriptions", id]) => ledger.show_subscription(id, parameters),
            ("POST", ["subscriptions", id]) => {
                ledger.change_subscription_by_request(id, parameters, now)
            }
            ("DELETE", ["subscriptions", id]) => ledger.cancel_subscription(id, parameters, now),
            ("GET", ["invoices"]) => {
                let found = ledger.list_invoices(parameters)?;
                self.list(found, parameters)
            }
            ("GET", ["invoices", id]) => ledger.show_invoice(id, parameters),
            ("POST", ["invoices", id, "pay"]) => ledger.pay_invoice(id, parameters, now),
            ("POST", ["checkout", "sessions"]) => ledger.create_checkout_session(parameters, now),
            ("GET", ["checkout", "sessions", id]) => ledger.show_checkout_session(id, parameters),
            ("GET", ["setup_intents", id]) => ledger.show_setup_intent(id, parameters),
            ("POST", ["billing_portal", "sessions"]) => {
                ledger.create_portal_session(parameters, now)
            }
            ("GET", ["prices", id]) => show_price(id, parameters),
            ("GET", ["events"]) => {
                let kind = parameters.text("type");
                let events = ledger.events.iter().rev();
                let found = events
                    .filter(|event| kind.as_ref().is_none_or(|kind| *kind == event.kind))
                    .map(|event| json!(event))
                    .collect();
                self.list(found, parameters)
            }
            ("GET", ["events", id]) => {
                parameters.done()?;
                let missing = || Refusal::missing(StatusCode::NOT_FOUND, "event", "id", id);
                ledger
                    .event(id)
                    .map(|event| json!(event))
                    .ok_or_else(missing)
            }
            (method, _) => Err(Refusal::unknown_path(method, self.path)),
        }?;
        for field in expand {
            let path: Vec<&str> = field.split('.').collect();
            expanded(ledger, &mut answer, &path);
        }
        Ok(answer)
    }

    /// One page of a list.
    fn list(&self, all: Vec<Value>, parameters: &mut Parameters) -> Result<Value, Refusal> {
        let limit = parameters.number("limit")?.unwrap_or(LISTED);
        let after = parameters.text("starting_after");
        parameters.done()?;
        if !(1..=LISTED_MOST).contains(&limit) {
            let text = format!("This value must be between 1 and {LISTED_MOST}.");
            return Err(Refusal::parameter(
                "limit",
                "parameter_invalid_integer",
                text,
            ));
        }
        let start = match &after {
            None => 0,
            Some(id) => {
                let position = all.iter().position(|object| object["id"] == id.as_str());
                let missing = || {
                    let status = StatusCode::BAD_REQUEST;
                    Refusal::missing(status, "object", "starting_after", id)
                };
                position.ok_or_else(missing)? + 1
            }
        };
        let has_more = all.len() - start > limit;
        let data: Vec<Value> = all.into_iter().skip(start).take(limit).collect();
        Ok(json!({
            "object": "list",
            "url": format!("/v1/{}", self.path),
            "has_more": has_more,
            "data": data,
        }))
    }
}

/// Replaces an id with the object.
fn expanded(ledger: &Ledger, value: &mut Value, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if let Value::Array(items) = value {
        for item in items {
            expanded(ledger, item, path);
        }
        return;
    }
    let Some(field) = value.get_mut(*first) else {
        return;
    };
    if let Some(object) = field.as_str().and_then(|id| ledger.object(id)) {
        *field = object;
    }
    expanded(ledger, field, rest);
}
